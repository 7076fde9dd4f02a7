"""Plans: what the load generator sends and takes for a reply, in the form that it reads (native/plan.h)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAGIC: Final = b"weirplan"
NO_PORT: Final = 0xFFFF_FFFF
MOST_PORTS: Final = 16
MOST_FRAME_BYTES: Final = 10_240
NUMBER_BYTES: Final = 4

_HEADER = struct.Struct("<8s9I")
_COPY = struct.Struct("<HHHxx")
_FRAME = struct.Struct("<HH")


@dataclass(frozen=True, slots=True)
class Copy:
    """Field that an answer copies from its request, as byte offsets into the two frames."""

    source: int
    target: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to every frame at one port, where the generator acts as the storage node."""

    port: int
    template: bytes
    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """Frame and the port that it goes out of."""

    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """Frames that are sent over and over, each with a new number in it."""

    ports: int
    frames: Sequence[Frame]
    number_offset: int
    """Byte offset of the number, in requests and in replies."""
    reply_bytes: int
    """Length in bytes that a frame must have to count as a reply."""
    key_offset: int = 0
    """Byte offset in requests at which the number is written into the key as well; 0: nowhere.

    Each request then asks for a key that was not asked for before.
    """
    group: int = 1
    """Number of successive frames, out of ports 0, 1, ..., with the same number; each port gets a reply."""
    answers: Answers | None = None


def encode(plan: Plan) -> bytes:
    """Return the bytes of the plan's file; raises ValueError if the generator would refuse it."""
    if not 0 < plan.ports <= MOST_PORTS:
        raise ValueError(f"a plan has 1 to {MOST_PORTS} ports, not {plan.ports}")
    if not plan.frames or len(plan.frames) % plan.group:
        raise ValueError(f"{len(plan.frames)} frames are not whole groups of {plan.group}")
    answers = plan.answers or Answers(NO_PORT, b"", ())
    header = _HEADER.pack(
        MAGIC, plan.ports, plan.group, plan.number_offset, plan.key_offset, plan.reply_bytes,
        answers.port, len(answers.template), len(answers.copies), len(plan.frames),
    )  # fmt: skip
    copies = b"".join(_COPY.pack(copy.source, copy.target, copy.bytes) for copy in answers.copies)
    return b"".join(
        (header, copies, answers.template, *(_encode_frame(plan, frame) for frame in plan.frames))
    )


def _encode_frame(plan: Plan, frame: Frame) -> bytes:
    needed = max(plan.number_offset, plan.key_offset) + NUMBER_BYTES
    if not needed <= len(frame.data) <= MOST_FRAME_BYTES or not 0 <= frame.port < plan.ports:
        raise ValueError(f"a frame of {len(frame.data)} bytes for port {frame.port}")
    return _FRAME.pack(frame.port, len(frame.data)) + frame.data
