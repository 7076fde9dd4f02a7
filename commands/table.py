"""The generated table of all commands' variables, variables.tsv, which make's check reads as well."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).with_name("variables.tsv")

INTERNAL: Final = frozenset({"COMPILED_FROM", "FUZZ_SANITIZED"})
"""Variables that processes of Weir set for one another."""


@cache
def known_variables() -> frozenset[str]:
    """Return the names of all variables of all commands, without their prefix."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()[1:]
    return INTERNAL | {line.split("\t")[1] for line in lines}
