"""The conductor on a cluster whose state the test sets."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workload.conductor import Conductor, ConductorOptions, transfer_s
from workload.trace import Request

PREFILL_S = 1.0
"""Of each block."""


def request(*blocks: int) -> Request:
    return Request(0.0, 512 * len(blocks), 10, blocks)


@dataclass
class Cluster:
    held: list[set[int]]
    stored: set[int] = field(default_factory=set)
    block_s: float = 0.1
    clock_s: float = 0.0
    nodes: int = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = len(self.held)

    def now_s(self) -> float:
        return self.clock_s

    def held_blocks(self, node: int, request: Request) -> int:
        return self._prefix(request, self.held[node])

    def stored_blocks(self, request: Request) -> int:
        return self._prefix(request, self.stored)

    def transfer_s(self, node: int, request: Request, first: int, end: int) -> float:
        return (end - first) * self.block_s

    def prefill_s(self, request: Request, held_blocks: int) -> float:
        return PREFILL_S * (len(request.blocks) - held_blocks)

    @staticmethod
    def _prefix(request: Request, there: set[int]) -> int:
        return next(
            (at for at, block in enumerate(request.blocks) if block not in there), len(request.blocks)
        )


def test_the_node_that_holds_the_prefix_serves_and_need_not_fetch() -> None:
    conductor = Conductor(Cluster([set(), {1, 2}, {1}], stored={1, 2}))
    route = conductor.assign(request(1, 2, 3))
    assert route is not None
    assert (route.node, route.fetch, route.ttft_s) == (1, False, PREFILL_S)


def test_a_busy_holder_gives_way_to_a_node_that_fetches_and_so_the_block_is_replicated() -> None:
    cluster = Cluster([{1, 2, 3, 4}, set()], stored={1, 2, 3, 4})
    conductor = Conductor(cluster)
    first = conductor.assign(request(1, 2, 3, 4, 5))
    second = conductor.assign(request(1, 2, 3, 4, 6))
    assert first is not None
    assert second is not None
    assert (first.node, second.node, second.fetch) == (0, 1, True)
    assert second.ttft_s == pytest.approx(4 * cluster.block_s + PREFILL_S)
    assert conductor.stats.replicated_blocks == 4


def test_a_prefix_hardly_longer_than_the_nodes_own_is_not_fetched() -> None:
    cluster = Cluster([{1, 2, 3}], stored={1, 2, 3, 4})
    route = Conductor(cluster, ConductorOptions(balancing_threshold=1.5)).assign(request(1, 2, 3, 4, 5))
    assert route is not None
    assert not route.fetch
    route = Conductor(cluster, ConductorOptions(balancing_threshold=1.2)).assign(request(1, 2, 3, 4, 5))
    assert route is not None
    assert route.fetch


def test_who_comes_while_the_prefix_is_computed_waits_for_it_if_that_is_shorter() -> None:
    cluster = Cluster([set(), set()])
    conductor = Conductor(cluster)
    first = conductor.assign(request(1, 2, 3, 4, 5))
    cluster.clock_s = 2.0
    second = conductor.assign(request(1, 2, 3, 4, 6))
    assert first is not None
    assert second is not None
    assert (second.node, second.ttft_s) == (first.node, 3 * PREFILL_S + PREFILL_S)
    third = conductor.assign(request(1, 7))
    assert third is not None
    assert third.node != first.node


def test_queues_empty_with_time_and_with_prefills_that_end() -> None:
    cluster = Cluster([set()])
    conductor = Conductor(cluster)
    first, second = conductor.assign(request(1, 2)), conductor.assign(request(3, 4, 5))
    assert first is not None
    assert second is not None
    assert conductor.queue_s(0) == 5 * PREFILL_S
    cluster.clock_s = 1.0
    assert conductor.queue_s(0) == 4 * PREFILL_S
    conductor.prefilled(first.number)  # sooner than estimated
    assert conductor.queue_s(0) == 3 * PREFILL_S
    conductor.prefilled(second.number)
    conductor.prefilled(second.number)
    assert conductor.queue_s(0) == 0.0


def test_what_would_come_too_late_is_refused_until_the_load_is_gone() -> None:
    cluster = Cluster([set()])
    conductor = Conductor(cluster, ConductorOptions(ttft_slo_s=2.0))
    assert conductor.assign(request(1, 2)) is not None
    assert conductor.assign(request(3)) is None
    cluster.clock_s = 1.0
    assert conductor.assign(request(3)) is not None
    assert (conductor.stats.assigned, conductor.stats.rejected) == (2, 1)


def test_a_transfer_waits_for_its_homes_and_for_the_nodes_link() -> None:
    assert transfer_s([], 1.0, 0.0, lambda home: 9.0) == 0.0
    assert transfer_s(["a", "b", "a"], 1.0, 0.0, lambda home: 0.0) == 3.0  # the link
    waiting_s: dict[Hashable, float] = {"a": 5.0, "b": 0.0}
    assert transfer_s(["a", "b"], 1.0, 0.5, waiting_s.__getitem__) == 6.0  # home a
    assert transfer_s([None, None], 1.0, 0.5, lambda home: 9.0) == 2.5  # the pool waits for no home


@given(
    st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=4),
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True), max_size=12),
)
def test_queues_are_empty_when_all_is_served(held: list[set[int]], asked: list[list[int]]) -> None:
    conductor = Conductor(Cluster(held, stored={0, 1}))
    routes = [conductor.assign(request(*blocks)) for blocks in asked]
    assert all(route is not None and 0 <= route.node < len(held) for route in routes)
    for route in routes:
        assert route is not None
        conductor.prefilled(route.number)
    assert all(conductor.queue_s(node) == 0.0 for node in range(len(held)))
    fresh = conductor.assign(request(77))
    assert fresh is not None
    assert fresh.ttft_s == PREFILL_S


@pytest.mark.parametrize(("overlapped", "waits_s"), [(True, 3.0), (False, 5.0)])
def test_a_transfer_waits_beside_the_queue_or_as_in_the_paper_before_it(
    overlapped: bool, waits_s: float
) -> None:
    cluster = Cluster([set()], stored={1, 2}, block_s=1.0)
    conductor = Conductor(cluster, ConductorOptions(overlapped=overlapped))
    first = conductor.assign(request(7, 8, 9))  # three blocks to compute: a queue of 3 s
    second = conductor.assign(request(1, 2, 3))  # two to fetch, 2 s, and one to compute
    assert first is not None
    assert second is not None
    assert (second.fetch, second.ttft_s) == (True, waits_s + PREFILL_S)
