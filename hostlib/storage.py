"""The storage node: the home of blocks, answers GETs and takes PUTs.

    python -m hostlib.storage CONFIG.json

See `StorageConfig` for the file and `hostlib.process` for how it is controlled.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostlib import wire
from hostlib.config import HostConfig, check_positive
from hostlib.endpoint import EndpointOptions, UdpEndpoint
from hostlib.errors import ConfigError, MalformedError
from hostlib.process import HostProcess, main
from hostlib.ssd import SsdTier
from hostlib.ssd_reader import SsdReader
from hostlib.store import BlockStore
from hostlib.successors import Successors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlib.transport import Transport

MAX_WAITING_BLOCKS = 4096
MAX_WAITING_GETS = 256
"""For one block."""
_ECHOED_FLAGS = wire.FLAG_BYPASS | wire.FLAG_FILL


@dataclass(slots=True)
class StorageStats:
    """What a storage node saw, in messages."""

    gets: int = 0
    retries: int = 0
    """GETs that were asked before."""
    bypasses: int = 0
    """GETs past the pool."""
    fills: int = 0
    """GETs on behalf of a pool."""
    values: int = 0
    not_found: int = 0
    puts: int = 0
    reclaims: int = 0
    """PUTs on their way out of a pool."""
    mismatched: int = 0
    """GETs and PUTs for blocks of another size: dropped."""
    unexpected: int = 0
    overloaded: int = 0
    """GETs dropped because too many waited for the SSD."""
    malformed: dict[str, int] = field(default_factory=dict)
    """By reason."""


class StorageNode:
    """Answers from `store`; `link_bit_s` (0: unlimited) turns what is queued into a backlog in ms."""

    def __init__(
        self,
        transport: Transport,
        store: BlockStore,
        link_bit_s: float = 0.0,
        ssd_read_s: float = 0.0,
        read_ahead_blocks: int = 0,
    ) -> None:
        self.stats = StorageStats()
        self._transport = transport
        self._store = store
        self._link_bit_s = link_bit_s
        self._successors = Successors()
        self._read_ahead_blocks = read_ahead_blocks
        self._reader = SsdReader(store, ssd_read_s, self._on_read)
        self._waiting: dict[bytes, dict[tuple[str, int], wire.Message]] = {}
        """GETs of blocks that are being read, by block, then by sender and fragment."""
        transport.set_receiver(self._on_datagrams)

    def backlog_ms(self) -> int:
        """How long what is asked for now waits: for the SSD, or on the link for what waits to leave."""
        link_s = 8 * self._transport.queued_bytes / self._link_bit_s if self._link_bit_s else 0.0
        return min(0xFFFF, round(1000 * max(link_s, self._reader.wait_s())))

    def learn(self, keys: Sequence[bytes]) -> None:
        """Take what is there from the start, chain by chain, for what follows in a chain."""
        self._successors.learn(keys)

    def close(self) -> None:
        """Read nothing any more."""
        self._reader.close()

    def _on_datagrams(self, address: str, datagrams: Sequence[wire.Buffer]) -> None:
        replies: list[bytes] = []
        backlog_ms = self.backlog_ms()
        for datagram in datagrams:
            try:
                message = wire.decode(datagram)
            except MalformedError as error:
                self.stats.malformed[error.reason] = self.stats.malformed.get(error.reason, 0) + 1
                continue
            if message.op == wire.OP_GET:
                reply = self._on_get(address, message, backlog_ms)
            elif message.op == wire.OP_PUT:
                reply = self._on_put(address, message, backlog_ms)
            else:
                self.stats.unexpected += 1
                continue
            if reply is not None:
                replies.append(wire.encode(reply))
        if replies:
            self._transport.send(address, replies)

    def _on_get(self, address: str, message: wire.Message, backlog_ms: int) -> wire.Message | None:
        self._count_get(message.flags)
        if not message.fragment:
            self._successors.seen(address, message)
        if self._store.on_ssd_only(message.key):
            self._wait(address, message)
            return None
        return self._answer(message, backlog_ms)

    def _wait(self, address: str, message: wire.Message) -> None:
        """The GET waits for its block; what follows that in the chain is read next."""
        key = message.key
        if key not in self._waiting:
            if len(self._waiting) >= MAX_WAITING_BLOCKS:
                self.stats.overloaded += 1
                return
            self._waiting[key] = {}
            self._reader.ask(key)
            behind = min(self._read_ahead_blocks, message.chain_blocks - message.depth - 1)
            self._reader.read_ahead(self._successors.rest(key, behind))
        waiting = self._waiting[key]
        if len(waiting) < MAX_WAITING_GETS:
            waiting[address, message.fragment] = message
        else:
            self.stats.overloaded += 1

    def _on_read(self, key: bytes) -> None:
        """The block is in DRAM."""
        backlog_ms = self.backlog_ms()
        for (address, _), message in self._waiting.pop(key, {}).items():
            reply = self._answer(message, backlog_ms)
            if reply is not None:
                self._transport.send(address, [wire.encode(reply)])

    def _answer(self, message: wire.Message, backlog_ms: int) -> wire.Message | None:
        flags = message.flags & _ECHOED_FLAGS
        content = self._store.get(message.key)
        if content is None:
            self.stats.not_found += 1
            return _reply(message, wire.OP_NOT_FOUND, flags, backlog_ms)
        if message.fragments != wire.fragment_count(len(content)):
            self.stats.mismatched += 1
            return None
        self.stats.values += 1
        at = message.fragment * wire.VALUE_BYTES
        return _reply(message, wire.OP_VALUE, flags, backlog_ms, content[at : at + wire.VALUE_BYTES])

    def _on_put(self, address: str, message: wire.Message, backlog_ms: int) -> wire.Message | None:
        if not self._store.accepts(message):
            self.stats.mismatched += 1
            return None
        if not message.fragment:
            self._successors.seen(address, message)
        self.stats.puts += 1
        self.stats.reclaims += bool(message.flags & wire.FLAG_RECLAIM)
        held = wire.FLAG_HELD if self._store.put_fragment(message) else 0
        return _reply(message, wire.OP_PUT_ACK, message.flags & wire.FLAG_RECLAIM | held, backlog_ms)

    def _count_get(self, flags: int) -> None:
        self.stats.gets += 1
        self.stats.retries += bool(flags & wire.FLAG_RETRY)
        self.stats.bypasses += bool(flags & wire.FLAG_BYPASS)
        self.stats.fills += bool(flags & wire.FLAG_FILL)


def _reply(message: wire.Message, op: int, flags: int, hint_ms: int, value: bytes = b"") -> wire.Message:
    """A reply echoes what says which fragment it is, and who asked in which order."""
    return message._replace(op=op, flags=flags, generation=0, hint_ms=hint_ms, value=value)


@dataclass(frozen=True, kw_only=True)
class StorageConfig(HostConfig):
    """The configuration file of a storage node."""

    block_bytes: int
    dram_bytes: int
    ssd_dir: str | None = None
    """LMDB environment of the SSD tier; none without."""
    ssd_bytes: int = 0
    ssd_bytes_per_s: float = 0.0
    """Rate of the modelled SSD; 0 for unlimited."""
    read_ahead_blocks: int = 0
    """Of a chain, read from SSD when one before them is asked for: for nodes that ask block by block."""
    preload: str | None = None
    """File with the keys of the blocks held from the start, a line in hexadecimal each, youngest last."""
    link_bit_s: float = 0.0
    """Rate of the node's link, for the backlog it reports; 0 for unlimited."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(block_bytes=self.block_bytes, dram_bytes=self.dram_bytes)
        if self.ssd_dir is not None:
            check_positive(ssd_bytes=self.ssd_bytes)
        for name in ("ssd_bytes_per_s", "read_ahead_blocks"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be 0 or more, not {getattr(self, name)}")


class StorageProcess(HostProcess):
    """A storage node with its socket and its files."""

    def __init__(self, config: StorageConfig) -> None:
        keys = read_keys(Path(config.preload)) if config.preload else []
        self._ssd: SsdTier | None = None
        if config.ssd_dir is not None:
            self._ssd = SsdTier(Path(config.ssd_dir), config.ssd_bytes, config.block_bytes)
        self._store = BlockStore(config.block_bytes, config.dram_bytes, self._ssd)
        self._store.preload(keys)
        self._endpoint = UdpEndpoint(
            config.address, EndpointOptions.of_link(config.link_bit_s, wire.VALUE_FRAME_BYTES)
        )
        read_s = config.block_bytes / config.ssd_bytes_per_s if config.ssd_bytes_per_s else 0.0
        self._node = StorageNode(
            self._endpoint, self._store, config.link_bit_s, read_s, config.read_ahead_blocks
        )
        self._node.learn(keys)

    async def run(self, start_s: float) -> None:
        """Serve until stopped."""
        await asyncio.get_running_loop().create_future()

    def progress(self) -> dict[str, Any]:
        """What was served so far, and what waits."""
        stats = self._node.stats
        return {
            "gets": stats.gets,
            "values": stats.values,
            "not_found": stats.not_found,
            "puts": stats.puts,
            "egress_bytes": self._endpoint.stats.egress_frame_bytes,
            "backlog_ms": self._node.backlog_ms(),
            "dropped": self._endpoint.stats.dropped,
        }

    def result(self) -> dict[str, Any]:
        """All counters."""
        return {
            "storage": asdict(self._node.stats),
            "store": asdict(self._store.stats) | {"held": self._store.sizes()},
            "endpoint": self._endpoint.stats.report(),
        }

    def close(self) -> None:
        """Close the socket and the database."""
        self._node.close()
        self._endpoint.close()
        if self._ssd is not None:
            self._ssd.close()


def read_keys(path: Path) -> list[bytes]:
    """The keys in a preload file; ConfigError says file, line and reason."""
    keys = []
    try:
        with path.open(encoding="ascii") as lines:
            for number, line in enumerate(lines, 1):
                key = bytes.fromhex(line)
                if len(key) != wire.KEY_BYTES:
                    raise ConfigError(f"{path}:{number}: a key has {2 * wire.KEY_BYTES} hexadecimal digits")
                keys.append(key)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"{path}:{len(keys) + 1}: not hexadecimal") from None
    return keys


if __name__ == "__main__":
    sys.exit(main(StorageConfig, StorageProcess, sys.argv[1:]))
