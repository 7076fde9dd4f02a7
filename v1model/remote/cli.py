"""simple_switch_CLI's commands, over P4Runtime (`weir-cli`).

weir-cli --address 127.0.0.1:9559 < commands.txt
weir-cli --address unix:weir.sock -c 'register_read In.seen 0'
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from v1model import without_effect
from v1model.command_usage import check_count, usage
from v1model.dataplane import DataPlaneError
from v1model.errors import CompileError
from v1model.multicast_nodes import MulticastNodes
from v1model.remote.data_plane import RemoteDataPlane, running_program
from v1model.remote.device import REFUSED, DeviceCommands
from v1model.remote.direct import CounterAndMeterCommands
from v1model.remote.handles import SessionHandles, SwitchHandles
from v1model.remote.own_calls import OwnCalls, RemoteNodes, p4runtime_device
from v1model.remote.profiles import ProfileCommands
from v1model.remote.queues import QueueCommands
from v1model.remote.session import Session
from v1model.remote.tables import TableCommands
from v1model.remote.value_sets import ValueSetCommands
from v1model.stf.switch_commands import SwitchCommands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Command = Callable[[Sequence[str]], None]

OK, FAILURE = 0, 1
PROMPT = "RuntimeCmd: "


class DataPlaneCommands:
    """Commands of simple_switch_CLI, one line at a time. Raises ValueError or DataPlaneError."""

    def __init__(
        self,
        data_plane: RemoteDataPlane,
        say: Callable[[str], None],
        nodes: RemoteNodes | None = None,
        handles: SwitchHandles | None = None,
        more: Mapping[str, Command] | None = None,
    ) -> None:
        """Make the commands; `more` has others by name.

        `nodes` and `handles` are those of a switch that stores its multicast nodes and the handles of its
        entries.
        """
        self._say = say
        tables = TableCommands(data_plane, say, handles or SessionHandles(data_plane))
        # The commands use no more of a data plane than RemoteDataPlane has.
        self._switch = SwitchCommands(data_plane, say, nodes)  # type: ignore[arg-type]
        self._named: dict[str, Command] = {
            **tables.commands,
            **ProfileCommands(data_plane, tables, say).commands,
            **ValueSetCommands(data_plane, say).commands,
            **CounterAndMeterCommands(data_plane, tables, self._switch, say).commands,
            **QueueCommands(data_plane).commands,
            **(more or {}),
        }

    def run(self, line: str) -> None:
        words = line.split("#", 1)[0].split()
        if not words:
            return
        name, arguments = words[0], words[1:]
        if name in self._named:
            check_count(name, arguments)
            self._named[name](arguments)
        elif name in ("help", "?"):
            self._help(arguments)
        elif name in REFUSED:
            raise ValueError(f"{name} is not supported: {REFUSED[name]}")
        else:
            self._switch.run(name, arguments)

    def _help(self, names: Sequence[str]) -> None:
        """Print the usage of the named commands, or of all commands."""
        known = {*self._named, *self._switch.names()}
        if unknown := set(names) - known - REFUSED.keys():
            raise ValueError(f"unknown command {', '.join(sorted(unknown))}")
        for name in names or sorted(known):
            self._say(usage(name) if name in known else f"{name} is not supported: {REFUSED[name]}")


class Commands:
    """Commands for a switch behind P4Runtime, whose program may change: then handles count from 0 again.

    Raises CompileError and OSError, too.
    """

    def __init__(self, session: Session, source: Path | None, say: Callable[[str], None]) -> None:
        """Connect to the switch; `source` is its program, if the switch can't give it."""
        self._session, self._source, self._say = session, source, say
        self._load()

    def _load(self) -> None:
        """Read the program that the switch runs."""
        program, schema = running_program(self._session, self._source)
        data_plane, calls = RemoteDataPlane(self._session, program, schema), OwnCalls(self._session)
        device = DeviceCommands(self._session, data_plane, calls, self._say, self._load)
        nodes = RemoteNodes(calls, MulticastNodes(data_plane))
        handles = SwitchHandles(calls, SessionHandles(data_plane), program.actions)
        self._commands = DataPlaneCommands(data_plane, self._say, nodes, handles, device.commands)

    def run(self, line: str) -> None:
        self._commands.run(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the commands; returns 0 if every command succeeded, 1 if one failed."""
    options = _options(arguments)
    try:
        if options.thrift_port is not None:
            options.device_id, options.address = p4runtime_device(options.thrift_port)
    except (OSError, EOFError, DataPlaneError) as error:
        print(f"weir-cli: no weir-switch with --thrift-port {options.thrift_port}: {error}", file=sys.stderr)
        return FAILURE
    session = Session(options.address, options.device_id, options.election_id)
    try:
        commands = Commands(session, options.program, print)
        if options.command:
            return _run(commands, [options.command])
        return _run(commands, _lines(), is_script=not sys.stdin.isatty())
    except CompileError as error:
        print(f"weir-cli: {error.render()}", file=sys.stderr)
    except DataPlaneError as error:
        print(f"weir-cli: {options.address}: {error.code}: {error}", file=sys.stderr)
    finally:
        session.close()
    return FAILURE


def _run(commands: Commands, lines: Iterable[str], *, is_script: bool = False) -> int:
    result = OK
    for number, line in enumerate(lines, 1):
        if line.strip() in ("EOF", "exit", "quit"):
            break
        try:
            commands.run(line)
        except CompileError as error:
            print(f"Error: {error.render()}", file=sys.stderr)
            result = FAILURE
        except (ValueError, DataPlaneError, OSError) as error:
            where = f" (line {number}: {line.strip()[:80]})" if is_script else ""
            print(f"Error: {error}{where}", file=sys.stderr)
            result = FAILURE
    return result


def _lines() -> Iterable[str]:
    """Yield the lines of standard input, with a prompt on a terminal."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            return


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="weir-cli", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--address", default="127.0.0.1:9559", help="the P4Runtime server (default: %(default)s)"
    )
    parser.add_argument(
        "--thrift-port", type=int, metavar="N", help="the switch with this Thrift port, instead of --address"
    )
    without_effect.accept(parser, {"--thrift-ip": None, "--json": None, "--pre": None})
    parser.add_argument("--device-id", type=int, default=0, metavar="N")
    parser.add_argument(
        "--election-id",
        type=int,
        default=1,
        metavar="N",
        help="to write beside a controller",
    )
    parser.add_argument(
        "--program", type=Path, metavar="PROGRAM.p4", help="the switch's program, for BMv2: it can't tell"
    )
    parser.add_argument("-c", "--command", help="one command instead of standard input")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
