"""The benchmark's options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from commands.options import Option, list_of, number, one_of, parse_into, whole, yes_or_no
from experiments.bench.switch.engines import ECHO
from experiments.bench.switch.workloads import WORKLOADS
from topologies.engines import ENGINES

ENGINE_NAMES: Final = (ECHO, *ENGINES)
WORKLOAD_NAMES: Final = tuple(workload.name for workload in WORKLOADS)
_DESCRIPTION: Final = """\
Packets per second of the switch on veth cables: the embedded switch, a bare AF_PACKET echo of the same
frames as the ceiling, and BMv2 where simple_switch_grpc and p4c-bm2-ss are on PATH. Needs root, two cores
and a C compiler. docs/performance.md says what is measured and how to read it."""


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What one `make bench WHAT=switch` measures."""

    engines: tuple[str, ...]
    """Empty: all that are here."""
    workloads: tuple[str, ...]
    rounds: int
    seconds: float
    seed: int
    precedence: bool
    results: Path
    record: bool


def _in_order(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Several of the known names, by commas."""
    parse = list_of(one_of(known))
    return lambda text: tuple(sorted(parse(text), key=known.index))


_OPTIONS: Final = (
    Option(
        "ENGINES", _in_order(ENGINE_NAMES), (), f"of {','.join(ENGINE_NAMES)}; default: all that are here"
    ),
    Option("WORKLOADS", _in_order(WORKLOAD_NAMES), WORKLOAD_NAMES, f"of {','.join(WORKLOAD_NAMES)}"),
    Option("ROUNDS", whole(1, 100), 3, "times that every engine has its turn with every workload"),
    Option("SECONDS", number(0.05, 10), 0.5, "that one run of the load generator sends"),
    Option("SEED", whole(0, 2**31), 1, "of the order of the keys"),
    Option(
        "PRECEDENCE", yes_or_no, True, "1: come before other programs; 0 on a machine that others use, too"
    ),
    Option("RESULTS", Path, Path("results/bench-switch"), "folder for summary.json"),
    Option("RECORD", yes_or_no, False, "1: append the ratios to docs/performance-history.csv"),
)


def parse_options(arguments: Sequence[str]) -> BenchOptions:
    """Options from the command line and the environment; raises OptionError."""
    return parse_into(BenchOptions, _OPTIONS, arguments, "python -m experiments.bench.switch", _DESCRIPTION)
