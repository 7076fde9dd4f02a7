"""Which blocks are interchangeable: the parameters of an engine's KV cache, and the keys made from them.

A block's key is the tenant's keyed hash (`hostlib.seal`) of the parameters, the parent's key and the block's
token ids: any process on any machine derives the same key for the same prefix, and another one where anything
differs that shapes the bytes. An object is what is stored under one key: a block, or some of its layers.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hostlib.errors import KeySpaceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlib.seal import Seal

MAX_DESCRIPTOR_BYTES = 4096
_DESCRIPTOR = b"weir key space"
_BLOCK = b"weir block"
_OBJECT = b"weir object"


@dataclass(frozen=True, kw_only=True)
class KvSpace:
    """Parameters under which KV blocks are interchangeable. Sharers compare all but `rank`."""

    name: str
    """What the sharers call it; whoever comes under one name must agree in all else."""
    model: str
    """Identity of the weights, not only of the architecture."""
    layout: str
    """How a block's bytes are ordered, in the engine's own words."""
    dtype: str
    block_tokens: int
    object_bytes: tuple[int, ...]
    """Sizes of the objects that one block is stored as, in bytes: one per group of layers."""
    tensor_parallel: int = 1
    rank: int = 0

    def __post_init__(self) -> None:
        for field in ("name", "model", "layout", "dtype"):
            if not getattr(self, field):
                raise KeySpaceError(f"a key space needs a {field}")
        if not 0 <= self.rank < self.tensor_parallel:
            raise KeySpaceError(
                f"rank {self.rank} is not within a tensor parallelism of {self.tensor_parallel}"
            )
        if self.block_tokens < 1:
            raise KeySpaceError(f"a block holds at least one token, not {self.block_tokens}")
        if not self.object_bytes or min(self.object_bytes) < 1:
            raise KeySpaceError(f"every object of a block has at least one byte, not {self.object_bytes}")

    @property
    def block_bytes(self) -> int:
        """Of one block, all its objects together."""
        return sum(self.object_bytes)

    @cached_property
    def descriptor(self) -> bytes:
        """What sharers compare, as one canonical line of JSON."""
        shared = asdict(self)
        del shared["rank"]
        line = json.dumps(shared, sort_keys=True, separators=(",", ":")).encode()
        if len(line) > MAX_DESCRIPTOR_BYTES:
            raise KeySpaceError(f"parameters of {len(line)} bytes; at most {MAX_DESCRIPTOR_BYTES} fit")
        return line

    def check_same(self, descriptor: bytes) -> None:
        """Raise KeySpaceError that names every parameter in which another's `descriptor` differs."""
        mine, theirs = json.loads(self.descriptor), _parse(descriptor)
        different = [
            f"{name} is {mine[name]!r} here and {theirs.get(name)!r} there"
            for name in mine
            if mine[name] != theirs.get(name)
        ]
        if different:
            raise KeySpaceError(
                f"key space {self.name!r} is in use with other parameters: {'; '.join(different)}. "
                "Give this engine another key space name, or the same parameters"
            )

    def descriptor_key(self, seal: Seal) -> bytes:
        """Where the parameters of this name are kept."""
        return seal.key(_DESCRIPTOR, self.name.encode())

    def block_keys(self, seal: Seal, token_ids: Sequence[int], salt: bytes = b"") -> Iterator[bytes]:
        """Names of a prompt's whole blocks; `salt` is what else the KV depends on (an adapter, an image)."""
        parent = self.descriptor + b"%d" % self.rank + salt
        for start in range(0, len(token_ids) - self.block_tokens + 1, self.block_tokens):
            tokens = token_ids[start : start + self.block_tokens]
            parent = seal.key(_BLOCK, parent, struct.pack(f"<{self.block_tokens}q", *tokens))
            yield parent

    @property
    def shard_count(self) -> int:
        """Number of ranks whose KV differs."""
        return self.tensor_parallel

    @property
    def ranks_of_shard(self) -> int:
        """Number of neighbouring ranks that hold the same KV."""
        return 1

    def object_key(self, seal: Seal, block_key: bytes, index: int, rank: int = 0) -> bytes:
        """The key under which one object of a block is stored; the block's own if there is only one."""
        if len(self.object_bytes) == 1 and not rank:
            return block_key
        return seal.key(_OBJECT, block_key, b"%d" % index, b"%d" % rank)


def _parse(descriptor: bytes) -> dict[str, Any]:
    """Another's parameters; they come from the network, so anything may be in there."""
    known = {field.name for field in fields(KvSpace)}
    try:
        given = json.loads(descriptor)
        if not isinstance(given, dict) or not given.keys() <= known:
            raise ValueError("not the fields of a key space")
    except (ValueError, RecursionError) as error:
        raise KeySpaceError(f"what is stored as the key space's parameters can't be read: {error}") from None
    return given
