"""A pool with a recording adapter in the place of its switch."""

from __future__ import annotations

from hashlib import blake2b
from ipaddress import IPv4Address
from typing import Any

from controller.block_id import block_id, key_of
from controller.config import PoolSize, Thresholds
from controller.operations import Answer, HotMiss
from controller.policies import Event, make_policy
from controller.pool.pool import Pool
from controller.pool.residual_value import ResidualValue
from hostlib.protocol import wire
from hostlib.protocol.expected import expectation
from hostlib.protocol.hints import Hint
from hostlib.protocol.transfer import BlockRef
from tests.controller.recording import RecordingAdapter
from workload.cost import DEFAULT_LINK_BIT_S, CostModel

FRAGMENTS = 4


TENANT = 3


COST = CostModel()


OWN_POLICIES = ("fifo", "lru", "lfu", "reuse")


STORES = (IPv4Address("10.0.0.9"), IPv4Address("10.0.0.10"))
NODE = IPv4Address("10.0.0.1")
SLOW_BIT_S = 25e9
"""Rate of the second one's link."""


def key(number: int) -> bytes:
    """The ID of a block of TENANT."""
    return block_id(TENANT, blake2b(b"%d" % number, digest_size=16).digest())


def hot_miss(number: int, count: int = 2, **fields: Any) -> HotMiss:
    values: dict[str, Any] = {
        "tenant": TENANT, "key": key_of(key(number)), "parent": 0, "depth": 0, "chain_blocks": 1,
        "fragments": FRAGMENTS, "backlog_ms": 0, "recompute_ms": 0, "count": count, "waiters": 0b10,
        "home": STORES[0],
    }  # fmt: skip
    return HotMiss(**{**values, **fields})


def expect(
    *numbers: int, node: IPv4Address = NODE, tenant: int = TENANT, fragments: int = FRAGMENTS
) -> Answer:
    """A node tells of blocks that it computes."""
    blocks = [(BlockRef(key_of(key(number)), recompute_ms=70), fragments) for number in numbers]
    (message,) = expectation(tenant, blocks, 0)
    return Answer(node, wire.decode(message))


def hint(number: int, kind: Hint, seconds: int = 0, node: IPv4Address = NODE, tenant: int = TENANT) -> Answer:
    """A node hints at a block."""
    message = wire.Message(
        wire.OP_STAT, key_of(key(number)), 0, 0, wire.FLAG_BYPASS | wire.FLAG_HINT, backlog_ms=kind,
        recompute_ms=seconds, sequence=number, tenant=tenant,
    )  # fmt: skip
    return Answer(node, message)


class World:
    """A pool with its adapter, policy and the events that the policy saw."""

    def __init__(
        self,
        blocks: int = 3,
        policy: str = "lru",
        table_size: int = 1 << 20,
        mixed: bool = False,
        **thresholds: Any,
    ) -> None:
        """`mixed`: blocks take 1 to FRAGMENTS slots, by their number, and the pool has entries for more."""
        self.thresholds = Thresholds(**{"eviction": "drop", **thresholds})
        self.adapter = RecordingAdapter(table_size)
        self.events: list[Event] = []
        self.mixed = mixed
        self.spare_blocks = 0 if self.thresholds.eviction == "drop" else 1
        self.slots = (blocks + self.spare_blocks) * FRAGMENTS
        size = PoolSize((2 * blocks if mixed else blocks) + self.spare_blocks, self.slots, FRAGMENTS)
        capacity_blocks, capacity_slots = size.capacity(self.spare_blocks)
        assert capacity_slots == blocks * FRAGMENTS
        self.policy = make_policy(policy, capacity_blocks, capacity_slots=capacity_slots)
        assert self.thresholds.spare_blocks(size.whole_blocks) == self.spare_blocks
        residual = ResidualValue(COST, DEFAULT_LINK_BIT_S, links_bit_s={STORES[1]: SLOW_BIT_S})
        self.pool = Pool(
            size, self.thresholds, STORES, self.policy, self.adapter, residual, self.events.append
        )

    def miss(self, *numbers: int) -> None:
        for number in numbers:
            fragments = 1 + number % FRAGMENTS if self.mixed else FRAGMENTS
            self.pool.hot_miss(hot_miss(number, fragments=fragments), 1.0)
        self.pool.commit(1.0)

    def served(self, number: int, fragments: int) -> None:
        """The switch served so much of a block, if it has it."""
        if entry := self.adapter.entries.get(key(number)):
            self.adapter.hits[entry.base_slot] = self.adapter.hits.get(entry.base_slot, 0) + fragments

    @property
    def installed(self) -> set[bytes]:
        return set(self.adapter.entries)
