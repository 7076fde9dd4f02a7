"""Block keys: hash chains that every process on every machine derives alike.

A key is BLAKE2b-128 of (model, tensor-parallel size and rank, dtype, tokens a block, parent key, token ids of
the block). Traces publish no tokens; there the block's hash id stands for its tokens. A tenant's keys are
keyed hashes with a key derived from its secret, so nobody else can name its blocks.

A chunk key names a block by its content alone, whatever precedes it (CacheBlend, arXiv 2405.16444). It is as
wide as a chain key, and derived so that the two never collide: a chunk's KV was computed by itself and
differs from the KV of the same tokens behind a prefix. Those who carry or store blocks need not know the
difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

KEY_BYTES = 16
FINGERPRINT_BYTES = 8
NO_PARENT = bytes(KEY_BYTES)
_PERSON = b"weir-block-key-1"
_CHUNK_PERSON = b"weir-chunk-key-1"
_NAME_KEY = "name_key"

_SPREAD = 0x9E3779B97F4A7C15
"""Multiplier of Knuth's multiplicative hash."""


def home_number(block: int, homes: int) -> int:
    """Return the index of the storage node that holds a trace's block; neighbouring ids go to different
    nodes."""
    return (block * _SPREAD & 0xFFFFFFFFFFFFFFFF) * homes >> 64


class KeySpaceError(ValueError):
    """Key parameters that can't be used, or that differ between two parties."""


@dataclass(frozen=True)
class KeySpace:
    """Parameters under which KV blocks are interchangeable; parties compare them before they share blocks."""

    model: str = "llama3-70b-fp8"
    tensor_parallel: int = 1
    rank: int = 0
    dtype: str = "fp8"
    block_tokens: int = 512
    name_key: bytes = field(default=b"", repr=False)
    """Key of the tenant whose blocks are named (`hostlib.protocol.seal`); empty in the public namespace.
    Parties never send it to each other."""

    def __post_init__(self) -> None:
        if not self.model or not self.dtype:
            raise KeySpaceError("a key space needs a model and a dtype")
        if not 0 <= self.rank < self.tensor_parallel:
            raise KeySpaceError(
                f"rank {self.rank} is not within tensor parallelism of {self.tensor_parallel}"
            )
        if self.block_tokens < 1:
            raise KeySpaceError("a block holds at least one token")

    def block_key(self, parent: bytes, token_ids: Iterable[int]) -> bytes:
        """Return the 16-byte key of the block of `token_ids` behind `parent` (NO_PARENT for the first
        block)."""
        digest = self._seeded.copy()
        digest.update(parent + b"".join([token.to_bytes(8, "little") for token in token_ids]))
        return digest.digest()

    def id_key(self, parent: bytes, hash_id: int) -> bytes:
        """Return the key of a trace's block behind `parent`: its hash id stands for its tokens."""
        digest = self._seeded.copy()
        digest.update(parent + hash_id.to_bytes(8, "little"))
        return digest.digest()

    def chain(self, hash_ids: Iterable[int]) -> Iterator[bytes]:
        """Yield the keys of a trace's chain, first block first."""
        parent = NO_PARENT
        for hash_id in hash_ids:
            parent = self.id_key(parent, hash_id)
            yield parent

    def chunk_key(self, token_ids: Iterable[int]) -> bytes:
        """Return the 16-byte key of a block of `token_ids` whose KV was computed with nothing before it."""
        digest = self._chunk_seeded.copy()
        digest.update(b"".join(token.to_bytes(8, "little") for token in token_ids))
        return digest.digest()

    def chunks(self, chunk_ids: Iterable[int | None]) -> Iterator[bytes | None]:
        """Yield the chunk key of each block of a trace's prompt, None for a block that is no chunk."""
        for chunk_id in chunk_ids:
            yield None if chunk_id is None else self.chunk_key((chunk_id,))

    @property
    def fingerprint(self) -> bytes:
        """Return eight bytes that differ if any parameter differs."""
        return blake2b(self.to_json().encode(), digest_size=FINGERPRINT_BYTES, person=_PERSON).digest()

    def to_json(self) -> str:
        """Return the parameters as one canonical line of JSON, for a handshake."""
        return json.dumps(self._compared, sort_keys=True, separators=(",", ":"))

    def check_same(self, other: KeySpace) -> None:
        """Raise KeySpaceError naming every parameter in which `other` differs."""
        mine, theirs = self._compared, other._compared
        different = [
            f"{name} {mine[name]!r} here, {theirs[name]!r} there"
            for name in mine
            if mine[name] != theirs[name]
        ]
        if different:
            raise KeySpaceError("blocks cannot be shared: " + "; ".join(different))

    @property
    def _compared(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != _NAME_KEY}

    @cached_property
    def _seeded(self) -> blake2b:
        return self._seeded_for(_PERSON)

    @cached_property
    def _chunk_seeded(self) -> blake2b:
        return self._seeded_for(_CHUNK_PERSON)

    def _seeded_for(self, person: bytes) -> blake2b:
        parameters = self.fingerprint + self.to_json().encode()
        return blake2b(parameters, digest_size=KEY_BYTES, key=self.name_key, person=person)
