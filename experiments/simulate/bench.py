"""What simulating costs: CPU time over requests, nodes and hops.

    python -m experiments.simulate.bench [--trace FILE] [--hour]

The load grows with the nodes. With a trace, its first hour on 16 nodes as well; with --hour, an hour of
conversations on 256 nodes, at the rate a node of Mooncake's trace on 16.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Annotated

from networkx import shortest_path_length
from pydantic.dataclasses import dataclass as declared
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, Existing
from commands.options import read
from emulator.result import revision
from scenario import Scenario
from simulator.checks import make_fabric
from simulator.compiled import engine
from simulator.result import SimResult
from simulator.simulation import simulate
from workload.shapes import SHAPES

NODES = (1, 4, 16, 60, 256)
REQUESTS = (500, 2000)
TRACE_REQUESTS = 1_000_000
"""As many as the trace has."""
HOUR_LOAD = 256 / 16
HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Cost:
    """One simulation."""

    scenario: Scenario
    result: SimResult

    @property
    def ms_per_request(self) -> float:
        """Return the CPU time of a request in ms."""
        return 1000 * self.result.cpu_s / self.result.requests

    @property
    def hops(self) -> float:
        """Links from a node to a storage node, mean over all pairs."""
        fabric = make_fabric(self.scenario)
        return mean(
            float(shortest_path_length(fabric.graph, node, store))
            for node in fabric.nodes
            for store in fabric.stores
        )


def cost(scenario: Scenario) -> Cost:
    """Simulate one combination, and return what it cost."""
    return Cost(scenario, simulate(scenario))


def generated(requests: int, nodes: int) -> Scenario:
    """Agents on so many nodes with cache-aware scheduling, the dearest; leaf-spine above a star's ports."""
    fabric = {"topology": "star"} if nodes <= 60 else {"topology": "leafspine", "leaves": 8, "spines": 4}
    return Scenario().changed(
        workload={"requests": requests, "load": nodes / 4, "scheduler": "locality"},
        nodes={"count": nodes},
        network=fabric,
    )


def hour() -> Scenario:
    """An hour of conversations on 256 nodes."""
    requests = round(SHAPES["chat"].requests_per_s * HOUR_LOAD * HOUR_S)
    return generated(requests, 256).changed(workload={"shape": "chat", "load": HOUR_LOAD})


def costs(requests: Sequence[int] = REQUESTS, nodes: Sequence[int] = NODES) -> Iterator[Cost]:
    """Simulate all combinations."""
    for count in nodes:
        for number in requests:
            yield cost(generated(number, count))


@declared(frozen=True, slots=True, kw_only=True, config=DECLARED)
class SimulateBenchOptions:
    """What is simulated besides the agents."""

    trace: Annotated[Path | None, Existing()] = None
    """A trace file."""
    hour: bool = False
    """An hour on 256 nodes as well: minutes."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0, or 2 where the trace can't be used."""
    program = "python -m experiments.simulate.bench"
    return run_command(
        arguments,
        lambda given: read(SimulateBenchOptions, given, program, __doc__ or ""),
        _run,
        interrupted="interrupted",
    )


def _run(screen: Screen, chosen: SimulateBenchOptions) -> int:
    titles = ("workload", "nodes", "hops", "requests", "CPU, s", "CPU a request, ms", "a request and hop, ms")
    table = Table(*titles)
    found = [("agents", one) for one in costs()]
    if chosen.trace:
        scenario = Scenario().changed(
            workload={"trace": str(chosen.trace), "requests": TRACE_REQUESTS, "start_s": 0.0},
            nodes={"count": 16},
        )
        found.append((chosen.trace.name, cost(scenario)))
    if chosen.hour:
        found.append(("chat, an hour", cost(hour())))
    for name, one in found:
        result, hops = one.result, one.hops
        table.add_row(
            name,
            str(one.scenario.nodes.count),
            f"{hops:.1f}",
            f"{result.requests:,}",
            f"{result.cpu_s:.2f}",
            f"{one.ms_per_request:.2f}",
            f"{one.ms_per_request / hops:.3f}",
        )
    screen.show(table)
    screen.show(f"revision {revision()}, {engine()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
