"""weir: the client's command, `weir pool`; all commands of the testbed where that is installed, too.

Both distributions install this same program, so the order in which they are installed makes no difference.
"""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from hostlib.protocol.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LABORATORY: Final = "weir.laboratory"
"""Group of entry points in which the laboratory names its own command."""
USAGE: Final = """\
usage: weir pool [OPTION...] WHAT ...

  pool   list, delete or hint at what a tenant has in a pool (weir pool --help)

This is the client by itself. The package weir adds the emulator, the simulator and the experiments."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line. Returns the exit code, 2 where there is no such command."""
    try:
        return _run(sys.argv[1:] if arguments is None else list(arguments))
    except ConfigError as error:  # as of the size of values, which modules read when they are imported
        print(f"weir: {error}", file=sys.stderr)
        return 2


def _run(given: list[str]) -> int:
    for entry in entry_points(group=LABORATORY):
        whole: Callable[[list[str]], int] = entry.load()
        return whole(given)
    if given[:1] == ["pool"]:
        from hostlib.engine import pool_command

        return pool_command.main(given[1:])
    if not given or given[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    print(f"weir: there is no command {given[0]!r} here\n{USAGE}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
