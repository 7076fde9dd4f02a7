"""The KV memory of a modelled engine. KV is a number a token, made of all numbers before it.

Whatever was computed on something wrong is wrong as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from tests.engines.vllm.pool_in_hand import BytesMemory

KV_BYTES = 4
"""Of one token."""


def kv_of(before: Sequence[bytes], token: int, weights: int) -> bytes:
    """One token's KV."""
    return blake2b(b"".join(before) + b"%d,%d" % (token, weights), digest_size=KV_BYTES).digest()


def kv_of_all(tokens: Sequence[int], weights: int) -> list[bytes]:
    """The KV of each token."""
    kv: list[bytes] = []
    for token in tokens:
        kv.append(kv_of(kv, token, weights))
    return kv


class KvOfModel(BytesMemory):
    """KV memory of one rank."""

    def object(self, kv: bytes, index: int) -> bytes:
        """One object of a block whose tokens have this KV: half of it, mixed with the rank."""
        half = len(kv) // 2
        return self._mixed(kv[index * half : (index + 1) * half])

    def token(self, block_id: int, place: int) -> bytes:
        """The KV of one token of a block."""
        kv = b"".join(self._object(block_id, index) for index in range(len(self.object_bytes)))
        return self._mixed(kv[place * KV_BYTES : (place + 1) * KV_BYTES])

    def put_token(self, block_id: int, place: int, kv: bytes) -> None:
        """One token of a block is computed."""
        index, at = divmod(place * KV_BYTES, self.object_bytes[0])
        content = bytearray(self._object(block_id, index))
        content[at : at + KV_BYTES] = self._mixed(kv)
        self.content[block_id, index] = bytes(content)

    def put(self, block_id: int, kv: bytes, *, is_wrong: bool) -> None:
        """Another connector writes what belongs into a block, or something else."""
        for index in range(len(self.object_bytes)):
            right = self.object(kv, index)
            self.content[block_id, index] = bytes(byte ^ 0x55 for byte in right) if is_wrong else right

    def _object(self, block_id: int, index: int) -> bytes:
        return self.content.get((block_id, index), bytes(self.object_bytes[index]))

    def _mixed(self, kv: bytes) -> bytes:
        return bytes(byte ^ self.rank for byte in kv)
