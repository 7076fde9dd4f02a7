"""How an engine reaches the pool: read from the mapping that the engine's own configuration carries."""

from __future__ import annotations

from dataclasses import dataclass, fields
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

from hostlib.errors import ConfigError
from hostlib.seal import PUBLIC_SECRET
from hostlib.wire import MAX_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class PoolConfig:
    """Where the pool is, how long an engine waits for it. A node's processes share one client."""

    address: str
    """This node's IPv4 address in the pool's network."""
    homes: tuple[str, ...]
    """IPv4 addresses of the storage nodes, the same on every node."""
    replicas: int = 1
    """Homes that each block is stored at."""
    controller: str | None = None
    """IPv4 address of the controller that says which storage nodes live; `homes` are those to begin with."""
    tenant: int = 0
    secret: str = PUBLIC_SECRET.hex()
    """The tenant's secret, 16 to 64 bytes in hexadecimal; the default is public."""
    silence_s: float = 1.0
    """After which a storage node with something to answer counts as dead. An engine that computes may keep
    the client from the CPU for long; with replicas to turn to, shorter is better."""
    lookup_timeout_s: float = 2.0
    """After which a prompt is computed as if nothing of it were in the pool."""
    transfer_timeout_s: float = 10.0
    """After which what has not been loaded is recomputed, and what has not been stored is given up."""
    retry_s: float = 5.0
    """How long a pool that did not answer is left alone; longer each time, up to a minute."""
    report: str | None = None
    """File to which the counters are written as JSON when the pool is closed."""
    waiting_bytes: int = 1 << 28
    """Copies of blocks that wait to be stored; what comes on top is not stored."""

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> PoolConfig:
        """Check types, names and ranges; ConfigError says what to change."""
        known = {field.name: field for field in fields(cls)}
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ConfigError(f"no pool setting {unknown[0]!r} exists; there are {', '.join(known)}")
        for name in ("address", "homes"):
            if name not in given:
                raise ConfigError(f"pool setting {name!r} is missing")
        values = dict(given)
        if isinstance(values["homes"], str):
            values["homes"] = [part.strip() for part in values["homes"].split(",") if part.strip()]
        values["homes"] = tuple(values["homes"])
        config = cls(**values)
        config._check()
        return config

    def secret_bytes(self) -> bytes:
        """The secret, decoded."""
        return bytes.fromhex(self.secret)

    def _check(self) -> None:
        if not self.homes:
            raise ConfigError("pool setting 'homes' names no storage node")
        for address in (self.address, *self.homes, *([self.controller] if self.controller else [])):
            try:
                IPv4Address(address)
            except ValueError as error:
                raise ConfigError(f"pool settings: {error}") from None
        if not isinstance(self.report, str | None):
            raise ConfigError(f"pool setting 'report' is the name of a file, not {self.report!r}")
        if self.replicas not in range(1, MAX_REPLICAS + 1):
            raise ConfigError(f"pool setting 'replicas' is from 1 to {MAX_REPLICAS}, not {self.replicas!r}")
        if not isinstance(self.tenant, int) or not 0 <= self.tenant <= 0xFFFF:
            raise ConfigError(f"pool setting 'tenant' is from 0 to 65535, not {self.tenant!r}")
        try:
            secret = self.secret_bytes()
        except (TypeError, ValueError):
            raise ConfigError("pool setting 'secret' is not hexadecimal") from None
        if not 16 <= len(secret) <= 64:
            raise ConfigError(f"pool setting 'secret' has {len(secret)} bytes; 16 to 64 are needed")
        for name in ("silence_s", "lookup_timeout_s", "transfer_timeout_s", "retry_s", "waiting_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ConfigError(f"pool setting {name!r} must be a number above 0, not {value!r}")
