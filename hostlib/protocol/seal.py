"""A tenant's secret at work: it names blocks and seals their fragments, so that nobody without it can.

Keys and tags are keyed BLAKE2b-128 (RFC 7693), each under a key of its own derived from the secret. The
switch and the storage nodes need no secret: to them a key is an address and a tag is sixteen bytes that
travel with a value.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from hostlib.protocol import wire

if TYPE_CHECKING:
    from hostlib.protocol.wire import Buffer

SECRET_BYTES: Final = 32
PUBLIC_SECRET: Final = bytes(SECRET_BYTES)
"""Secret of the public namespace, which all tenants share. Everyone knows it unless another one is
configured."""

LEAF_BYTES: Final = 512
"""A value up to this length is sealed with zeros behind it; a longer one is cut into pieces of this length,
which are hashed side by side, and the tag is of their hashes. So a short block has the same tag whatever the
size of values on the wire."""
_PADDING = bytes(LEAF_BYTES)


def new_content() -> int:
    """Return a content id for one write of one block: 64 random bits, never 0."""
    return secrets.randbits(64) or 1


def closed(proof: bytes) -> bytes:
    """Return the tag of a first fragment whose write this proof deletes: who has no secret checks a proof by
    it."""
    return blake2b(proof, digest_size=wire.TAG_BYTES, person=b"weir proof").digest()


class Seal:
    """Keys and tags of one tenant.

    `secret` has 16 to 64 bytes; ValueError otherwise. `name_key` is what keys are made under.
    """

    def __init__(self, tenant: int, secret: bytes) -> None:
        if not 16 <= len(secret) <= 64:
            raise ValueError(f"a tenant's secret has 16 to 64 bytes, not {len(secret)}")
        self.tenant = tenant
        self.name_key = blake2b(key=secret, digest_size=32, person=b"weir name").digest()
        tag_key = blake2b(key=secret, digest_size=32, person=b"weir tag").digest()
        self.tag_key = tag_key
        # A copy of a keyed hash costs less than another one, and one update less than two.
        self._tags = blake2b(key=tag_key, digest_size=wire.TAG_BYTES)
        self._leaves = blake2b(key=tag_key, digest_size=wire.TAG_BYTES, person=b"weir leaf")

    def key(self, *parts: bytes) -> bytes:
        """Return the 16-byte key of what `parts` describe; each part counts with its length."""
        named = blake2b(key=self.name_key, digest_size=wire.KEY_BYTES)
        for part in parts:
            named.update(len(part).to_bytes(8, "big"))
            named.update(part)
        return named.digest()

    def tag(self, key: bytes, fragment: int, fragments: int, content: int, value: Buffer) -> bytes:
        """Return the 16-byte tag of one fragment; `value` without its padding."""
        sealed = self._sealed(key, fragment, fragments, content, value)
        return sealed if fragment else closed(sealed)

    def proof(self, key: bytes, fragments: int, content: int, value: Buffer) -> bytes:
        """Return the 16 bytes that delete one write of a block, whose first fragment holds `value`: its tag
        is their hash. Nobody makes them without the secret, and they say nothing of any other write."""
        return self._sealed(key, 0, fragments, content, value)

    def _sealed(self, key: bytes, fragment: int, fragments: int, content: int, value: Buffer) -> bytes:
        value_bytes = len(value)
        place = wire.tagged_place(self.tenant, fragment, fragments, value_bytes, content, key)
        sealed = self._tags.copy()
        if value_bytes > LEAF_BYTES:
            pieces = (value[at : at + LEAF_BYTES] for at in range(0, value_bytes, LEAF_BYTES))
            sealed.update(b"".join((place, *map(self._leaf, pieces))))
        else:
            sealed.update(b"".join((place, value, _PADDING[value_bytes:])))
        return sealed.digest()

    def _leaf(self, piece: Buffer) -> bytes:
        hashed = self._leaves.copy()
        hashed.update(piece)
        return hashed.digest()

    def is_genuine(self, message: wire.Message) -> bool:
        """Return whether the value in `message` was written under this secret, at this place, in this
        write."""
        _, key, fragment, fragments, *_ = message
        tag = self.tag(key, fragment, fragments, message.content, message.value)
        return message.tenant == self.tenant and compare_digest(tag, message.tag)
