"""The agents of all servers together: they are started, asked and ended at the same time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from cluster.errors import ServerError
from cluster.refusals import Found
from cluster.session import Session
from cluster.ssh import in_checkout

SENT_VARIABLES: Final = ("WEIR_LOG", "WEIR_VALUE_BYTES", "WEIR_PURE")
"""Variables of this environment that processes on servers get, too."""
AGENT: Final = (".venv/bin/python", "-m", "cluster.agent")

Result = TypeVar("Result")


class Agents:
    """Sessions with all servers.

    Use as a context manager: leaving it ends all agents, which remove what they made.
    """

    def __init__(self, servers: Sequence[Found], logs: Path) -> None:
        """Open no session yet. `logs` is the folder for the agents' stderr."""
        self.servers: Mapping[str, Found] = {found.server.name: found for found in servers}
        self.sessions: dict[str, Session] = {}
        self.cores: dict[str, float] = {}
        """Number of cores that processes may use, by server; quotas of control groups are considered."""
        self._logs = logs
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Agents:
        """Start all agents; raises ServerError if one can't build networks or did not start."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.__exit__)
            for name, found in self.servers.items():
                words = self._stack.enter_context((self._logs / f"agent-{name}.log").open("w+b"))
                environment = {key: os.environ[key] for key in SENT_VARIABLES if os.environ.get(key)}
                command = in_checkout(found.server, found.folder, AGENT, environment)
                self.sessions[name] = Session(name, command, words).__enter__()
            self.cores = self.on_all(lambda name, session: float(session.ask("hello")["cores"]))
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with ThreadPoolExecutor(max_workers=max(1, len(self.sessions))) as pool:
            list(pool.map(Session.__exit__, self.sessions.values()))
        self._stack.close()

    def on_all(self, do: Callable[[str, Session], Result]) -> dict[str, Result]:
        """Run a function on all servers at the same time; returns the results by server."""
        with ThreadPoolExecutor(max_workers=len(self.sessions)) as pool:
            futures = {name: pool.submit(do, name, session) for name, session in self.sessions.items()}
        problems = [error for one in futures.values() if isinstance(error := one.exception(), ServerError)]
        if len(problems) > 1:
            raise ServerError("\n".join(map(str, problems)))
        return {name: one.result() for name, one in futures.items()}
