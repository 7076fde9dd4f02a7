"""Key space of an engine: the parameters that its KV cache depends on, and the keys made from them.

A block's key is the tenant's keyed hash (`hostlib.protocol.seal`) of the parameters, the parent's key and the
block's token ids. Any process on any machine derives the same key for the same prefix, and another one where
anything differs that shapes the bytes. An object is what is stored under one key: some layers of a block, of
one shard of a model that is split over ranks. Block keys are the same for all ranks; object keys are not.
"""

from __future__ import annotations

import json
import secrets
import sys
from array import array
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from hostlib.protocol.errors import KeySpaceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlib.protocol.seal import Seal

MAX_DESCRIPTOR_BYTES: Final = 4096
UNNAMED: Final = ""
"""The `model` of a space whose weights have no name yet: no key can be derived in it."""
GENERATION_BYTES: Final = 16
_DESCRIPTOR = b"weir key space"
_ROOT = b"weir root"
_BLOCK = b"weir block"
_OBJECT = b"weir object"
_NOT_COMPARED = ("model", "settings", "generation")


@dataclass(frozen=True, kw_only=True)
class KvSpace:
    """Parameters under which KV blocks are interchangeable.

    Sharers compare what shapes the bytes: all but `model`, `settings` and `generation`, which a running
    engine may learn later or change. These are part of every key, so that engines in which they differ find
    nothing of one another.
    """

    name: str
    """Name of the key space. All who share one name must agree in all that is compared."""
    model: str
    """Identity of the weights, not only of the architecture; `UNNAMED` while it is not known."""
    layout: str
    """Order of a block's bytes, in the engine's own words."""
    dtype: str
    block_tokens: int
    object_bytes: tuple[int, ...]
    """Sizes of the objects that one shard of a block is stored as, in bytes: one per group of layers."""
    tensor_parallel: int = 1
    """Number of ranks that the model is split over."""
    shards: int | None = None
    """Number of ranks whose KV differs; None for all. It is 1 where each rank holds the same KV (MLA)."""
    settings: str = ""
    """Digest of what else decides about the numbers, as the engine's resolved configuration."""
    generation: str = ""
    """Weights of a running engine that replaced the first ones; empty for those that `model` names."""

    def __post_init__(self) -> None:
        for field in ("name", "layout", "dtype"):
            if not getattr(self, field):
                raise KeySpaceError(f"a key space needs a {field}")
        if self.block_tokens < 1:
            raise KeySpaceError(f"a block holds at least one token, not {self.block_tokens}")
        if not self.object_bytes or min(self.object_bytes) < 1:
            raise KeySpaceError(f"every object of a block has at least one byte, not {self.object_bytes}")
        if self.tensor_parallel < 1:
            raise KeySpaceError(f"a model has at least one rank, not {self.tensor_parallel}")
        if self.shard_count < 1 or self.tensor_parallel % self.shard_count:
            raise KeySpaceError(
                f"{self.tensor_parallel} ranks can't hold {self.shards} different shards equally often"
            )

    @property
    def shard_count(self) -> int:
        """Return the number of ranks whose KV differs: so many times each object of a block is stored."""
        return self.tensor_parallel if self.shards is None else self.shards

    @property
    def ranks_of_shard(self) -> int:
        """Return the number of neighbouring ranks that hold the same KV."""
        return self.tensor_parallel // self.shard_count

    @property
    def block_bytes(self) -> int:
        """Return the bytes of one shard of one block, all its objects together."""
        return sum(self.object_bytes)

    @cached_property
    def descriptor(self) -> bytes:
        """Return what sharers compare, as one canonical line of JSON."""
        shared = asdict(self)
        for name in _NOT_COMPARED:
            del shared[name]
        line = json.dumps(shared, sort_keys=True, separators=(",", ":")).encode()
        if len(line) > MAX_DESCRIPTOR_BYTES:
            raise KeySpaceError(f"parameters of {len(line)} bytes; at most {MAX_DESCRIPTOR_BYTES} fit")
        return line

    def check_same(self, descriptor: bytes) -> None:
        """Raise KeySpaceError that names every parameter in which another's `descriptor` differs."""
        mine, theirs = json.loads(self.descriptor), _parse(descriptor)
        different = [
            f"{name} is {mine[name]!r:.300} here and {theirs.get(name)!r:.300} there"
            for name in mine
            if mine[name] != theirs.get(name)
        ]
        if different:
            raise KeySpaceError(
                f"key space {self.name!r} is in use with other parameters: {'; '.join(different)}. "
                "Give this engine another key space name, or the same parameters"
            )

    def descriptor_key(self, seal: Seal) -> bytes:
        """Return where the parameters of this name are kept."""
        return seal.key(_DESCRIPTOR, self.name.encode())

    def named(self, model: str) -> KvSpace:
        """Return this space with the identity of its weights."""
        return replace(self, model=model)

    def new_generation(self) -> KvSpace:
        """Return a space for other weights in the same engine, under which nothing has been stored."""
        return replace(self, generation=secrets.token_hex(GENERATION_BYTES))

    def block_keys(self, seal: Seal, token_ids: Sequence[int], salt: bytes = b"") -> Iterator[bytes]:
        """Yield the names of a prompt's whole blocks; `salt` is what else the KV depends on (an adapter)."""
        chain = KeyChain(self, seal, salt)
        for start in range(0, len(token_ids) - self.block_tokens + 1, self.block_tokens):
            yield chain.extend(token_ids[start : start + self.block_tokens])

    def object_key(self, seal: Seal, block_key: bytes, index: int, rank: int = 0) -> bytes:
        """Return the key under which a rank's part of one object of a block is stored.

        Ranks that hold the same KV get the same key. A block of a single object has its own key.
        """
        if not 0 <= rank < self.tensor_parallel:
            raise KeySpaceError(f"rank {rank} is not within a tensor parallelism of {self.tensor_parallel}")
        if len(self.object_bytes) == 1 and self.shard_count == 1:
            return block_key
        return seal.key(_OBJECT, block_key, b"%d" % index, b"%d" % (rank // self.ranks_of_shard))


class KeyChain:
    """The keys of one prompt's blocks, derived one after the other and each of them once.

    `salt` is what the KV of every block depends on besides the tokens. Raises KeySpaceError while the weights
    have no name.
    """

    def __init__(self, space: KvSpace, seal: Seal, salt: bytes = b"") -> None:
        if space.model == UNNAMED:
            raise KeySpaceError("the model's weights have no name yet")
        self.keys: list[bytes] = []
        """Of the blocks so far, in order."""
        self._seal, self._block_tokens = seal, space.block_tokens
        named = (part.encode() for part in (space.model, space.settings, space.generation))
        self._parent = seal.key(_ROOT, space.descriptor, *named, salt)

    def extend(self, token_ids: Sequence[int], extra: bytes = b"") -> bytes:
        """Derive the key of one more block; `extra` is what its KV depends on besides (an image)."""
        if len(token_ids) != self._block_tokens:
            raise ValueError(f"a block has {self._block_tokens} tokens, not {len(token_ids)}")
        self._parent = self._seal.key(_BLOCK, self._parent, _packed(token_ids), extra)
        self.keys.append(self._parent)
        return self._parent


def _packed(token_ids: Sequence[int]) -> bytes:
    """Return token ids as little-endian 64-bit numbers."""
    numbers = array("q", token_ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _parse(descriptor: bytes) -> dict[str, Any]:
    """Return the parameters in a descriptor, which comes from the network, so anything may be in there."""
    known = {field.name for field in fields(KvSpace)}.difference(_NOT_COMPARED)
    try:
        given = json.loads(descriptor)
        if not isinstance(given, dict) or not given.keys() <= known:
            raise ValueError("not the fields of a key space")
    except (ValueError, RecursionError) as error:
        raise KeySpaceError(f"what is stored as the key space's parameters can't be read: {error}") from None
    return given
