"""Option `--version` of the switch's programs: the installed version."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn

DISTRIBUTION = "weir-switch"


class Version(argparse.Action):
    """Action that prints the program's name, version and `const` (what it speaks), and ends the program."""

    def __init__(self, option_strings: Sequence[str], dest: str, const: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, const=const, help="print the version, and end")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """End the program, with exit code 0."""
        print(f"{parser.prog} {installed()} ({self.const})")
        parser.exit()


def installed() -> str:
    """Return the version of the installed distribution; "unknown" if the files were only copied."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"
