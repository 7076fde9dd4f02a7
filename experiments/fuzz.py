"""make fuzz: send hostile datagrams to the hosts' core; hostile packets, requests and texts to P4 programs.

Core and programs are built with ASan and UBSan. The exit code is that of the first part that finds something,
or 0.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.command import Screen, run_command
from commands.declarations import DECLARED, Existing, Within
from commands.options import read
from emulator.result import PROGRAM
from hostlib.tools import fuzz as datagrams
from v1model.fuzz import __main__ as switch


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class FuzzOptions:
    """Options of `make fuzz`, which tries hostile packets, requests and texts (v1model.fuzz)."""

    packets: Annotated[int, Within(0, 10**9)] = 1_000_000
    """Number of hostile packets for each program."""
    requests: Annotated[int, Within(0, 10**9)] = 2000
    """Number of hostile P4Runtime requests for each program."""
    texts: Annotated[int, Within(0, 10**9)] = 500
    """Number of changed texts of each program."""
    programs: Annotated[Path | None, Existing()] = None
    """Program, or folder of programs; default: the pool's program."""


def main(arguments: Sequence[str]) -> int:
    """Run the fuzzers; returns 0, the exit code of the first that finds something, or 2 for bad input."""
    return run_command(arguments, lambda given: read(FuzzOptions, given, "weir fuzz", __doc__ or ""), _run)


def _run(screen: Screen, options: FuzzOptions) -> int:
    counts = [
        f"--packets={options.packets}",
        f"--requests={options.requests}",
        f"--texts={options.texts}",
    ]
    return datagrams.main([]) or switch.main([*counts, str(options.programs or PROGRAM)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
