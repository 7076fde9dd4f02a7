"""The commands of weir-cli in this process: what their tests share."""

from __future__ import annotations

from v1model.remote.cli import Commands
from v1model.remote.data_plane import RemoteDataPlane, running_program
from v1model.remote.session import Session


class Shell:
    """Commands, and what they say."""

    def __init__(self, address: str) -> None:
        self.session = Session(address, 0, election_id=1)
        program, schema = running_program(self.session, None)
        self.said: list[str] = []
        self.data_plane = RemoteDataPlane(self.session, program, schema)
        self._commands = Commands(self.session, None, self.said.append)

    def close(self) -> None:
        self.session.close()

    def table_id(self, name: str) -> int:
        _, schema = running_program(self.session, None)
        return schema.tables_by_name[name].id

    def __call__(self, *lines: str) -> list[str]:
        self.said.clear()
        for line in lines:
            self._commands.run(line)
        return list(self.said)
