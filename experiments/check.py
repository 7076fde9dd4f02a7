"""Check what a command is told before what it needs is installed or compiled.

    python -m experiments.check COMMAND

Make's own check (scripts/variables.awk) needs nothing, and knows each variable by itself. This one reads all
of them as the command will.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from commands.command import Screen, run_command
from commands.options import Source, read
from emulator.options import RunOptions, is_played
from emulator.scenario import make_scenario
from experiments.keys import declared
from scenario import Scenario
from scenario.reading import completed, read_values


def main(arguments: Sequence[str]) -> int:
    """Exit code 0, or 2 where something is refused."""
    return run_command((), lambda _: check(" ".join(arguments)), lambda screen, _: _done(screen))


def check(command: str) -> object:
    """Return the command's options; raises OptionError and its like."""
    kind = declared(command)
    if not issubclass(kind, Scenario):
        return read(kind, (), command, "")
    options = read(kind, (), command, "", Source(read_values, completed, is_played))
    return make_scenario(options) if isinstance(options, RunOptions) else options


def _done(screen: Screen) -> int:
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
