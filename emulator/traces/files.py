"""Writing of a run's traces: results/run/traces/NAME.otlp.json and NAME.perfetto.json."""

from __future__ import annotations

import heapq
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emulator.traces.chrome import to_chrome
from emulator.traces.journeys import Journey, find_journeys
from emulator.traces.otlp import to_otlp
from emulator.traces.sightings import read_sightings
from emulator.traces.spans import Clock, Tracer
from topologies.fabric import Fabric

MOST_SPANS = 100_000
"""Number of spans in a file; requests that were slowest to their first token get fragments first."""


def write_traces(
    directory: Path,
    name: str,
    fabric: Fabric,
    captures: Mapping[str, tuple[Path, Mapping[int, str]]],
    records: Mapping[str, Sequence[Mapping[str, Any]]],
    clock: Clock,
    about: dict[str, str],
) -> int:
    """Write both files; returns how many requests have no fragments in them for lack of space.

    `captures` has by switch the capture of all its ports, and the peer behind each interface's index.
    `records` has each node's requests.
    """
    journeys = _journeys(fabric, captures)
    homes = {str(fabric.hosts[name].ipv4): name for name in fabric.answering}
    tracer = Tracer(clock, name + json.dumps(about), homes, MOST_SPANS)
    numbered = [
        (node, number, record) for node, part in records.items() for number, record in enumerate(part)
    ]
    for node, number, record in sorted(numbered, key=lambda one: -(one[2]["ttft_s"] or 0.0)):
        tracer.request(node, number, record, journeys.get(node, {}))
    spans = tracer.finish()
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / f"{name}.otlp.json", to_otlp(spans, about))
    _write(directory / f"{name}.perfetto.json", to_chrome(spans, about))
    return len({span.trace_id for span in spans if "weir.fragments.left_out" in span.attributes})


def _journeys(
    fabric: Fabric, captures: Mapping[str, tuple[Path, Mapping[int, str]]]
) -> dict[str, dict[bytes, list[Journey]]]:
    """Return the journeys by node and key."""
    sightings = heapq.merge(
        *(read_sightings(file, switch, peers) for switch, (file, peers) in captures.items()),
        key=lambda seen: seen.t_ns,
    )
    nodes = {fabric.hosts[node].ipv4.packed: node for node in fabric.nodes}
    found: dict[str, dict[bytes, list[Journey]]] = defaultdict(lambda: defaultdict(list))
    for journey in find_journeys(sightings, nodes):
        found[journey.node][journey.key].append(journey)
    return found


def _write(path: Path, content: object) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
    part.replace(path)
