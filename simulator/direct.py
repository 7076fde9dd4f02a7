"""Memory pool that nodes read and write directly: DRAM of others over RDMA, or CXL memory behind a switch.

The index is asked once a chain. Each block then passes the pool's devices (a rate each way), the server's
adapters and the client, first come first served. The client takes one block after the other, each at a fixed
cost and its own rate.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from scenario import GB
from scenario.tables import Direct
from simulator.events import Loop
from simulator.front import Front
from simulator.link import Link
from simulator.messages import Block

LINE_RATE = 1e18


@dataclass(slots=True)
class DirectStats:
    """Counts of blocks."""

    read: int = 0
    written: int = 0
    evicted: int = 0


class DirectPool:
    """Shared memory, which the least recently used blocks leave when it is full."""

    def __init__(
        self,
        loop: Loop,
        options: Direct,
        block_bytes: float,
        nodes: int,
        front: Front | None = None,
    ) -> None:
        self.front = front
        self.stats = DirectStats()
        self.block_bytes = block_bytes
        self.options = options
        self._capacity_blocks = int(options.size_gb * GB / block_bytes)
        self._held: OrderedDict[Block, int] = OrderedDict()
        """Index of the device of each block."""
        self._written = 0
        rate = options.device_gbyte_s * GB
        devices = 1 if options.interleaved else options.devices
        share = options.devices if options.interleaved else 1
        self.devices = [Link(f"device {n} out", rate * share, 0.0) for n in range(devices)]
        self._into_devices = [Link(f"device {n} in", rate * share, 0.0) for n in range(devices)]
        adapters = -(-nodes // options.nodes_per_adapter)
        self.readers = [Link(f"adapter {n} in", options.read_gbyte_s * GB, 0.0) for n in range(adapters)]
        self.writers = [Link(f"adapter {n} out", options.write_gbyte_s * GB, 0.0) for n in range(adapters)]
        self._loop = loop

    def preload(self, blocks: Iterable[Block]) -> None:
        """Hold these blocks from the start."""
        for block in blocks:
            self._insert(block)

    def has(self, block: Block) -> bool:
        """Return whether the pool holds a block."""
        return block in self._held

    def prefix(self, blocks: Sequence[Block]) -> list[Link]:
        """Return the devices of the longest prefix that the pool holds, one for each block."""
        found = []
        for block in blocks:
            device = self._held.get(block)
            if device is None:
                break
            self._held.move_to_end(block)
            found.append(self.devices[device])
        return found

    def write(self, block: Block, adapter: Link) -> float:
        """Store a block and return the seconds that it takes."""
        now_s = self._loop.now
        if block in self._held:
            return 0.0
        device = self._insert(block)
        self.stats.written += 1
        _, tail_s = adapter.send(now_s, self.block_bytes, self.block_bytes)
        end_s = self._into_devices[device].send(now_s, self.block_bytes, self.block_bytes, tail_s)[1]
        return end_s - now_s + self.options.block_s

    def _insert(self, block: Block) -> int:
        per_device = max(1, int(self.options.device_gb * GB / self.block_bytes))
        device = self._held[block] = (self._written // per_device) % len(self.devices)
        self._written += 1
        while len(self._held) > self._capacity_blocks:
            self._held.popitem(last=False)
            self.stats.evicted += 1
        return device


class DirectClient:
    """Way of one node to the pool; it fetches as simulator.client.Client does."""

    def __init__(self, loop: Loop, pool: DirectPool, node: int) -> None:
        self.get_s: list[float] = []
        server = node // pool.options.nodes_per_adapter
        self._loop, self._pool = loop, pool
        self._reader, self._writer = pool.readers[server], pool.writers[server]
        self._copier = Link("client", pool.options.copy_gbyte_s * GB or LINE_RATE, 0.0)

    def backlog_s(self, home: str) -> float:
        """Return for how many seconds the adapter is busy."""
        return self._reader.wait_s(self._loop.now)

    def fetch(self, blocks: Sequence[Block], finished: Callable[[list[str]], None]) -> None:
        """Read the longest prefix that the pool holds."""
        pool, now_s = self._pool, self._loop.now
        asked_s = end_s = now_s + pool.options.lookup_s
        devices = pool.prefix(blocks)
        size_bytes = pool.block_bytes
        for block, device in zip(blocks, devices, strict=False):
            if pool.front is not None:
                _, tail_s = pool.front.send(block, device, asked_s)
            else:
                _, tail_s = device.send(asked_s, size_bytes, size_bytes)
            _, tail_s = self._reader.send(asked_s, size_bytes, size_bytes, tail_s)
            end_s = self._copier.send(tail_s, size_bytes, size_bytes)[1] + pool.options.block_s
            self._copier.free_s = end_s  # the client takes one block after the other
        pool.stats.read += len(devices)
        self.get_s += [(end_s - now_s) / max(1, len(devices))] * len(devices)
        self._loop.after(end_s - now_s, finished, ["pool"] * len(devices))

    def store(self, blocks: Iterable[Block]) -> None:
        """Write new blocks; nothing waits for it."""
        for block in blocks:
            self._pool.write(block, self._writer)
