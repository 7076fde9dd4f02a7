"""make fuzz: hostile datagrams for the hosts' core; hostile packets, requests and texts for P4 programs.

Both are built with ASan and UBSan. The exit code is that of the first that found something, or 0.
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
    """What `make fuzz` tries (v1model.fuzz)."""

    packets: Annotated[int, Within(0, 10**9)] = 1_000_000
    """Hostile packets for each program."""
    requests: Annotated[int, Within(0, 10**9)] = 2000
    """Hostile P4Runtime requests for each program."""
    texts: Annotated[int, Within(0, 10**9)] = 500
    """Changed texts of each program."""
    programs: Annotated[Path | None, Existing()] = None
    """A program, or a folder of them; default: the pool's."""


def main(arguments: Sequence[str]) -> int:
    """Return exit code 0, the first part's that found something, or 2 for bad input."""
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
