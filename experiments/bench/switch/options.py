"""The benchmark's options."""

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
    """What one `make bench WHAT=switch` measures."""

    engines: tuple[Annotated[str, OneOf(ENGINE_NAMES)], ...] = ()
    """What is measured; default: all that are here."""
    workloads: tuple[Annotated[str, OneOf(WORKLOAD_NAMES)], ...] = WORKLOAD_NAMES
    """What is sent."""
    rounds: Annotated[int, Within(1, 100)] = 3
    """Times that every engine has its turn with every workload."""
    seconds: Annotated[float, Within(0.05, 10)] = 0.5
    """That one run of the load generator sends."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Of the order of the keys."""
    precedence: bool = True
    """1: come before other programs; 0 on a machine that others use, too."""
    results: Path = Path("results/bench-switch")
    """Folder for summary.json."""
    record: bool = False
    """1: append the ratios to docs/performance-history.csv."""


def parse_options(arguments: Sequence[str]) -> BenchOptions:
    """Options from the command line and the environment; raises OptionError."""
    options = read(BenchOptions, arguments, "weir bench switch", _DESCRIPTION)
    return replace(
        options,
        engines=tuple(name for name in ENGINE_NAMES if name in options.engines),
        workloads=tuple(name for name in WORKLOAD_NAMES if name in options.workloads),
    )
