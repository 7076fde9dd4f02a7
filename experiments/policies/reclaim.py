"""Where reclaim earns: a replay with storage nodes that forget.

Each storage node keeps one replica of the blocks written to it in an LRU of limited size; what the pool
serves does not touch it. A block that neither the pool nor its home holds is computed again, and all behind
it in its chain with it, whoever holds them. An evicted block may be sent to its home: never ("drop"), if it
is worth it ("value", `fate.py`), or whenever the home does not hold it and computing it takes longer than
sending it ("reclaim").

Requests wait for computing and fetching. Nobody waits for a block that is sent home, as links are duplex and
a home sends the other way; what it costs is time of the link to the home. So these are counted apart."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from controller.policies import Admit, Decision, Evict, Hits, HomeLoad, Miss, Policy
from controller.policies.fate import Fate, fate_of
from experiments.policies.stores import STORES
from workload.cost import CostModel
from workload.keys import home_number
from workload.trace import Request, Trace

MODES = ("drop", "value", "reclaim")


@dataclass(frozen=True)
class Homes:
    """The storage nodes."""

    blocks: int
    """That each keeps."""
    link_bit_s: float
    ssd_bytes_s: float | None = None
    """Where they keep them on SSD: its rate for reading; None for DRAM."""

    def read_s(self, cost: CostModel) -> float:
        """Time to read a block before it can be sent."""
        return 0.0 if self.ssd_bytes_s is None else cost.stored_bytes / self.ssd_bytes_s


@dataclass(frozen=True)
class Spent:
    """What a trace took."""

    compute_s: float
    fetch_s: float
    send_s: float
    """Of links, by blocks that were sent home."""
    sent: int
    stranded: int
    """Blocks that were computed although the pool or a home held them: one before them was lost."""
    stranded_s: float
    """Part of `compute_s` that this took."""

    @property
    def waited_s(self) -> float:
        """What requests waited for: computing and fetching."""
        return self.compute_s + self.fetch_s


class ForgetfulHomes:
    """A pool before storage nodes of limited size."""

    def __init__(self, policy: Policy, homes: Homes, mode: str, cost: CostModel) -> None:
        self._policy, self._kept_blocks, self._mode, self._cost = policy, homes.blocks, mode, cost
        self._transfer_s = cost.fetch_s(cost.stored_bytes, homes.link_bit_s)
        self._read_s = homes.read_s(cost)
        self._homes: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(STORES)]
        self._depths: dict[int, int] = {}
        self._compute_s = self._fetch_s = self._send_s = self._stranded_s = 0.0
        self._sent = self._stranded = 0

    def serve(self, request: Request) -> None:
        """Have a request's prefix from the pool, from homes, and by computing, block by block."""
        chain, computing = request.blocks, False
        for number in range(STORES):
            self._policy.home_load(HomeLoad(number, request.arrival_s, self._read_s))
        for depth, block in enumerate(chain):
            self._depths[block] = depth
            home = self._homes[home_number(block, STORES)]
            pooled, held = block in self._policy, block in home
            if pooled:
                self._obey(self._policy.handle(Hits(block, request.arrival_s)))
            if computing or not (pooled or held):
                self._compute(block, depth, stranded=pooled or held)
                computing = True
            elif not pooled:
                self._fetch_s += self._read_s + self._transfer_s
                home.move_to_end(block)
            if block not in self._policy:
                parent = chain[depth - 1] if depth else None
                place = depth, len(chain), parent, 1, home_number(block, STORES)
                self._obey(self._policy.handle(Miss(block, request.arrival_s, *place)))

    def spent(self) -> Spent:
        """So far."""
        sums = self._compute_s, self._fetch_s, self._send_s
        return Spent(*sums, self._sent, self._stranded, self._stranded_s)

    def _compute(self, block: int, depth: int, stranded: bool) -> None:
        compute_s = self._cost.block_prefill_s(depth)
        self._compute_s += compute_s
        if stranded:
            self._stranded += 1
            self._stranded_s += compute_s
        self._write(block)

    def _write(self, block: int) -> None:
        home = self._homes[home_number(block, STORES)]
        home[block] = None
        home.move_to_end(block)
        if len(home) > self._kept_blocks:
            home.popitem(last=False)

    def _obey(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Evict):
                self._evict(decision)
            else:
                assert isinstance(decision, Admit)

    def _evict(self, evict: Evict) -> None:
        block = evict.key
        assert isinstance(block, int)
        held = block in self._homes[home_number(block, STORES)]
        recompute_s = self._cost.block_prefill_s(self._depths[block])
        chance = evict.reuse_chance if self._mode == "value" else None
        if self._mode != "drop" and fate_of(chance, recompute_s, self._transfer_s, held) is Fate.DEMOTE:
            self._send_s += self._transfer_s
            self._sent += 1
            self._write(block)


def spend(trace: Trace, policy: Policy, homes: Homes, mode: str, cost: CostModel) -> Spent:
    """Play a whole trace."""
    pool = ForgetfulHomes(policy, homes, mode, replace(cost, block_tokens=trace.block_tokens))
    for request in trace.requests:
        pool.serve(request)
    return pool.spent()
