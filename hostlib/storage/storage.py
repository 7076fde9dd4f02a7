"""The storage process: a storage node with its socket, its disk and its files.

    python -m hostlib.storage.storage CONFIG.json

See `StorageConfig` for the file and `hostlib.process.process` for how it is controlled.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hostlib.process.config import HostConfig, check_address, check_positive
from hostlib.process.process import HostProcess, main
from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.content import block_content, derivation
from hostlib.protocol.errors import ConfigError, DiskError
from hostlib.protocol.kv_file import KvFile
from hostlib.protocol.members import Members
from hostlib.protocol.seal import Seal
from hostlib.protocol.tenancy import seal_of
from hostlib.storage.disk import LmdbDisk
from hostlib.storage.ssd import SsdTier
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.storage_options import StorageOptions
from hostlib.storage.store import BlockStore
from hostlib.storage.store_options import StoreOptions
from hostlib.transport.endpoint import EndpointOptions, UdpEndpoint

log = logging.getLogger(__name__)

MAP_BYTES_PER_BYTE = 3
"""Bytes of the disk's file for each byte of capacity: pages are not full, and new data is written before what
it replaces is free."""


@dataclass(frozen=True, kw_only=True)
class StorageConfig(HostConfig):
    """The configuration file of a storage node."""

    dram_bytes: int
    homes: list[str] = field(default_factory=list)
    """Addresses of all storage nodes, this one among them; without, it has no peers to catch up from."""
    replicas: int = 1
    controller: str | None = None
    """Address of the controller, who is told that this node lives; null for none."""
    tenant_bytes: int = 0
    """Most bytes of one tenant; 0 for no limit."""
    ssd_dir: str | None = None
    """LMDB environment of the SSD tier; none without."""
    ssd_bytes: int = 0
    ssd_bytes_per_s: float = 0.0
    """Rate of the modelled SSD; 0 for unlimited."""
    read_ahead_blocks: int = 0
    """Blocks of a chain that are read from SSD when one before them is asked for, for nodes that ask block by
    block."""
    preload: str | None = None
    """File with the blocks held from the start, youngest last: a line each with the key in hexadecimal, and
    the length in bytes if it is not `block_bytes`. Their content is derived from their keys, and this node
    seals it in place of those who would have written it."""
    block_bytes: int = 0
    """Length of the blocks in `preload` that have none there."""
    tenant: int = wire.TENANT_PUBLIC
    """Tenant of the blocks in `preload`."""
    secret: str | None = None
    """Secret of that tenant, in hexadecimal; none for the public namespace."""
    kv_file: str | None = None
    """File with real KV (`hostlib.protocol.kv_file`) that the blocks in `preload` hold instead."""
    link_bit_s: float = 0.0
    """Rate of the node's link, for the backlog it reports; 0 for unlimited."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(dram_bytes=self.dram_bytes)
        if self.preload is not None:
            check_positive(block_bytes=self.block_bytes)
        if self.ssd_dir is not None:
            check_positive(ssd_bytes=self.ssd_bytes)
        for name in ("ssd_bytes_per_s", "read_ahead_blocks", "tenant_bytes"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be 0 or more, not {getattr(self, name)}")
        for home in self.homes:
            check_address("homes", home)
        if self.controller is not None:
            check_address("controller", self.controller)
        if self.homes and self.address not in self.homes:
            raise ConfigError(f"homes must name this node, {self.address}, too")
        self.members, self.seal  # noqa: B018  (what can't be is refused here)

    @property
    def members(self) -> Members:
        """Return the storage nodes, as far as the file knows."""
        try:
            return Members.of(self.homes or [self.address], self.replicas)
        except ValueError as error:
            raise ConfigError(f"homes: {error}") from None

    @property
    def seal(self) -> Seal:
        """Return the seal of the blocks in `preload`."""
        return seal_of(self.tenant, self.secret)


class StorageProcess(HostProcess):
    """A storage node with its socket and its files."""

    def __init__(self, config: StorageConfig) -> None:
        held = read_preload(Path(config.preload)) if config.preload else []
        keys = [key for key, _ in held]
        lengths = {Place(config.tenant, key): length for key, length in held if length is not None}
        self._ssd: SsdTier | None = None
        self._disk: LmdbDisk | None = None
        if config.ssd_dir is not None:
            self._disk = LmdbDisk(
                Path(config.ssd_dir), MAP_BYTES_PER_BYTE * config.ssd_bytes, counts_deaths=True
            )
            self._ssd = SsdTier(self._disk, config.ssd_bytes)
        content = block_content if config.kv_file is None else KvFile(Path(config.kv_file))
        options = StoreOptions(tenant_bytes=config.tenant_bytes)
        self._store = BlockStore(
            config.dram_bytes, self._ssd, derivation(config.seal, content=content), options
        )
        self._store.preload([Place(config.tenant, key) for key in keys], config.block_bytes, lengths)
        self._endpoint = UdpEndpoint(config.address, EndpointOptions.of_link(config.link_bit_s))
        self._node = StorageNode(
            self._endpoint,
            self._store,
            StorageOptions(
                config.address,
                config.link_bit_s,
                config.ssd_bytes_per_s,
                config.read_ahead_blocks,
                config.controller,
            ),
            config.members,
        )
        self._node.learn(keys)
        self._node.start()

    async def run(self, start_s: float) -> None:
        """Serve until stopped."""
        await asyncio.get_running_loop().create_future()

    def progress(self) -> dict[str, Any]:
        """Return what was served so far, and what waits."""
        stats = self._node.stats
        return {
            "gets": stats.gets,
            "values": stats.values,
            "not_found": stats.not_found,
            "puts": stats.puts,
            "egress_bytes": self._endpoint.stats.egress_frame_bytes,
            "backlog_ms": self._node.backlog_ms(),
            "dropped": self._endpoint.stats.dropped,
            "ssd_dropped": self._ssd.dropped if self._ssd is not None else 0,
            "caught_up": self._node.joining.caught_up,
        }

    def report(self) -> dict[str, Any]:
        """Return all counters."""
        return {
            "backlog_ms": self._node.backlog_ms(),
            "caught_up": self._node.joining.caught_up,
            "storage": asdict(self._node.stats),
            "store": asdict(self._store.stats) | {"held": self._store.sizes()},
            "disk": self._disk_report(),
            "catch_up": asdict(self._node.joining.catch_up.stats),
            "endpoint": self._endpoint.stats.report(),
        }

    def close(self) -> None:
        """Close the socket; put what is in DRAM on disk, and close that."""
        self._node.close()
        self._endpoint.close()
        if self._ssd is None:
            return
        try:
            self._store.flush()
        except DiskError as error:
            log.warning("not all of DRAM could be put on disk: %s", error)
        self._ssd.close()

    def _disk_report(self) -> dict[str, Any] | None:
        if self._ssd is None or self._disk is None:
            return None
        return {
            "commits": self._ssd.commits,
            "dropped": self._ssd.dropped,
            "damaged": self._ssd.damaged,
            "put_aside": self._disk.was_damaged,
        }


def read_keys(path: Path) -> list[bytes]:
    """Return the keys in a preload file; raises ConfigError that says file, line and reason."""
    return [key for key, _ in read_preload(path)]


def read_preload(path: Path) -> list[tuple[bytes, int | None]]:
    """Return keys, and the lengths of those that have one; ConfigError says file, line and reason."""
    blocks: list[tuple[bytes, int | None]] = []
    try:
        with path.open(encoding="ascii") as lines:
            for number, line in enumerate(lines, 1):
                digits, _, length = line.strip().partition(" ")
                key = bytes.fromhex(digits)
                if len(key) != wire.KEY_BYTES:
                    raise ConfigError(f"{path}:{number}: a key has {2 * wire.KEY_BYTES} hexadecimal digits")
                if length and not 0 < int(length) <= wire.MAX_BLOCK_BYTES:
                    raise ConfigError(f"{path}:{number}: a block has 1 to {wire.MAX_BLOCK_BYTES:,} bytes")
                blocks.append((key, int(length) if length else None))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise ConfigError(
            f"{path}:{len(blocks) + 1}: not hexadecimal, or a length that is no number"
        ) from None
    return blocks


if __name__ == "__main__":
    sys.exit(main(StorageConfig, StorageProcess, sys.argv[1:]))
