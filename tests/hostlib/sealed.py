"""A tenant of tests, and blocks as it writes them."""

from __future__ import annotations

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.content import block_content, sealed_block
from hostlib.protocol.seal import Seal

TENANT = 7
SEAL = Seal(TENANT, b"a secret of sixteen bytes or more")
WRITE = 0x1234


def place(key: bytes) -> Place:
    return Place(TENANT, key)


def fragments(
    op: int,
    key: bytes,
    content: bytes,
    write: int = WRITE,
    flags: int = 0,
    parent: int = 0,
    seal: Seal = SEAL,
) -> list[wire.Message]:
    """All fragments of a block, as PUTs or VALUEs."""
    block = sealed_block(seal, key, write, content)
    return [
        wire.Message(
            op, key, at, block.fragments, flags, parent=parent, tenant=seal.tenant, content=write,
            tag=block.tag(at), value=block.value(at),
        )
        for at in range(block.fragments)
    ]  # fmt: skip


def derived_fragments(op: int, key: bytes, length: int, flags: int = 0) -> list[wire.Message]:
    """Of a block of emulated content."""
    return fragments(op, key, block_content(key, length), flags=flags)
