"""Node of the incast experiment, which asks for blocks at a given time and reports when each arrived.

    python -m experiments.incast.reader CONFIG.json

    stdout  < {"event": "ready"}
    stdin   > {"at_s": CLOCK_MONOTONIC, "chains": [[KEY, ...], ...], "push": BOOL}   a burst;
                                       keys in hexadecimal; push: whether to subscribe
    stdout  < {"event": "finished", "block_ms": [...], "errors": {...}, ...}
    stdin   > report                                                     all counters as they are now
    stdout  < {"event": "report", ...}
    stdin   > stop                                                       or its end

A node does not keep what it fetched, as if its memory had gone to other prefixes between two bursts.
Therefore it asks again. It takes a pushed block if it wants it (`hostlib.client.pushed`).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from commands.child import commands, main, say
from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.health import HealthOptions
from hostlib.client.pushed import PushedBlocks
from hostlib.model.tiers import LocalTiers
from hostlib.native.lane_options import LaneOptions
from hostlib.process.config import HostConfig, check_address, check_positive
from hostlib.process.observe import SelfObserver
from hostlib.protocol.errors import TransferError
from hostlib.protocol.members import Members
from hostlib.protocol.seal import PUBLIC_SECRET, Seal
from hostlib.protocol.transfer import BlockRef, chain_references
from hostlib.protocol.wire import TENANT_PUBLIC, fragment_count
from hostlib.transport.endpoint import UdpEndpoint


@dataclass(frozen=True, kw_only=True)
class ReaderConfig(HostConfig):
    """Configuration of a reader, as its file has it."""

    homes: list[str]
    block_bytes: int
    pushed_blocks: int
    """Number of blocks of DRAM for pushed blocks."""
    deadline_s: float
    """Seconds after which a fragment, and with it its block, is given up."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for home in self.homes:
            check_address("homes", home)
        check_positive(homes=len(self.homes), block_bytes=self.block_bytes)
        check_positive(pushed_blocks=self.pushed_blocks, deadline_s=self.deadline_s)


class Reader:
    """Node that fetches bursts of blocks; each report has the counts since the one before."""

    def __init__(self, config: ReaderConfig) -> None:
        self._fragments = fragment_count(config.block_bytes)
        self._endpoint = UdpEndpoint(config.address)
        self._tiers: LocalTiers[bytes] = LocalTiers(0, config.pushed_blocks)
        tiers, seal = self._tiers, Seal(TENANT_PUBLIC, PUBLIC_SECRET)
        self._pushed = PushedBlocks(seal, tiers.__contains__, tiers.place)
        # Each block has only one home, so a node must not give it up for dead: there is no other to ask.
        health = HealthOptions(silence_s=config.deadline_s)
        options = ClientOptions(LaneOptions(deadline_s=config.deadline_s), health=health)
        self._client = Client(self._endpoint, Members.of(config.homes), seal, options, self._pushed)
        self._reported = self._counts()

    async def burst(self, at_s: float, chains: list[list[str]], push: bool) -> dict[str, Any]:
        """Ask for all blocks at `at_s`; return how long each took from then, errors, and counts.

        `chains` are keys in hexadecimal; `at_s` is a time of the event loop; `push` subscribes to the blocks.
        """
        self._pushed.subscribing = push
        keys = [[bytes.fromhex(key) for key in chain] for chain in chains]
        blocks = [block for chain in keys for block in chain_references(chain)]
        observer = SelfObserver()
        await asyncio.sleep(at_s - asyncio.get_running_loop().time())
        observer.start()
        async with asyncio.TaskGroup() as tasks:
            fetches = [tasks.create_task(self._fetch(block, at_s)) for block in blocks]
        observer.stop()
        done = [fetch.result() for fetch in fetches]
        before, self._reported = self._reported, self._counts()
        return {
            "block_ms": [took for took in done if isinstance(took, float)],
            "errors": Counter(error for error in done if isinstance(error, str)),
            "late_ms": observer.report()["timer_late_ms"]["p99"],
            **{name: count - before[name] for name, count in self._reported.items()},
        }

    def report(self) -> dict[str, Any]:
        """Return all counters, in the form of an inference node's."""
        return {
            "client": asdict(self._client.stats),
            "pushed": asdict(self._pushed.stats),
            "tiers": asdict(self._tiers.stats) | {"held": self._tiers.sizes()},
            "endpoint": self._endpoint.stats.report(),
        }

    def close(self) -> None:
        """Close client and socket."""
        self._client.close()
        self._endpoint.close()

    async def _fetch(self, block: BlockRef, at_s: float) -> float | str:
        try:
            if self._tiers.use(block.key) is None:
                await self._client.get(block)
        except TransferError as error:
            return type(error).__name__
        return round(1000 * (asyncio.get_running_loop().time() - at_s), 3)

    def _counts(self) -> dict[str, int]:
        stats = self._client.stats
        return {
            "from_pool": stats.from_pool,
            "from_home": stats.from_home,
            "merged": stats.merged,
            "retransmits": stats.retransmits,
            "corrupt": stats.corrupt,
            "late": stats.late,
            "local": self._tiers.stats.dram_hits * self._fragments,
            "pushed": self._pushed.stats.fragments,
            "unwanted": self._pushed.stats.unwanted,
            "dropped": self._endpoint.stats.dropped,
        }


async def run(config: ReaderConfig) -> None:
    """Carry out the commands on stdin until "stop" or its end."""
    reader = Reader(config)
    try:
        say("ready")
        async with asyncio.TaskGroup() as bursts:
            async for line in commands():
                if line == "report":
                    say("report", **reader.report())
                else:
                    bursts.create_task(_finish(reader, line))
    finally:
        reader.close()


async def _finish(reader: Reader, line: str) -> None:
    say("finished", **await reader.burst(**json.loads(line)))


if __name__ == "__main__":
    sys.exit(main("experiments.incast.reader", ReaderConfig, run, sys.argv[1:]))
