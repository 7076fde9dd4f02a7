"""The pool of one switch, with a recording adapter in the switch's place."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.block_id import block_id, key_of
from controller.config import PoolSize, PushOptions, Thresholds
from controller.operations import (
    Answer,
    Fill,
    Install,
    PushFragment,
    Remove,
    Result,
    SetThreshold,
    Subscription,
)
from controller.policies import Decision, Hits, HomeLoad, Lost, Miss, make_policy
from controller.policies.eventlog import read_events, to_line
from controller.pool.fair_pace import WINDOW_S
from controller.pool.pool import Pool
from controller.pool.residual_value import ResidualValue
from hostlib.protocol import wire
from hostlib.protocol.wire import fingerprint
from tests.controller.pool_world import (
    COST,
    FRAGMENTS,
    NODE,
    OWN_POLICIES,
    SLOW_BIT_S,
    STORES,
    TENANT,
    World,
    expect,
    hot_miss,
    key,
)
from tests.controller.recording import RecordingAdapter
from workload.cost import DEFAULT_LINK_BIT_S

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_a_hot_miss_installs_the_block() -> None:
    world = World()
    world.miss(1)
    assert world.adapter.operations == [Install(key(1), 0, 1, FRAGMENTS)]
    assert world.pool.counts.admitted == 1


def test_a_full_pool_evicts_before_it_installs_into_the_same_slots_with_a_new_generation() -> None:
    world = World(blocks=1)
    world.miss(1)
    world.miss(2)
    assert world.adapter.operations[1:] == [Remove(key(1)), Install(key(2), 0, 2, FRAGMENTS)]
    assert (world.pool.counts.admitted, world.pool.counts.evicted) == (2, 1)


def test_one_commit_is_one_write_of_removals_and_installs() -> None:
    world = World(blocks=3)
    world.miss(1, 2, 3)
    assert world.adapter.writes == 1
    world.miss(4, 5, 6)
    assert world.adapter.writes == 2
    assert world.installed == {key(4), key(5), key(6)}


def test_decisions_that_undo_each_other_write_nothing() -> None:
    world = World(blocks=1)
    world.miss(1)
    before = list(world.adapter.operations)
    world.miss(2, 1)  # evict 1, admit 2, evict 2, admit 1
    assert world.adapter.operations == before
    assert set(world.policy) == world.installed == {key(1)}


def test_free_slots_in_pieces_are_joined_by_evicting_the_fewest() -> None:
    world = World(blocks=2, mixed=True)  # 8 slots
    world.miss(1, 2, 5, 0)  # of 2, 3, 2 and 1 slots: all
    for number in (1, 0):  # at both ends
        world.policy.handle(Lost(key(number), 1.0))
        world.pool._remove([key(number)], 1.0)
    world.miss(6)  # of 3: so many are free, but not in one piece
    assert world.installed == {key(2), key(6)} == set(world.policy)
    assert world.pool.counts.in_the_way == 1
    assert world.adapter.entries[key(6)].base_slot == 5
    assert world.pool.slots.free_slots == 2


def test_the_policy_learns_count_parent_and_home() -> None:
    world = World(policy="lfu")
    world.pool.hot_miss(hot_miss(1, home=STORES[1]), 1.0)
    child = hot_miss(
        2,
        count=4,
        parent=fingerprint(key_of(key(1))),
        depth=1,
        chain_blocks=7,
        waiters=0b1011,
        recompute_ms=250,
    )
    world.pool.hot_miss(child, 2.0)
    assert [event for event in world.events if isinstance(event, Miss)] == [
        Miss(key(1), 1.0, 0, 1, None, 2, int(STORES[1]), 0.0, TENANT, FRAGMENTS),
        Miss(key(2), 2.0, 1, 7, key(1), 4 - 1 + 3, int(STORES[0]), 0.25, TENANT, FRAGMENTS),
    ]


def test_the_policy_learns_the_homes_backlog() -> None:
    world = World()
    world.pool.hot_miss(hot_miss(1, backlog_ms=250), 1.0)
    assert world.events[0] == HomeLoad(int(STORES[0]), 1.0, 0.25, DEFAULT_LINK_BIT_S)
    world.pool.hot_miss(hot_miss(2, backlog_ms=50, home=STORES[1]), 2.0)
    assert HomeLoad(int(STORES[1]), 2.0, 0.05, SLOW_BIT_S) in world.events


def test_a_home_that_is_no_storage_node_is_not_believed() -> None:
    world = World()
    world.pool.hot_miss(hot_miss(1, home=IPv4Address("10.0.0.1")), 1.0)
    (event,) = [event for event in world.events if isinstance(event, Miss)]
    assert event.home in {int(store) for store in STORES}


@pytest.mark.parametrize("fragments", [0, FRAGMENTS + 1])
def test_a_block_of_a_length_that_does_not_fit_is_left_out(fragments: int) -> None:
    world = World()
    world.pool.hot_miss(hot_miss(1, fragments=fragments), 1.0)
    world.pool.commit(1.0)
    assert not world.adapter.operations
    assert world.pool.counts.misfits == 1


def test_a_report_that_the_install_overtook_changes_nothing() -> None:
    world = World()
    world.miss(1)
    world.miss(1)
    assert len(world.adapter.operations) == 1


def test_hits_are_counted_in_blocks() -> None:
    world = World()
    world.miss(1)
    world.served(1, 2 * FRAGMENTS + 1)
    world.pool.read_hits(3.0)
    assert [event for event in world.events if isinstance(event, Hits)] == [Hits(key(1), 3.0, 2)]
    assert world.pool.counts.hits == 2


def test_a_full_table_is_reported_to_the_policy_and_read_back() -> None:
    world = World(blocks=3, table_size=2)
    world.miss(1, 2, 3)
    assert world.pool.counts.refused == 1
    assert world.pool.needs_read_back
    assert Lost(key(3), 1.0) in world.events
    assert set(world.policy) == world.installed == {key(1), key(2)}
    assert world.pool.slots.free_slots == FRAGMENTS


def test_an_entry_that_was_there_already_is_replaced() -> None:
    world = World()
    world.adapter.entries[key(1)] = Install(key(1), 8, 77, FRAGMENTS)
    world.miss(1)
    assert world.adapter.entries[key(1)].generation == 1
    assert world.pool.counts.admitted == 1


def test_an_entry_that_had_gone_already_counts_as_evicted() -> None:
    world = World(blocks=1)
    world.miss(1)
    world.adapter.entries.clear()
    world.miss(2)
    assert world.installed == {key(2)}
    assert world.pool.counts.evicted == 1


def test_a_removal_that_failed_leaves_the_block_and_its_slots() -> None:
    world = World(blocks=1)
    world.miss(1)
    world.adapter.refusals.append(Result.FAILED)
    world.miss(2)
    assert world.pool.needs_read_back
    owners = [entry.base_slot for entry in world.adapter.entries.values()]
    assert len(owners) == len(set(owners))


def test_a_block_that_a_node_computes_is_admitted_and_counted_on_from_there() -> None:
    world = World()
    world.pool.answered(expect(1, 2), 1.0)
    world.pool.commit(1.0)
    assert world.installed == {key(1), key(2)}
    assert world.pool.counts.expected == 2
    misses = [event for event in world.events if isinstance(event, Miss)]
    assert [(miss.times, miss.recompute_s) for miss in misses] == [(1, 0.07)] * 2
    assert {miss.home for miss in misses} <= {int(store) for store in STORES}
    world.pool.policy.handle(Lost(key(1), 2.0))
    world.pool.hot_miss(hot_miss(1, count=4), 2.0)
    world.pool.policy.handle(Lost(key(1), 3.0))
    world.pool.answered(expect(1), 3.0)  # computed again: what was counted stays
    world.pool.policy.handle(Lost(key(1), 3.0))
    world.pool.hot_miss(hot_miss(1, count=5), 3.0)
    assert [event.times for event in world.events if isinstance(event, Miss)] == [1, 1, 4, 1, 1]


@pytest.mark.parametrize("fill", ["now", "idle"])
def test_what_is_being_computed_is_not_fetched(fill: str) -> None:
    """No home has it yet; its PUT fills it. What was fetched since is there."""
    world = World(fill=fill)
    world.pool.answered(expect(1), 1.0)
    world.pool.commit(1.0)
    assert world.installed == {key(1)}
    assert not world.pool.fills
    world.pool.policy.handle(Lost(key(1), 2.0))
    world.adapter.entries.clear()
    world.pool.resident.clear()
    world.miss(1)
    assert len(world.pool.fills) == 1


def test_of_a_message_its_tenant_alone_is_named() -> None:
    world = World()
    world.pool.answered(expect(1, tenant=TENANT + 1), 1.0)
    world.pool.commit(1.0)
    assert world.installed == {block_id(TENANT + 1, key_of(key(1)))}


def test_reports_that_come_together_are_told_from_the_beginning_of_their_chain_on() -> None:
    world = World(policy="reuse")
    parent = fingerprint(key_of(key(1)))
    child = hot_miss(2, depth=1, chain_blocks=2, parent=parent)
    world.pool.hot_misses([child, hot_miss(1, chain_blocks=2)], 1.0)
    misses = [event for event in world.events if isinstance(event, Miss)]
    assert [(miss.key, miss.parent) for miss in misses] == [(key(1), None), (key(2), key(1))]


def test_who_computes_a_block_says_nothing_of_what_waits_at_its_home() -> None:
    world = World(fill="idle")
    home = world.pool._home_of(key_of(key(1)))
    world.pool.hot_miss(hot_miss(9, backlog_ms=5000, home=home), 1.0)
    world.pool.answered(expect(1), 1.1)
    loads = [event for event in world.events if isinstance(event, HomeLoad)]
    assert [load.wait_s for load in loads] == [5.0]


def test_what_is_there_already_is_not_taken_for_what_is_to_come() -> None:
    """Nodes compute what is somewhere, too, where that is sooner."""
    world = World()
    world.miss(1)
    world.pool.answered(expect(1), 2.0)
    assert world.pool.is_there(key(1))
    world.pool.policy.handle(Lost(key(1), 3.0))
    world.pool.hot_miss(hot_miss(1, count=3), 3.0)
    assert [event.times for event in world.events if isinstance(event, Miss)] == [2, 1]


def test_a_block_that_was_expected_with_a_wrong_length_comes_again_as_it_is() -> None:
    world = World()
    world.pool.answered(expect(1, fragments=FRAGMENTS - 1), 1.0)
    world.pool.commit(1.0)
    assert world.adapter.entries[key(1)].fragments == FRAGMENTS - 1
    world.miss(1)
    assert world.adapter.entries[key(1)].fragments == FRAGMENTS
    assert world.pool.resident[key(1)].fragments == FRAGMENTS
    world.pool.answered(expect(1, fragments=FRAGMENTS - 1), 2.0)
    world.pool.commit(2.0)
    assert world.adapter.entries[key(1)].fragments == FRAGMENTS


def test_of_nodes_that_never_stop_each_has_its_share() -> None:
    world = World(blocks=9999, max_digests_per_s=90)
    heard = dict.fromkeys((NODE, NODE + 1, NODE + 2), 0)
    for at in range(400):
        for node in heard:
            before = world.pool.counts.expected
            numbers = range(18 * at, 18 * at + (18 if node != NODE else 1))
            world.pool.answered(expect(*numbers, node=node), 0.05 * at)
            if at > 100:  # when all three are known
                heard[node] += world.pool.counts.expected - before
    assert heard[NODE] == 299
    assert abs(heard[NODE + 1] - heard[NODE + 2]) < 0.1 * heard[NODE + 1]


def test_of_what_nodes_compute_no_more_is_heard_than_is_allowed_and_half_of_it_of_one() -> None:
    world = World(blocks=99, max_digests_per_s=2)
    most = round(2 * WINDOW_S)
    world.pool.answered(expect(*range(19)[:17]), 1.0)
    assert world.pool.counts.expected == most // 2
    world.pool.answered(expect(*range(20, 22), node=NODE + 1), 1.0)
    assert world.pool.counts.expected == most // 2 + 2
    world.pool.answered(expect(*range(30, 40), node=NODE + 2), 1.0)
    assert world.pool.counts.expected == most
    world.pool.answered(expect(40), 1.1 + WINDOW_S)
    assert world.pool.counts.expected == most + 1


def test_what_nodes_compute_does_not_have_switches_report_less() -> None:
    world = World(blocks=99, max_digests_per_s=4)
    for second in range(8):
        world.pool.answered(expect(*range(8)), float(second))
        world.pool.tick(float(second))
    assert not [one for one in world.adapter.operations if isinstance(one, SetThreshold)]


def test_what_is_no_list_of_blocks_and_what_a_pool_hears_that_is_off_is_ignored() -> None:
    answer = expect(1)
    for world, heard in (
        (World(), Answer(answer.source, answer.message._replace(value=b"x"))),
        (World(), Answer(answer.source, answer.message._replace(value=bytes(28)))),
        (World(report_count=0), answer),
    ):
        world.pool.answered(heard, 1.0)
        world.pool.commit(1.0)
        world.pool.tick(2.0)
        assert not world.installed
        assert not world.events


def test_a_block_that_fits_no_slots_is_not_expected() -> None:
    world = World()
    world.pool.answered(expect(1, fragments=FRAGMENTS + 1), 1.0)
    world.pool.commit(1.0)
    assert not world.installed
    assert world.pool.counts.misfits == 1


def test_blocks_are_filled_at_once_only_from_a_home_where_nothing_waits() -> None:
    world = World(fill="idle")
    world.pool.hot_miss(hot_miss(1, backlog_ms=50), 1.0)
    world.pool.commit(1.01)
    assert world.pool.counts.fills == 0
    world.pool.hot_miss(hot_miss(2, home=STORES[1]), 1.02)
    world.pool.commit(1.02)
    assert world.pool.counts.fills == 1
    world.pool.hot_miss(hot_miss(3, backlog_ms=0), 1.2)
    world.pool.commit(1.2)
    world.pool.tick(1.2)
    fills = [operation.key for operation in world.adapter.packets if isinstance(operation, Fill)]
    assert set(fills) == {key(2), key(3)}


def test_fills_are_sent_to_the_home_and_bounded() -> None:
    in_flight = 2 * FRAGMENTS
    world = World(blocks=3, fill="now", control_fragments_in_flight=in_flight, answer_timeout_s=0.2)
    world.miss(1, 2, 3)
    world.pool.tick(1.0)
    assert [type(packet) for packet in world.adapter.packets] == [Fill] * 2
    assert {packet.destination for packet in world.adapter.packets} == {STORES[0]}
    world.pool.tick(1.1)
    assert len(world.adapter.packets) == 2
    world.pool.tick(1.3)
    asked = [(packet.key, packet.fragment, packet.fragments) for packet in world.adapter.packets]
    assert asked == [(key(n), 0, FRAGMENTS) for n in (1, 2, 3)]


def test_a_block_that_its_home_does_not_hold_is_given_up() -> None:
    world = World(fill="now")
    world.miss(1)
    message = wire.Message(
        wire.OP_NOT_FOUND, key_of(key(1)), 0, FRAGMENTS, flags=wire.FLAG_FILL, tenant=TENANT
    )
    world.pool.answered(Answer(STORES[0], message), 2.0)
    assert not world.installed
    assert Lost(key(1), 2.0) in world.events
    assert world.pool.counts.not_found == 1


def pushing() -> tuple[Pool, RecordingAdapter]:
    """A pool without a storage node in reach, with one block that has two subscribers."""
    policy, adapter = make_policy("lru", 3), RecordingAdapter()
    residual = ResidualValue(COST, DEFAULT_LINK_BIT_S)
    size = PoolSize(3, 1 << 20, FRAGMENTS)
    pool = Pool(size, Thresholds(eviction="drop"), (), policy, adapter, residual, push=PushOptions())
    for port in (1, 2):
        pool.subscribed(Subscription(TENANT, key_of(key(1)), 0, port), 1.0)
    pool.hot_miss(hot_miss(1), 1.0)
    pool.commit(1.0)
    return pool, adapter


def ask_twice(pool: Pool, adapter: RecordingAdapter, now_s: float) -> None:
    slot = adapter.entries[key(1)].base_slot
    adapter.hits[slot] = adapter.hits.get(slot, 0) + 2 * FRAGMENTS
    pool.read_hits(now_s)


def test_push_works_without_a_storage_node_in_reach() -> None:
    pool, adapter = pushing()
    ask_twice(pool, adapter, 1.0)
    pool.tick(1.0)
    assert [type(packet) for packet in adapter.packets] == [PushFragment] * FRAGMENTS


def test_pushing_goes_on_after_the_switch_was_read_back() -> None:
    pool, adapter = pushing()
    pool.tick(1.0)
    assert list(adapter.groups.values()) == [{1, 2}]
    pool.read_back(2.0)
    pool.subscribed(Subscription(TENANT, key_of(key(1)), 0, 3), 2.0)
    pool.read_hits(2.0)
    ask_twice(pool, adapter, 2.5)
    for tick in range(5):
        pool.tick(3.0 + tick)
    assert list(adapter.groups.values()) == [{1, 2, 3}]
    assert len(adapter.packets) == FRAGMENTS
    written = adapter.writes
    pool.tick(9.0)
    assert adapter.writes == written


def test_too_many_reports_raise_the_threshold() -> None:
    world = World(max_digests_per_s=10)
    world.pool.tick(1.0)
    world.pool.dropped(100)
    world.pool.tick(2.5)
    world.pool.tick(4.0)
    thresholds = [op.count for op in world.adapter.operations if isinstance(op, SetThreshold)]
    assert thresholds == [4, 2]


def test_a_flood_of_subscriptions_makes_nobodys_misses_unheard() -> None:
    """A higher threshold of misses would not end them: their port's rate does."""
    world = World(max_digests_per_s=10)
    world.pool.tick(1.0)
    for number in range(1000):
        world.pool.subscribed(Subscription(TENANT, key_of(key(number)), 0, 1), 1.0)
    world.pool.tick(2.5)
    assert not [op for op in world.adapter.operations if isinstance(op, SetThreshold)]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=80), st.sampled_from(OWN_POLICIES))
def test_a_policy_that_replays_the_log_decides_the_same(steps: list[tuple[int, int]], name: str) -> None:
    world = World(blocks=20, policy=name)
    decided: list[Decision] = []
    handle = world.policy.handle
    world.policy.handle = lambda event: _record(decided, handle(event))  # type: ignore[method-assign]
    for number, hits in steps:
        world.miss(number)
        world.served(number, hits * FRAGMENTS)
        world.pool.read_hits(1.0)
    again = make_policy(name, 20)
    log = read_events(map(to_line, world.events))
    assert [decision for event in log for decision in again.handle(event)] == decided


def _record(decided: list[Decision], decisions: Sequence[Decision]) -> Sequence[Decision]:
    decided += decisions
    return decisions


def test_what_is_expected_is_there_for_others_from_its_first_hit_or_fetch_on() -> None:
    world = World(blocks=9)
    world.pool.answered(expect(1, 2), 1.0)
    world.pool.commit(1.0)
    world.miss(3)
    assert world.pool.there == [key(3)]
    world.served(1, FRAGMENTS)
    world.pool.read_hits(2.0)
    world.pool.hot_miss(hot_miss(2), 2.0)
    assert set(world.pool.there) == {key(1), key(2), key(3)}
    assert [world.pool.is_there(key(number)) for number in (1, 4)] == [True, False]


def test_a_block_that_nobody_got_since_it_was_put_leaves_unasked() -> None:
    """Its home has it, if anybody does."""
    world = World(blocks=2, eviction="value")
    world.pool.answered(expect(1, 2), 1.0)
    world.pool.commit(1.0)
    world.served(2, FRAGMENTS)
    world.pool.read_hits(2.0)
    world.miss(3, 4)
    world.pool.tick(3.0)
    assert key(1) not in world.pool.resident
    assert [packet.key for packet in world.adapter.packets] == [key(2)]
    assert world.pool.counts.held_elsewhere == 1
