"""The benchmark's options: command line, environment (as make sets it), defaults; in that order."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from experiments.bench_switch.engines import ECHO
from experiments.bench_switch.errors import BenchError
from experiments.bench_switch.workloads import WORKLOADS
from experiments.options import add_verbosity, yes_or_no
from topologies.engines import ENGINES

ENGINE_NAMES: Final = (ECHO, *ENGINES)
_DESCRIPTION: Final = """\
Packets per second of the switch on veth cables: the embedded switch, a bare AF_PACKET echo of the same
frames as the ceiling, and BMv2 where simple_switch_grpc and p4c-bm2-ss are on PATH. Needs root, two cores
and a C compiler. docs/performance.md says what is measured and how to read it."""
_EPILOG: Final = """\
Each option is also a variable of make and of the environment, for example:
  make bench-switch ROUNDS=1 WORKLOADS=hits ENGINES=echo,embedded"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """What one `make bench-switch` measures."""

    engines: tuple[str, ...]
    """Empty: all that are here."""
    workloads: tuple[str, ...]
    rounds: int
    seconds: float
    seed: int
    results: Path
    record: bool
    precedence: bool


def parse_options(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> BenchOptions:
    """Options from the command line and the environment; raises BenchError."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.bench_switch",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    workloads = ",".join(workload.name for workload in WORKLOADS)
    for variable, default, text in (
        ("ENGINES", "", f"of {','.join(ENGINE_NAMES)} (default: all that are here)"),
        ("WORKLOADS", workloads, f"of {workloads} (default: all)"),
        ("ROUNDS", "3", "times that every engine has its turn with every workload (default: 3)"),
        ("SECONDS", "0.5", "that one run of the load generator sends (default: 0.5)"),
        ("SEED", "1", "of the order of the keys (default: 1)"),
        (
            "PRECEDENCE",
            "yes",
            "whether to come before other programs; no on a shared machine (default: yes)",
        ),
        ("RESULTS", "results/bench-switch", "folder for summary.json (default: results/bench-switch)"),
    ):
        chosen = environment.get(variable) or default
        parser.add_argument(f"--{variable.lower()}", default=chosen, metavar="X", help=text)
    parser.add_argument(
        "--record",
        action="store_true",
        default=bool(environment.get("RECORD")),
        help="append the ratios to docs/performance-history.csv (RECORD=1)",
    )
    add_verbosity(parser)
    given = parser.parse_args(arguments)
    return BenchOptions(
        engines=_names("ENGINES", given.engines, ENGINE_NAMES),
        workloads=_names("WORKLOADS", given.workloads or workloads, tuple(workloads.split(","))),
        rounds=int(_number("ROUNDS", given.rounds, 1, 100, whole=True)),
        seconds=_number("SECONDS", given.seconds, 0.05, 10),
        seed=int(_number("SEED", given.seed, 0, 2**31, whole=True)),
        results=Path(given.results),
        record=given.record,
        precedence=yes_or_no(given.precedence),
    )


def _names(variable: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
    """In the order of `known`."""
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    for name in chosen:
        if name not in known:
            raise BenchError(f"{variable}: there is no {name!r}: choose of {', '.join(known)}")
    return tuple(name for name in known if name in chosen)


def _number(variable: str, text: str, least: float, most: float, whole: bool = False) -> float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        raise BenchError(f"{variable}: must be a {'whole ' if whole else ''}number, not {text!r}") from None
    if not least <= value <= most:
        raise BenchError(f"{variable}: must be from {least:g} to {most:g}, not {text}")
    return value
