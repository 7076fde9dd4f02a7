"""The embedded switch in its library form, as the executor's target."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from v1model.backend import Tracing
from v1model.compile import compile_p4
from v1model.switch import Switch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class EmbeddedTarget:
    """Program on a switch without interfaces; packets are run to completion one by one."""

    def __init__(
        self,
        program: Path,
        externs: Path | None = None,
        tracing: Tracing = Tracing.OFF,
        *,
        quick: bool = False,
    ) -> None:
        """Compile and load the program; `quick` is for few packets, not worth an optimised build."""
        self.data_plane = Switch(compile_p4(program, externs=externs, tracing=tracing, quick=quick))
        self._received: dict[int, list[bytes]] = defaultdict(list)

    def __enter__(self) -> EmbeddedTarget:
        return self

    def __exit__(self, *_: object) -> None:
        self.data_plane.close()

    def send(self, port: int, data: bytes) -> None:
        for output in self.data_plane.inject(port, data):
            self._received[output.port].append(output.data)

    def received(self, expected: Mapping[int, int]) -> Mapping[int, Sequence[bytes]]:
        """Return the packets so far; `expected` is for switches that need time."""
        return self._received
