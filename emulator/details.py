"""results/run/details.json: what the page is drawn from, and what a reader who wants another figure loads."""

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
"""Of a mode in the file; more are thinned evenly, which leaves the distribution as it is."""


@dataclass(frozen=True, slots=True)
class Details:
    """One play in full."""

    timeline: list[dict[str, Any]]
    """emulator.timeline.Sample, one each half second."""
    requests: list[dict[str, Any]]
    """hostlib.node.request_record.RequestRecord and the node that served it."""
    get_ms: list[float]
    """Block requested to block checked, in order of size."""
    fragments: dict[str, dict[str, int]] = field(default_factory=dict)
    """By node: those received by origin, those that came merged, those asked for again."""
    hottest: list[dict[str, Any]] = field(default_factory=list)
    """What the pools did with the blocks wanted most, and why (controller.process); times of the run."""


def details_of(measured: Measurements) -> Details:
    """Return the details of what the processes measured."""
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
    told = []
    for switch, blocks in measured.controller.get("hottest", {}).items():
        for block in blocks:
            turns = [(round(t_s - measured.start_s, 2), turn) for t_s, turn in block["turns"]]
            told.append({"switch": switch, **block, "turns": turns})
    return told


def topology_of(scenario: Scenario) -> dict[str, Any]:
    """Return the network as the page draws it: vertices by kind, links with their rates in bit/s."""
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
    """Write the details of the typical plays and return them; a reader never sees half of the file."""
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
