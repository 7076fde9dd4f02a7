"""Errors of servers; each message names the server and says what to do."""

from __future__ import annotations

from typing import Any

from commands.errors import ExperimentError


class ServerError(ExperimentError):
    """A server that can't be used, or that refused what it was asked."""


class ServerLostError(ServerError):
    """A server's connection ended while a network was on it."""

    def __init__(self, server: str, reason: str) -> None:
        self.server, self.reason = server, reason
        super().__init__(
            f"server {server} was lost: its connection ended ({reason}). The run was ended on the other "
            "servers, too; nothing of it is left there"
        )

    def summary(self) -> dict[str, Any]:
        """Return the error as summary.json has it."""
        return {"server": self.server, "how": "was lost", "last_lines": [self.reason]}
