"""Options of the benchmark of switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, OneOf, Within
from commands.options import read
from experiments.bench.switch.engines import ECHO
from experiments.bench.switch.workloads import WORKLOADS
from topologies.engines import ENGINES

ENGINE_NAMES: Final = (ECHO, *ENGINES)
WORKLOAD_NAMES: Final = tuple(workload.name for workload in WORKLOADS)
_DESCRIPTION: Final = """\
Packets per second of the switch on veth cables: the embedded switch, a bare AF_PACKET echo of the same
frames as the ceiling, and BMv2 where simple_switch_grpc and p4c-bm2-ss are on PATH. Needs root, two cores
and a C compiler. docs/performance.md says what is measured and how to read it."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class BenchOptions:
    """Options of `make bench WHAT=switch`, which measures packets a second of switches."""

    engines: tuple[Annotated[str, OneOf(ENGINE_NAMES)], ...] = ()
    """Engines to measure; default: all that are installed."""
    workloads: tuple[Annotated[str, OneOf(WORKLOAD_NAMES)], ...] = WORKLOAD_NAMES
    """Kinds of traffic to measure."""
    rounds: Annotated[int, Within(1, 100)] = 3
    """Number of rounds; in each, every engine is measured with every workload."""
    seconds: Annotated[float, Within(0.05, 10)] = 0.5
    """Seconds that the load generator sends in one of its runs."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Seed of the order of the keys."""
    precedence: bool = True
    """1: take precedence over other programs; give 0 on a machine that others use too."""
    results: Path = Path("results/bench-switch")
    """Folder for summary.json."""
    record: bool = False
    """1: append the ratios to docs/performance-history.csv."""


def parse_options(arguments: Sequence[str]) -> BenchOptions:
    """Read the options from the command line and the environment; raises OptionError."""
    options = read(BenchOptions, arguments, "weir bench switch", _DESCRIPTION)
    return replace(
        options,
        engines=tuple(name for name in ENGINE_NAMES if name in options.engines),
        workloads=tuple(name for name in WORKLOAD_NAMES if name in options.workloads),
    )
