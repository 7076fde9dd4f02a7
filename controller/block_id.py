"""Identifier of a block in the controller: its tenant and its key in one, as the pool index matches them.

Two tenants may use the same key for different blocks. To policies the identifier is just a key.
"""

from __future__ import annotations

from typing import Final

_TENANT_BYTES: Final = 2


def block_id(tenant: int, key: bytes) -> bytes:
    """Return the identifier of a block: 18 bytes, tenant and then key."""
    return tenant.to_bytes(_TENANT_BYTES, "big") + key


def tenant_of(block: bytes) -> int:
    """Return the tenant that a block belongs to."""
    return int.from_bytes(block[:_TENANT_BYTES], "big")


def key_of(block: bytes) -> bytes:
    """Return the block's key on the wire."""
    return block[_TENANT_BYTES:]
