"""What the load generator sends and what it takes for a reply, in the form it reads (native/plan.h)."""

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
    """A field that an answer takes over from its request, as byte offsets into the frames."""

    source: int
    target: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Answers:
    """The storage node that the generator plays at one of its ports: every frame is answered."""

    port: int
    template: bytes
    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame and the port that it goes out of."""

    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """Frames that are sent over and over, each with a new number in it."""

    ports: int
    frames: Sequence[Frame]
    number_offset: int
    """Of the number, in requests and in replies."""
    reply_bytes: int
    """Only frames of this length count as replies."""
    key_offset: int = 0
    """A second place for the number in requests, so that each asks for a key never asked for; 0 for none."""
    group: int = 1
    """So many frames in a row, out of ports 0, 1, ..., carry one number; each port gets its own reply."""
    answers: Answers | None = None


def encode(plan: Plan) -> bytes:
    """Return the file; raises ValueError for what the generator would refuse."""
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
