"""Settings of an engine's pool, read from the mapping that the engine's own configuration carries."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from difflib import get_close_matches
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

from hostlib.protocol.errors import ConfigError
from hostlib.protocol.hints import MAX_LIFETIME_S
from hostlib.protocol.members import MAX_NODES
from hostlib.protocol.seal import PUBLIC_SECRET
from hostlib.protocol.wire import MAX_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


@dataclass(frozen=True, kw_only=True)
class PoolConfig:
    """Addresses, bounds and secrets of the pool as an engine sees it. A node's processes share one client."""

    address: str
    """This node's IPv4 address in the pool's network."""
    homes: tuple[str, ...]
    """IPv4 addresses of the storage nodes, the same on every node."""
    replicas: int = 1
    """Homes that each block is stored at. A home that does not answer is left out, if another one is left."""
    controller: str | None = None
    """IPv4 address of the controller that says which storage nodes live; `homes` are those to begin with."""
    tenant: int = 0
    secret: str = PUBLIC_SECRET.hex()
    """The tenant's secret, 16 to 64 bytes in hexadecimal; the default is public."""
    silence_s: float = 1.0
    """Seconds after which a silent storage node that was asked something counts as dead. An engine that
    computes may keep the client from the CPU for long; with replicas to turn to, shorter is better."""
    lookup_timeout_s: float = 2.0
    """Seconds after which a look-up answers with what is known by then."""
    transfer_timeout_s: float = 10.0
    """Seconds after which what has not been loaded is recomputed. A store has as long for each object, or
    part of a large one, from its turn on."""
    retry_s: float = 5.0
    """Most seconds between two checks whether a silent storage node is back. A process that has the node's
    client and does not answer is left alone for as long, and longer each time, up to a minute."""
    report: str | None = None
    """File to which the counters are written as JSON when the pool is closed."""
    listed: bool = False
    """Whether what is stored is written down in the pool, for `weir pool` (`hostlib.engine.listed`)."""
    lifetime_s: int = 0
    """Seconds after which what is stored is deleted everywhere; 0 for never."""
    waiting_bytes: int = 1 << 28
    """Copies of blocks that wait to be stored; what comes on top is copied when there is room."""

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any], others: Collection[str] = ()) -> PoolConfig:
        """Check types, names and ranges; ConfigError says what to change.

        `others` are names of settings that the caller takes beside the pool's: they are not in `given`, but
        one of them may be what a wrong name was meant to be.
        """
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise ConfigError(_no_setting(str(name), [*known, *others]))
        for name in ("address", "homes"):
            if name not in given:
                raise ConfigError(f"pool setting {name!r} is missing")
        values = dict(given)
        if isinstance(values["homes"], str):
            values["homes"] = [part.strip() for part in values["homes"].split(",") if part.strip()]
        if not isinstance(values["homes"], list | tuple):
            raise ConfigError(f"pool setting 'homes' is a list of addresses, not {values['homes']!r}")
        values["homes"] = tuple(values["homes"])
        config = cls(**values)
        config._check()
        return config

    def secret_bytes(self) -> bytes:
        """Return the secret, decoded."""
        return bytes.fromhex(self.secret)

    def _check(self) -> None:
        self._check_addresses()
        if not isinstance(self.report, str | None):
            raise ConfigError(f"pool setting 'report' is the name of a file, not {self.report!r}")
        if type(self.listed) is not bool:
            raise ConfigError(f"pool setting 'listed' is true or false, not {self.listed!r}")
        if type(self.lifetime_s) is not int or not 0 <= self.lifetime_s <= MAX_LIFETIME_S:
            raise ConfigError(
                f"pool setting 'lifetime_s' is a whole number from 0 to {MAX_LIFETIME_S}, "
                f"not {self.lifetime_s!r}"
            )
        if type(self.tenant) is not int or not 0 <= self.tenant <= 0xFFFF:
            raise ConfigError(f"pool setting 'tenant' is from 0 to 65535, not {self.tenant!r}")
        try:
            secret = self.secret_bytes()
        except (TypeError, ValueError):
            raise ConfigError("pool setting 'secret' is not hexadecimal") from None
        if not 16 <= len(secret) <= 64:
            raise ConfigError(f"pool setting 'secret' has {len(secret)} bytes; 16 to 64 are needed")
        for name in ("silence_s", "lookup_timeout_s", "transfer_timeout_s", "retry_s", "waiting_bytes"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 < value < math.inf:
                raise ConfigError(f"pool setting {name!r} must be a number above 0, not {value!r}")

    def _check_addresses(self) -> None:
        if not self.homes:
            raise ConfigError("pool setting 'homes' names no storage node")
        for address in (
            self.address,
            *self.homes,
            *([self.controller] if self.controller is not None else []),
        ):
            try:
                IPv4Address(address if isinstance(address, str) else "")
            except ValueError:
                raise ConfigError(f"pool settings: {address!r} is no IPv4 address") from None
        if len(set(self.homes)) < len(self.homes) or self.address in self.homes:
            raise ConfigError(
                "pool settings 'homes' and 'address' name one address twice: "
                "each storage node has its own, and so has this node"
            )
        count = len(self.homes)
        if count > MAX_NODES:
            raise ConfigError(f"pool setting 'homes' names {count} storage nodes; {MAX_NODES} can be")
        if type(self.replicas) is not int or not 1 <= self.replicas <= MAX_REPLICAS:
            raise ConfigError(f"pool setting 'replicas' is from 1 to {MAX_REPLICAS}, not {self.replicas!r}")
        if self.replicas > count and self.controller is None:
            raise ConfigError(f"pool setting 'replicas' is {self.replicas}, but 'homes' names {count}")


def _no_setting(name: str, known: Sequence[str]) -> str:
    nearest = get_close_matches(name, known, 1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(known)}"
    return f"no pool setting {name!r} exists; {hint}"
