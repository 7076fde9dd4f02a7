"""The model of a switch, the controller's pool on it, and a live play against its replay."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from controller.config import PoolSize
from controller.policies import make_policy
from controller.residual_value import ResidualValue
from experiments.options import OptionError
from experiments.policies.against import Coarse, live_figures, told_all, told_as_live
from experiments.policies.live import ALL, AS_IT_IS, COMPUTED, IDLE, replay_live
from experiments.policies.played import Computed, Get, Play, drawn
from experiments.policies.switch_model import SKETCH_EPOCH_S, Entry, Sketch, SwitchModel, Wanted
from experiments.policies.told import Telling, ToldPool
from experiments.run.scenario import make_scenario
from hostlib.wire import fingerprint
from workload.cost import DEFAULT_LINK_BIT_S, CostModel
from workload.generate import generate
from workload.trace import MOONCAKE, Request, Trace

HOME = IPv4Address("10.0.1.1")
COST = CostModel()
FRAGMENTS = 4
BLOCK_S = 0.004


def wanted(number: int, depth: int = 0, fragments: int = FRAGMENTS) -> Wanted:
    return Wanted(random.Random(number).randbytes(16), depth, 1, 0, HOME, 0, fragments)


def test_the_sketch_counts_and_forgets_by_epochs() -> None:
    sketch, key = Sketch(), wanted(1).key
    assert [sketch.count(key, 1.0) for _ in range(4)] == [1, 2, 3, 4]
    assert sketch.count(key, 1.0 + SKETCH_EPOCH_S) == 3
    assert sketch.count(key, 1.0 + 3 * SKETCH_EPOCH_S) == 1


class Reports:
    def __init__(self, threshold: int = 1) -> None:
        self.heard: list[tuple[int, int]] = []
        self.switch = SwitchModel(lambda _, count, nodes, __: self.heard.append((count, nodes)), threshold)

    def fetch(self, block: Wanted, now_s: float, waiting: int = 0) -> None:
        assert self.switch.probe(block, now_s) is False
        for _ in range(waiting):
            assert self.switch.probe(block, now_s) is None
        self.switch.value(block, now_s)


def test_values_are_reported_from_the_threshold_on_and_at_powers_of_two() -> None:
    reports, block = Reports(threshold=3), wanted(1)
    for _ in range(9):
        reports.fetch(block, 1.0)
    assert reports.heard == [(3, 1), (4, 1), (8, 1)]


def test_who_waits_is_in_the_report_and_a_claim_gets_too_old() -> None:
    reports, block = Reports(), wanted(1)
    reports.fetch(block, 1.0, waiting=2)
    assert reports.heard == [(1, 3)]
    assert reports.switch.probe(block, 2.0) is False
    assert reports.switch.probe(block, 2.3) is False


def test_what_has_an_entry_is_filled_as_it_passes_and_not_reported() -> None:
    reports, block = Reports(), wanted(1)
    switch = reports.switch
    switch.entries[block.key] = entry = Entry(0, 1, FRAGMENTS, since_s=5.0)
    reports.fetch(block, 5.0)
    assert not reports.heard
    assert switch.probe(block, 5.1) is True
    assert switch.rest(block) == 0
    switch.rest_values(block, 4.0, 7.0)  # the second fragment came at 5, the others after it
    assert entry.is_whole
    entry.filled = 1
    switch.rest_values(block, 3.0, 5.1)  # of the others only the last two came after the entry
    assert entry.filled == 0b1001
    assert switch.rest(block) == 1
    assert switch.served == {0: 2}


def told_pool(telling: Telling, blocks: int = 8) -> ToldPool:
    return ToldPool(
        lambda most, slots: make_policy("lru", most, capacity_slots=slots),
        PoolSize(blocks, blocks * FRAGMENTS, FRAGMENTS),
        (HOME,),
        ResidualValue(COST, DEFAULT_LINK_BIT_S),
        telling,
        {HOME: BLOCK_S},
    )


def fetch(told: ToldPool, block: Wanted) -> bool:
    """All of a block, in no time; whether the probe was served."""
    now_s = told.now_s
    if served := told.switch.probe(block, now_s):
        told.switch.rest(block)
    else:
        told.switch.value(block, now_s)
        told.switch.rest_values(block, now_s, now_s)
    return bool(served)


def test_a_block_is_hit_from_the_first_fetch_on_or_the_second_or_the_third() -> None:
    def hits(telling: Telling) -> list[bool]:
        told, block = told_pool(telling), wanted(1)
        told.computes([block], HOME)
        told.at(0.1, told.switch.put, block)
        found = []
        for number in range(3):
            told.until(1.0 + number)
            found.append(fetch(told, block))
        return found

    for fill in ("on_the_way", "idle"):
        assert hits(replace(AS_IT_IS, fill=fill)) == [True, True, True]
    assert hits(replace(AS_IT_IS, expects=False)) == [False, False, True]
    assert hits(replace(IDLE, expects=False)) == [False, True, True]
    assert hits(replace(IDLE, lost=1.0)) == [False, False, False]


def test_hits_are_heard_of_when_the_counters_are_read() -> None:
    told, block = told_pool(AS_IT_IS), wanted(1)
    for _ in range(2):
        told.until(told.now_s + 1.0)
        fetch(told, block)
    told.until(told.now_s + 1.01)
    assert fetch(told, block)
    told.until(told.now_s + 0.01)
    assert told.pool.counts.hits == 0
    told.until(told.now_s + 0.5)
    assert told.pool.counts.hits == 1


@pytest.mark.parametrize("filled", [True, False])
def test_an_evicted_block_is_asked_after_at_its_home(filled: bool) -> None:
    told = told_pool(replace(AS_IT_IS, eviction="reclaim"), blocks=2)  # one of the two is spare
    for number, times in ((1, 2 if filled else 1), (2, 1)):
        for _ in range(times):
            told.until(told.now_s + 1.0)
            fetch(told, wanted(number))
    told.until(told.now_s + 1.0)
    assert set(told.switch.entries) == {wanted(2).key}
    assert (told.pool.counts.held_elsewhere, told.pool.counts.not_whole) == (filled, not filled)


def test_digests_wait_for_their_list_which_leaves_soon_after_a_pause() -> None:
    told = told_pool(AS_IT_IS)
    told.until(1.0)
    fetch(told, wanted(1))
    told.until(1.02)
    assert len(told.switch.entries) == 1
    fetch(told, wanted(2))
    told.until(1.11)
    fetch(told, wanted(3))
    assert len(told.switch.entries) == 1
    told.until(1.13)
    assert len(told.switch.entries) == 3


@pytest.mark.parametrize("shape", ["chat", "rag"])
def test_what_nodes_tell_makes_up_for_most_of_what_a_switch_does_not_and_costs_no_transfer(
    shape: str,
) -> None:
    trace = generate(shape, 1, 300)
    silent = replace(AS_IT_IS, expects=False)
    whole, late, told, filled = (
        replay_live(trace, 1000, telling, COST)
        for telling in (ALL, silent, AS_IT_IS, replace(silent, fill="idle"))
    )
    assert late.saved_s < 0.9 * whole.saved_s
    assert told.saved_s - late.saved_s > 0.8 * (whole.saved_s - late.saved_s)
    assert told.fills == late.fills == 0 < filled.fills <= filled.admissions
    assert filled.fill_delay_s < 0.05 * filled.saved_s


def test_what_is_not_computed_yet_cannot_be_hit() -> None:
    trace = Trace(
        "twice", MOONCAKE, tuple(Request(at_s, 1024, 1, (1, 2)) for at_s in (0.0, 0.05, 60.0, 120.0))
    )
    hits = {telling: replay_live(trace, 20, telling, COST).block_hit for telling in (ALL, COMPUTED, IDLE)}
    assert hits == {ALL: 0.75, COMPUTED: 0.5, IDLE: 0.5}


def test_lost_reports_cost_something() -> None:
    trace = generate("agents", 1, 300)
    all_lost, none = (replay_live(trace, 300, replace(AS_IT_IS, lost=lost), COST) for lost in (1.0, 0.0))
    assert all_lost.saved_s == 0 < none.saved_s


def test_a_scenario_is_the_seeds(tmp_path: Path) -> None:
    assert drawn(5, tmp_path, {}) == drawn(5, tmp_path, {})
    assert len({drawn(seed, tmp_path, {}).shape for seed in range(20)}) > 3
    assert drawn(5, tmp_path, {"fill": "idle"}).fill == "idle"


def test_a_play_without_storage_nodes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORES", "0")
    with pytest.raises(OptionError, match=r"^STORES: .* storage nodes"):
        drawn(5, tmp_path, {})
    monkeypatch.setenv("STORES", "3")
    assert drawn(5, tmp_path, {}).stores == 3
    monkeypatch.setenv("STORE_GBIT", "200,100,50")
    with pytest.raises(OptionError, match="STORE_GBIT: PLAYS has links of one rate"):
        drawn(5, tmp_path, {})


def made_play(tmp_path: Path, served: Callable[[int], bool]) -> Play:
    """Six requests for the same two blocks, a second apart; `served` by number of the request."""
    options = drawn(1, tmp_path, {"requests": "10", "hosts": "1", "pool-blocks": "100"})
    scenario = make_scenario(options)
    home = scenario.fabric.hosts[scenario.fabric.stores[0]].ipv4
    keys = [random.Random(number).randbytes(16) for number in range(2)]
    gets = []
    for request in range(6):
        for depth, key in enumerate(keys):
            parent = keys[depth - 1] if depth else None
            one = Wanted(key, depth, 2, fingerprint(parent) if parent else 0, home, 5, scenario.fragments)
            at_s = 5.0 + request
            found = request > 0
            times = at_s, at_s + 0.001, at_s + 0.002, at_s + 0.004
            gets.append(Get(request, one, parent, *times, found, found and served(request)))
    arrivals_s = [5.0 + request for request in range(6)]
    computed = [Computed(HOME, [get.wanted for get in gets[:2]], 5.0, 5.5)]
    return Play(scenario, arrivals_s, gets, computed, 2, 0, 2, 0.01, [])


def test_the_same_requests_told_all_told_late_and_live(tmp_path: Path) -> None:
    play = made_play(tmp_path, lambda request: request > 2)
    all_told, late, live = told_all(play), told_as_live(play, AS_IT_IS), live_figures(play)
    assert (all_told.block_hits, late.block_hits, live.block_hits) == (10, 10, 6)
    # Where nobody tells what is computed: written, then reported, then filled, and the fourth request hits.
    late = told_as_live(play, replace(AS_IT_IS, expects=False))
    assert (late.prefix_hits, late.admissions, late.evictions, late.reports) == (6, 2, 0, 2)
    assert late.saved_s == pytest.approx(live.saved_s)
    assert 0 < live.saved_s < all_told.saved_s
    assert Coarse(play, replace(IDLE, expects=False)).run().block_hits == 8


def test_a_prefix_ends_where_the_first_block_was_missing(tmp_path: Path) -> None:
    play = made_play(tmp_path, lambda request: True)
    gets = [replace(get, served=get.served and get.wanted.depth == 1) for get in play.gets]
    figures = live_figures(replace(play, gets=gets))
    assert (figures.block_hits, figures.prefix_hits, figures.saved_s) == (5, 0, 0.0)
