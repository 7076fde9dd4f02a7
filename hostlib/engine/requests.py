"""Requests of a guest process to the process with the node's client, checked before anything is done."""

from __future__ import annotations

import math
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any, Final

from hostlib.protocol.hints import MAX_LIFETIME_S, MAX_RETAIN_S, Hint
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import KEY_BYTES, MAX_BLOCK_BYTES, MAX_REPLICAS

if TYPE_CHECKING:
    from hostlib.engine.frames import Frame

MAX_QUESTIONS: Final = 256
"""Number of blocks that one request asks about."""
MAX_WITHIN_S: Final = 3600.0
_MAX_NUMBER = 1 << 53
_U16, _U32 = 0xFFFF, 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Get:
    """Fetch a block into `room` bytes; None: of any length."""

    number: int
    block: BlockRef
    room: int | None

    @property
    def size(self) -> int:
        """Return the bytes that it may need."""
        return MAX_BLOCK_BYTES if self.room is None else self.room


@dataclass(frozen=True, slots=True)
class Put:
    """Store a block."""

    number: int
    block: BlockRef
    content: bytes
    replicas: int
    at_least: int | None

    @property
    def size(self) -> int:
        """Return the bytes that it needs."""
        return len(self.content)


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a block."""

    number: int
    block: BlockRef
    size: int = 0


@dataclass(frozen=True, slots=True)
class Hinted:
    """Tell the homes of a block what would be good to do with it."""

    number: int
    block: BlockRef
    hint: Hint
    seconds: int
    size: int = 0


@dataclass(frozen=True, slots=True)
class Present:
    """Ask whether blocks are there."""

    number: int
    blocks: list[BlockRef]
    within_s: float
    size: int = 0


@dataclass(frozen=True, slots=True)
class Cancel:
    """Give up the request of this number."""

    number: int


Request = Get | Put | Delete | Hinted | Present


def parse_request(frame: Frame) -> Request | Cancel:
    """Return the request in a frame; raises ValueError if there is none."""
    said, body = frame
    number, what = _whole(said.get("n"), 1, _MAX_NUMBER), said.get("do")
    if what == "cancel":
        return Cancel(number)
    if what == "present":
        blocks = said.get("blocks")
        if not isinstance(blocks, list) or len(blocks) > MAX_QUESTIONS:
            raise ValueError(f"not a list of at most {MAX_QUESTIONS} blocks")
        return Present(number, [parse_block(one) for one in blocks], _seconds(said.get("within_s")))
    block = parse_block(said.get("block"))
    if what == "put":
        at_least = said.get("at_least")
        return Put(
            number,
            block,
            body,
            _whole(said.get("replicas"), 1, MAX_REPLICAS),
            None if at_least is None else _whole(at_least, 1, MAX_REPLICAS),
        )
    if what == "delete":
        return Delete(number, block)
    if what == "hint":
        hint = Hint(_whole(said.get("hint"), 1, max(Hint)))
        longest_s = MAX_LIFETIME_S if hint is Hint.EXPIRE else MAX_RETAIN_S
        return Hinted(number, block, hint, _whole(said.get("seconds"), 0, longest_s))
    if what == "get":
        room = said.get("room")
        return Get(number, block, None if room is None else _whole(room, 0, MAX_BLOCK_BYTES))
    raise ValueError(f"nothing called {what!r} can be asked for")


def block_fields(block: BlockRef) -> list[Any]:
    """Return a block as it is named in a request."""
    return [block.key.hex(), *block[1:]]


def parse_block(named: Any) -> BlockRef:
    """Return the block that is named so; raises ValueError if it is none that a message can name."""
    if not isinstance(named, list) or len(named) != len(BlockRef._fields) or not isinstance(named[0], str):
        raise ValueError("not the fields of a block")
    name, depth, chain_blocks, parent, recompute_ms, homes = named
    key = bytes.fromhex(name)
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key of {len(key)} bytes")
    if homes:
        raise ValueError("a guest does not say where a block is")
    return BlockRef(
        key,
        _whole(depth, 0, _U16),
        _whole(chain_blocks, 0, _U16),
        _whole(parent, 0, _U32),
        _whole(recompute_ms, 0, _U16),
    )


def parse_addresses(given: Any, most: int) -> list[str]:
    """Return at most so many IPv4 addresses; raises ValueError for anything else."""
    if not isinstance(given, list) or len(given) > most:
        raise ValueError("not a list of addresses")
    return [str(IPv4Address(one)) for one in given if isinstance(one, str)]


def _whole(given: Any, least: int, most: int) -> int:
    if type(given) is not int or not least <= given <= most:
        raise ValueError(f"{str(given)[:40]!r} is no whole number from {least} to {most}")
    return given


def _seconds(given: Any) -> float:
    if type(given) not in (int, float) or not math.isfinite(given) or not 0 <= given <= MAX_WITHIN_S:
        raise ValueError("not a number of seconds")
    return float(given)
