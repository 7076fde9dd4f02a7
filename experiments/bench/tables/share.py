"""CPU time of a packet in the program alone: the switch's library form, without ports and kernel."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import Any, Final

from experiments.bench.switch import native_programs
from experiments.bench.tables.cases import PROGRAM, Case
from experiments.bench.tables.entries import FRAME_BYTES, PORTS, Content
from v1model.compile import compile_p4
from v1model.switch import Switch

REPLAY: Final = Path(__file__).parent / "native" / "replay.c"
ROUNDS: Final = 25
"""Number of times that all frames go in, in one measurement."""


class Loaded:
    """Switch in library form with a case's entries. Use as a context manager."""

    def __init__(self, case: Case, content: Content) -> None:
        self._frames = b"".join(content.frames)
        self._count = len(content.frames)
        defines = {name: str(value) for name, value in case.defines.items()}
        self._switch = Switch(compile_p4(PROGRAM, defines=defines))
        start = time.monotonic()
        for entry in content.entries:
            self._switch.insert(entry)
        self.inserts_per_s = len(content.entries) / (time.monotonic() - start)
        assert [output.port for output in self._switch.inject(1, content.frames[0])] == [PORTS]
        self._replay: Any = ctypes.CDLL(str(native_programs.library(REPLAY))).replay
        self._replay.restype = ctypes.c_uint64

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, *_: object) -> None:
        self._switch.close()

    def packet_ns(self) -> float:
        """Return the CPU time of one packet in ns, from being copied in to lying in the outbox."""
        handle, taken = self._switch.handle, ctypes.c_uint64(0)
        calls = [
            ctypes.cast(function, ctypes.c_void_p)
            for function in (handle.library.inject, handle.library.take_outputs)
        ]
        switch = ctypes.c_void_p(handle.pointer)
        spent_ns = self._replay(
            *calls, switch, self._frames, FRAME_BYTES, self._count, ROUNDS, ctypes.byref(taken)
        )
        packets = ROUNDS * self._count
        # Every packet is forwarded: a record of 16 bytes and the frame, padded.
        assert taken.value == packets * (16 + (FRAME_BYTES + 3) // 4 * 4)
        return float(spent_ns / packets)
