"""Commands that reach a server by the OpenSSH client, with the user's own configuration of it."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cluster.errors import ServerError
from cluster.servers import Server

CONNECT_TIMEOUT_S: Final = 10
ALIVE_INTERVAL_S: Final = 2
"""Seconds between two questions of ssh whether the server is still there."""
ALIVE_MISSED: Final = 5
"""Number of unanswered questions after which the server counts as lost."""
OPTIONS: Final = (
    "-T",
    "-o", "BatchMode=yes",
    "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}",
    "-o", f"ServerAliveInterval={ALIVE_INTERVAL_S}",
    "-o", f"ServerAliveCountMax={ALIVE_MISSED}",
    "-o", "ForwardAgent=no",
    "-o", "ForwardX11=no",
    "-o", "ControlMaster=no",
    "-o", "ControlPath=none",
)  # fmt: skip
"""Options of ssh: no password prompt, no forwarding of agent or X11, one connection for each command."""


def check_client() -> None:
    """Raise ServerError if the client is not installed."""
    if shutil.which("ssh") is None:
        raise ServerError("SERVERS needs the program ssh: apt-get install openssh-client")


def on_server(server: Server, command: Sequence[str]) -> list[str]:
    """Return the command that runs `command` on a server."""
    return [*_client(server), server.ssh, "--", shlex.join(command)]


def in_checkout(
    server: Server, folder: str, command: Sequence[str], environment: Mapping[str, str]
) -> list[str]:
    """Return the command that runs `command` in a folder of a server, with these environment variables."""
    settings = [f"{name}={value}" for name, value in environment.items()]
    text = f"cd {shlex.quote(folder)} && exec {shlex.join(['env', *settings, *command])}"
    return [*_client(server), server.ssh, "--", text]


def forwarding(server: Server, sockets: Mapping[Path, Path]) -> list[str]:
    """Return the command that forwards each socket here to one of the server's."""
    forwards = [word for here, there in sockets.items() for word in ("-L", f"{here}:{there}")]
    settings = ("-N", "-o", "ExitOnForwardFailure=yes", "-o", "StreamLocalBindUnlink=yes")
    return [*_client(server), *settings, *forwards, server.ssh]


def _client(server: Server) -> list[str]:
    config = [] if server.ssh_config is None else ["-F", str(server.ssh_config)]
    return ["ssh", *config, *OPTIONS]
