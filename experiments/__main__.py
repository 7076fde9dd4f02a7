"""weir: one command for the emulator, the simulator and all experiments.

    weir --help              all commands
    weir run --help          the options of one
    weir run --policy lru    the same as `make run POLICY=lru` in a checkout

Exit code: the command's own; 2 where there is no such command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module

from emulator.result import ROOT, is_checkout, version
from experiments.commands import GROUPS, PROGRAMS


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command that the first argument names. Returns its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given or given[0] in ("-h", "--help"):
        print(usage())
        return 0
    if given[0] == "--version":
        print(f"weir {version()}")
        return 0
    name, *rest = given
    command = PROGRAMS.get(name)
    if command is None:
        near = get_close_matches(name, PROGRAMS, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        return _refused(f"there is no command {name!r}{meant} (weir --help lists all)")
    if command.needs_checkout and not is_checkout():
        return _refused(f"{name} works in a checkout of Weir's repository alone: make {name}")
    try:
        run: Callable[[Sequence[str]], int] = import_module(command.program).main
    except ModuleNotFoundError as error:
        if (ROOT / str(error.name).partition(".")[0]).is_dir():
            raise  # one of the project's own
        return _refused(f"{name} needs the Python package {error.name}, which is not installed")
    return run(rest)


def usage() -> str:
    """Return what `weir --help` says: all commands, by group."""
    width = max(map(len, PROGRAMS))
    parts = ["usage: weir COMMAND [OPTION...]\n\nweir COMMAND --help lists the options of a command."]
    for group in GROUPS:
        listed = {name: command.text for name, command in PROGRAMS.items() if command.group == group}
        lines = [f"  {name:{width}}  {text}" for name, text in listed.items()]
        parts.append("\n".join([f"{group}:", *lines]))
    return "\n\n".join(parts)


def _refused(reason: str) -> int:
    print(f"weir: {reason}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
