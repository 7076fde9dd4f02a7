"""Options of warnings that are shown, and that refuse a program: `-Wno-KIND`, `--Werror` and p4c's forms."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from v1model.frontend import render_one
from v1model.frontend.warn import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from v1model.errors import CompileWarning

WARNING_OPTIONS = """\
warnings:
  -w, --Wdisable                  show none
  -Wno-KIND, --Wdisable=KIND      not of this kind
  -Werror, --Werror               any warning refuses the program
  -Werror=KIND, --Werror=KIND     warnings of this kind do

kinds:
""" + "\n".join(f"  {kind:24}  {meaning}" for kind, meaning in KINDS.items())

ALL = frozenset({"*"})


@dataclass(frozen=True)
class WarningOptions:
    """Kinds of warnings that are hidden, and those that are errors; `ALL` is all of them."""

    hidden: frozenset[str] = frozenset()
    errors: frozenset[str] = frozenset()

    def show(self, warnings: Iterable[CompileWarning]) -> bool:
        """Write the warnings to standard error; returns whether none of them refuses the program."""
        refused = 0
        for warning in warnings:
            is_error = self.errors == ALL or warning.kind in self.errors
            if is_error or not (self.hidden == ALL or warning.kind in self.hidden):
                print(render_one(warning), file=sys.stderr)
                refused += is_error
        if refused:
            print(f"error: {refused} of these warnings are errors (--Werror)", file=sys.stderr)
        return not refused


def take_warning_options(arguments: list[str]) -> tuple[list[str], WarningOptions]:
    """Return the arguments without those about warnings, and the options that those give.

    Unknown kinds are p4c's.
    """
    hidden: set[str] = set()
    errors: set[str] = set()
    rest = []
    for argument in arguments:
        name, equals, kind = argument.partition("=")
        if name in ("--Wdisable", "-Wdisable", "-w"):
            hidden |= {kind} if equals else ALL
        elif argument.startswith("-Wno-"):
            hidden.add(argument.removeprefix("-Wno-"))
        elif name in ("--Werror", "-Werror"):
            errors |= {kind} if equals else ALL
        else:
            rest.append(argument)
    return rest, WarningOptions(_whole(hidden), _whole(errors))


def _whole(kinds: set[str]) -> frozenset[str]:
    return ALL if kinds >= ALL else frozenset(kinds)
