"""results/run/details.json: data of the run's page, and of readers who want other figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from emulator.emulation import Measurements
from emulator.repeats import Repeats
from emulator.scenario import Scenario

MOST_LATENCIES = 20_000
"""Number of latencies of a mode in the file; more are thinned evenly, which preserves the distribution."""


@dataclass(frozen=True, slots=True)
class Details:
    """Details of one run."""

    timeline: list[dict[str, Any]]
    """Samples as emulator.timeline.Sample, one each half second."""
    requests: list[dict[str, Any]]
    """Records of requests as hostlib.node.request_record.RequestRecord, with the node that served each."""
    get_ms: list[float]
    """Times in ms from a block's request to its check, in ascending order."""
    fragments: dict[str, dict[str, int]] = field(default_factory=dict)
    """Fragments by node: received from pool and home, received merged, and requested again."""
    hottest: list[dict[str, Any]] = field(default_factory=list)
    """Events in the pools of the blocks that were requested most, with reasons (controller.process); times of
    the run.
    """


def details_of(measured: Measurements) -> Details:
    """Return the details of a run's measurements."""
    requests = [
        {"node": name, **record} for name, worker in measured.workers.items() for record in worker["records"]
    ]
    get_ms = sorted(ms for worker in measured.workers.values() for ms in worker["get_ms"])
    return Details(
        [asdict(sample) for sample in measured.timeline],
        sorted(requests, key=lambda record: float(record["arrival_s"])),
        get_ms[:: 1 + len(get_ms) // MOST_LATENCIES],
        {name: _fragments(worker["client"]) for name, worker in measured.workers.items()},
        _hottest(measured),
    )


def _fragments(client: Mapping[str, int]) -> dict[str, int]:
    names = {"pool": "from_pool", "home": "from_home", "merged": "merged", "asked again": "retransmits"}
    return {label: client[name] for label, name in names.items()}


def _hottest(measured: Measurements) -> list[dict[str, Any]]:
    hottest = []
    for switch, blocks in measured.controller.get("hottest", {}).items():
        for block in blocks:
            turns = [(round(t_s - measured.start_s, 2), turn) for t_s, turn in block["turns"]]
            hottest.append({"switch": switch, **block, "turns": turns})
    return hottest


def topology_of(scenario: Scenario) -> dict[str, Any]:
    """Return the network as the page draws it: vertices by kind, and links with their rates in bit/s."""
    fabric = scenario.fabric
    return {
        "nodes": list(fabric.nodes),
        "addresses": {name: str(host.ipv4) for name, host in fabric.hosts.items()},
        "stores": list(fabric.stores),
        "switches": list(fabric.switches),
        "links": [
            {"link": f"{switch}-{port.peer}", "ends": [switch, port.peer], "rate_bit_s": port.rate_bit_s}
            for switch in fabric.switches
            for port in fabric.ports(switch)
        ],
    }


def write_details(
    path: Path, about: dict[str, object], scenario: Scenario, repeats: Repeats, details: dict[str, Details]
) -> dict[str, Any]:
    """Write the details of the typical runs and return them; a reader never sees half of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "about": about,
        "topology": topology_of(scenario),
        "runs": {
            name: {"result": asdict(result), **asdict(details[name])}
            for name, result in repeats.typical().items()
        },
    }
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content) + "\n", encoding="utf-8")
    part.replace(path)
    return content
