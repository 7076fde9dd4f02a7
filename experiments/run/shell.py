"""make shell: p4runtime-shell on a running switch (`make run` or `make topo` in another terminal).

p4runtime-shell has an environment of its own, .venv-shell (requirements-shell.in says why).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.command import Screen, run_command
from commands.declarations import DECLARED, Within
from commands.errors import OptionError
from commands.options import read
from emulator.result import ROOT
from topologies.run_records import running

SOCKETS = "*.sock"


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class ShellOptions:
    """The switch that `make shell` talks to, and the shell's election id."""

    address: str = ""
    """Address of the switch's P4Runtime server; by default, that of the newest
    running network's first switch."""
    device_id: Annotated[int, Within(0, 2**63)] = 1
    """Device id of the switch."""
    election_id: Annotated[int, Within(1, 2**63)] = 1
    """Election id of the shell. With 1 it reads beside the controller, which stays primary; with more than
    the controller's it takes over."""


def find_address() -> str | None:
    """Return the P4Runtime address of the newest running network's first switch; None if nothing runs."""
    for directory in running():
        for socket in sorted(directory.glob(SOCKETS)):
            return f"unix:{socket}"
    return None


def main(arguments: Sequence[str]) -> int:
    """Replace this process by p4runtime-shell; return exit code 2 if no switch runs."""

    def parse(given: Sequence[str]) -> ShellOptions:
        return read(ShellOptions, given, "weir shell", __doc__ or "")

    return run_command(arguments, parse, _run)


def _run(screen: Screen, options: ShellOptions) -> int:
    address = options.address or find_address()
    if address is None:
        raise OptionError(
            "no switch is running: start `make topo` in another terminal, or give ADDRESS=host:port"
        )
    device_id, election_id = str(options.device_id), f"0,{options.election_id}"
    screen.say(f"p4runtime-shell on {address}, device {device_id}, election id {election_id}")
    python = str(ROOT / ".venv-shell" / "bin" / "python")
    command = [python, "-m", "p4runtime_sh", "--grpc-addr", address]
    return os.execv(python, [*command, "--device-id", device_id, "--election-id", election_id])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
