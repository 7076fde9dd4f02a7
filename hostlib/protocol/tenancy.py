"""Tenant of a host, as its configuration file names it."""

from __future__ import annotations

from hostlib.protocol.errors import ConfigError
from hostlib.protocol.seal import PUBLIC_SECRET, Seal
from hostlib.protocol.wire import TENANT_PUBLIC

MAX_TENANT = 0xFFFF


def seal_of(tenant: int, secret: str | None) -> Seal:
    """Return the seal of a tenant with a secret in hexadecimal; without one, of the public namespace."""
    if not 0 <= tenant <= MAX_TENANT:
        raise ConfigError(f"tenant must be 0 to {MAX_TENANT}, not {tenant}")
    if secret is None:
        if tenant != TENANT_PUBLIC:
            raise ConfigError(f"tenant {tenant} needs a secret")
        return Seal(TENANT_PUBLIC, PUBLIC_SECRET)
    try:
        return Seal(tenant, bytes.fromhex(secret))
    except ValueError as error:
        raise ConfigError(f"secret: {error}") from None


def name_key_of(tenant: int, secret: str | None) -> bytes:
    """Return what keys of a trace's blocks are made under (`workload.keys`): nothing in the public
    namespace."""
    return b"" if secret is None else seal_of(tenant, secret).name_key
