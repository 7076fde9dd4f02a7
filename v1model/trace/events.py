"""Trace events and filters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_PATTERN_BYTES = 256  # TRACE_PATTERN_BYTES in runtime/switch.h
_PATTERN = re.compile(r"(?:[0-9a-fA-F*]{2})*")


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One step of one packet.

    `packet` numbers the traced packets that came in, from 1. `copy` numbers the packet itself, its clones,
    replicas, and resubmitted or recirculated ones. `time_us` is since the switch's start. `kind`, `name` and
    `values` are:

    received, sent    values: port, frame (bytes)
    state             name of the parser state that begins
    extract           name of the header; values: its fields (of a varbit its bits)
    parsed            values: error (its name)
    control           name: ingress or egress
    table             name; values: key (by name), hit, action, arguments (by name), and of a hit
                      matches, priority, member, group as far as there are any
    call              name of the extern function or method
    assign            name of the field; values: value
    copied            values: cause, of (the copy that it was made from)
    queued            values: port, instance (replication id)
    dropped           values: cause, as in Switch.statistics()
    """

    packet: int
    copy: int
    time_us: int
    kind: str
    name: str = ""
    values: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Filter of packets to trace: those into `port` (None: any) whose frame begins with `frame`.

    `frame` has hex digits, `*` for any digit; spaces are ignored. Raises ValueError.
    """

    port: int | None = None
    frame: str = ""

    def __post_init__(self) -> None:
        if not _PATTERN.fullmatch(self._digits()):
            raise ValueError(f"{self.frame!r} is not an even number of hex digits and *")
        if len(self._digits()) > 2 * MAX_PATTERN_BYTES:
            raise ValueError(f"a pattern has at most {MAX_PATTERN_BYTES} bytes")

    def takes(self, port: int, frame: bytes) -> bool:
        """Return whether a frame that comes into `port` is traced."""
        value, mask = self.pattern()
        if len(frame) < len(mask) or self.port not in (None, port):
            return False
        return all(byte & m == v & m for byte, v, m in zip(frame, value, mask, strict=False))

    def _digits(self) -> str:
        return "".join(self.frame.split())

    def pattern(self) -> tuple[bytes, bytes]:
        """Return (value, mask) of the frame's beginning."""
        digits = self._digits()
        mask = "".join("0" if digit == "*" else "f" for digit in digits)
        return bytes.fromhex(digits.replace("*", "0")), bytes.fromhex(mask)
