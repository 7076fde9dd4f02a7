"""Where reclaim earns: a replay with storage nodes that forget.

Each storage node keeps the blocks written to it in an LRU of limited size; what the pool serves does not
touch it. A block that neither the pool nor its home holds is computed again, and all behind it in its chain
with it. An evicted block may be sent to its home: never ("drop"), if it is worth it ("value", `fate.py`), or
whenever the home does not hold it and computing it takes longer than sending it ("reclaim"). What counts is
the time for computing, fetching and sending blocks."""

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
class Spent:
    """Seconds, and blocks sent."""

    compute_s: float
    fetch_s: float
    send_s: float
    sent: int

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.compute_s + self.fetch_s + self.send_s


class ForgetfulHomes:
    """A pool before storage nodes of limited size."""

    def __init__(
        self, policy: Policy, home_blocks: int, mode: str, cost: CostModel, link_bit_s: float
    ) -> None:
        """`home_blocks` is the size of each storage node."""
        self._policy, self._home_blocks, self._mode, self._cost = policy, home_blocks, mode, cost
        self._transfer_s = cost.fetch_s(cost.block_bytes, link_bit_s)
        self._homes: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(STORES)]
        self._depths: dict[int, int] = {}
        self._compute_s = self._fetch_s = self._send_s = 0.0
        self._sent = 0

    def serve(self, request: Request) -> None:
        """Have a request's prefix from the pool, from homes, and by computing, block by block."""
        chain, computing = request.blocks, False
        for home in range(STORES):
            self._policy.home_load(HomeLoad(home, request.arrival_s, 0.0))
        for depth, block in enumerate(chain):
            self._depths[block] = depth
            if block in self._policy:
                self._obey(self._policy.handle(Hits(block, request.arrival_s)))
                if not computing:
                    continue
            elif not computing and block in self._homes[home_number(block, STORES)]:
                self._fetch_s += self._transfer_s
                self._homes[home_number(block, STORES)].move_to_end(block)
            else:
                computing = True
            if computing:
                self._compute_s += self._cost.block_prefill_s(depth)
                self._write(block)
            if block not in self._policy:
                parent = chain[depth - 1] if depth else None
                home = home_number(block, STORES)
                miss = Miss(block, request.arrival_s, depth, len(chain), parent, 1, home)
                self._obey(self._policy.handle(miss))

    def spent(self) -> Spent:
        """So far."""
        return Spent(self._compute_s, self._fetch_s, self._send_s, self._sent)

    def _write(self, block: int) -> None:
        home = self._homes[home_number(block, STORES)]
        home[block] = None
        home.move_to_end(block)
        if len(home) > self._home_blocks:
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


def spend(
    trace: Trace, policy: Policy, home_blocks: int, mode: str, cost: CostModel, link_bit_s: float
) -> Spent:
    """Play a whole trace."""
    cost = replace(cost, block_tokens=trace.block_tokens)
    homes = ForgetfulHomes(policy, home_blocks, mode, cost, link_bit_s)
    for request in trace.requests:
        homes.serve(request)
    return homes.spent()
