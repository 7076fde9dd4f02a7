"""SERVERS: the machines that carry a network, as a list of names or a TOML file.

ssh_config = "ssh_config"     # for ssh -F, beside this file; default: ssh's own files

[a]
ssh = "root@10.0.0.1"         # destination for ssh; default: the table's name
address = "10.0.0.1"          # where the other servers reach it; default: where ssh reached it
cores = 8                     # cores that may be given work; default: all that its processes may use
folder = "/opt/weir"          # a checkout with its environment; default: one is made

[b]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Any, Final

from commands.errors import OptionError

MAX_SERVERS: Final = 64
MAX_FILE_BYTES: Final = 1 << 20
MAX_CORES: Final = 4096
DESTINATION: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Pattern of destinations for ssh, which takes a word that begins with a hyphen for an option."""
FOLDER: Final = ".cache/weir/checkout"
"""Folder of a server's checkout if none is named, below the user's home."""


@dataclass(frozen=True, slots=True)
class Server:
    """A machine that SERVERS names."""

    name: str
    ssh: str
    ssh_config: Path | None = None
    address: str | None = None
    """IPv4 address at which the other servers reach it; None: the address at which ssh reached it."""
    cores: float | None = None
    """Cores that may be given work; None: all that it has."""
    folder: str | None = None
    """Checkout that a user set up there; None: a copy is made."""


def read_servers(given: Sequence[str]) -> tuple[Server, ...]:
    """Return the servers that SERVERS names; raises OptionError if they can't be read."""
    if len(given) == 1 and (given[0].endswith(".toml") or "/" in given[0]):
        servers = _read_file(Path(given[0]))
    else:
        servers = tuple(Server(_name(text, text), text) for text in given)
    names = [server.name for server in servers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise OptionError(f"SERVERS: {', '.join(twice)} is named twice: name each server once")
    if len(servers) > MAX_SERVERS:
        raise OptionError(f"SERVERS: {len(servers)} servers, and {MAX_SERVERS} are the most: use fewer")
    return servers


def _name(text: str, where: str) -> str:
    """Return the host name of a destination for ssh, without the user; raises OptionError."""
    if not DESTINATION.fullmatch(text):
        raise OptionError(
            f"SERVERS: {where!r} is no server's name: use a name of ~/.ssh/config, host or user@host, by "
            "commas, or a .toml file"
        )
    return text.rpartition("@")[2]


def _read_file(path: Path) -> tuple[Server, ...]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise OptionError(
                f"SERVERS: {path} is longer than {MAX_FILE_BYTES:,} bytes: name a file of servers"
            )
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"SERVERS: {path}: {error.strerror}: name servers by commas, or a file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"SERVERS: {path} is no TOML file: {error}") from None
    config = tables.pop("ssh_config", None)
    if config is not None:
        if not isinstance(config, str) or not (path.parent / config).is_file():
            raise OptionError(f"SERVERS: {path}: ssh_config is no file: {config!r}")
        config = (path.parent / config).resolve()
    servers = tuple(_server(path, name, table, config) for name, table in tables.items())
    if not servers:
        raise OptionError(f"SERVERS: {path} names no server: add a table for each, such as [a]")
    return servers


def _server(path: Path, name: str, table: Any, config: Path | None) -> Server:
    where = f"{path}: [{name}]"
    if not isinstance(table, dict):
        raise OptionError(f"SERVERS: {path}: {name} is no table: write [{name}]")
    known = {"ssh": str, "address": str, "cores": (int, float), "folder": str}
    for key, value in table.items():
        if key not in known:
            raise OptionError(f"SERVERS: {where} has no {key!r}: it takes {', '.join(known)}")
        if not isinstance(value, known[key]) or isinstance(value, bool):  # type: ignore[arg-type]
            raise OptionError(f"SERVERS: {where} {key} can't be {value!r}")
    _name(name, name)
    ssh = table.get("ssh", name)
    _name(ssh, ssh)
    cores, address, folder = table.get("cores"), table.get("address"), table.get("folder")
    if cores is not None and not 0.1 <= cores <= MAX_CORES:
        raise OptionError(f"SERVERS: {where} cores must be from 0.1 to {MAX_CORES}, not {cores:g}")
    if folder is not None and not folder.startswith("/"):
        raise OptionError(f"SERVERS: {where} folder must begin with /, not {folder!r}")
    return Server(name, ssh, config, _address(where, address), cores, folder)


def _address(where: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return str(IPv4Address(text))
    except AddressValueError:
        raise OptionError(f"SERVERS: {where} address must be an IPv4 address, not {text!r}") from None
