import random
from dataclasses import replace

import pytest

from controller.policies import Admit, Evict, Found, Hits, HomeLoad, Lost, Miss, make_policy
from controller.policies.reuse import reuse as module
from controller.policies.reuse.native import IN_POOL
from controller.policies.reuse.reuse import Reuse
from controller.policies.reuse.reuse_ages import TICK_TOKENS, USUAL_BLOCK_TOKENS
from controller.policies.reuse.reuse_parts import Parts
from tests.controller.policies.checked import Checked
from tests.slow import rest_slow
from workload.cost import CostModel
from workload.generate import generate
from workload.trace import Trace


def ask(policy: Checked | Reuse, trace: Trace) -> tuple[int, int]:
    """Block hits and prefix hits of a trace."""
    hits = prefix_hits = 0
    for request in trace.requests:
        chain, whole = request.blocks, True
        for depth, block in enumerate(chain):
            if block in policy:
                policy.handle(Hits(block, request.arrival_s))
                hits += 1
                prefix_hits += whole
            else:
                whole = False
                parent = chain[depth - 1] if depth else None
                policy.handle(Miss(block, request.arrival_s, depth, len(chain), parent))
    return hits, prefix_hits


def test_golden_hits() -> None:
    """Exact counts: whoever changes what the policy does renews them on purpose."""
    assert ask(Checked(Reuse(1000)), generate("chat", 1, 800)) == GOLDEN


GOLDEN = (1503, 1503)


@pytest.mark.parametrize("shape", rest_slow(["agents"], ["agents", "scan", "rag"]))
def test_beats_lru_where_the_pool_is_small(shape: str) -> None:
    trace = generate(shape, 4, 2500)
    ours, _ = ask(make_policy("reuse", 300), trace)  # type: ignore[arg-type]
    lru, _ = ask(make_policy("lru", 300), trace)  # type: ignore[arg-type]
    assert ours > lru


@pytest.mark.parametrize(("tokens", "times_as_many"), [(1024, 1), (512, 1), (256, 2), (128, 4), (16, 4)])
def test_more_blocks_are_remembered_where_they_are_small(
    monkeypatch: pytest.MonkeyPatch, tokens: int, times_as_many: int
) -> None:
    monkeypatch.setattr(module, "HISTORY_BLOCKS", 500)
    monkeypatch.setattr(module, "HISTORY_OF_ONE_OF_MANY", 300)
    policy = Reuse(20, CostModel(block_tokens=tokens))
    for tenant in (1, 2):
        for number in range(6000):
            policy.miss(Miss(10_000 * tenant + number, 0.0, 0, 1, None, tenant=tenant))
    first, later = (policy._appraisers[tenant].core.known() for tenant in (1, 2))
    tick = TICK_TOKENS // tokens
    assert 500 * times_as_many <= first <= 500 * times_as_many + tick
    assert 300 <= later <= 300 + tick


@pytest.mark.parametrize("tokens", [1, 2**20])
def test_blocks_of_any_size_can_be_asked_for_any_times_at_once(tokens: int) -> None:
    policy = Reuse(20, CostModel(block_tokens=tokens))
    for number in range(40):
        policy.miss(Miss(number % 30, 0.0, 0, 1, None, 10**6))
    assert len(policy) == 20


@pytest.mark.parametrize("parts", [4])
def test_small_blocks_are_kept_as_large_ones_of_as_many_tokens(parts: int) -> None:
    """What is learned, and how soon, goes by tokens: a pool of the same bytes hits as many of them."""
    trace = generate("one_hit_wonders", 1, 1200)
    cut = trace.cut(trace.block_tokens // parts)
    whole, _ = ask(Reuse(300), trace)
    small, _ = ask(Reuse(300 * parts, CostModel(block_tokens=cut.block_tokens)), cut)
    assert small / parts == pytest.approx(whole, rel=0.03)


@pytest.mark.slow
def test_bursts_do_not_displace_what_is_asked_for_seldom_and_for_ever() -> None:
    trace = generate("decoys", 1, 2000)
    ours, _ = ask(Reuse(1000), trace)
    arc, _ = ask(make_policy("arc", 1000), trace)  # type: ignore[arg-type]
    assert ours > 1.05 * arc


def test_a_loop_is_known_for_one_before_its_second_round_has_displaced_the_first() -> None:
    """Of 10,000 blocks in a loop, the pool has some 2,500 and hits most of them in the second round."""
    policy, trace = Reuse(3000), generate("flood", 1, 2000)
    first_round = replace(trace, requests=trace.requests[:1000])
    assert ask(policy, first_round)[0] < 1000
    assert ask(policy, replace(trace, requests=trace.requests[1000:]))[0] > 2500


def test_hits_are_prefix_hits() -> None:
    hits, prefix_hits = ask(Reuse(300), generate("chat", 1, 1500))
    assert prefix_hits > 0.99 * hits


def test_a_scan_does_not_flush_what_is_used_for_long() -> None:
    policy = Checked(Reuse(20))
    for step in range(300):
        for key in range(10):
            policy.handle(Hits(key, step) if key in policy else Miss(key, step))
    for key in range(1000, 5000):
        policy.handle(Miss(key, 400.0))
        if key % 50 == 0:
            for hot in range(10):
                # Until then all that was new had been asked for again at once.
                assert hot in policy or key < 1500
                policy.handle(Hits(hot, 400.0) if hot in policy else Miss(hot, 400.0))


def test_no_block_without_its_parent_and_leaves_go_first() -> None:
    policy = Checked(Reuse(4))
    for depth in range(6):
        policy.handle(Miss(depth, 0.0, depth, 6, depth - 1 if depth else None))
    held = sorted(policy)
    assert held == list(range(len(held)))


def test_orphans_are_held_where_prefixes_do_not_matter() -> None:
    for prefix in (True, False):
        reuse = Reuse(2, parts=Parts(prefix=prefix))
        for key in (1, 3, 3):  # two slots: what is asked for again takes the first block's
            reuse.handle(Miss(key, 0.0))
        for _ in range(3):
            reuse.handle(Miss(4, 0.0))
        for key in range(100, 1000):  # the two that are held grow old
            reuse.handle(Miss(key, 0.0))
        reuse.handle(Miss(2, 0.0, parent=1))
        assert 1 not in reuse
        for _ in range(9):
            reuse.handle(Miss(2, 0.0, parent=1))
        assert (2 in reuse) is not prefix


def survivors_of_home_1(wait_s: float, prefill_s: float = 0.0) -> int:
    policy = Checked(Reuse(40))
    chooser = random.Random(1)
    for step in range(6000):
        for home in (0, 1):
            policy.handle(HomeLoad(home, step, wait_s * home))
        key = chooser.randrange(120)
        missed = Miss(key, step, home=key % 2, recompute_s=prefill_s)
        policy.handle(Hits(key, step) if key in policy else missed)
    return sum(key % 2 for key in policy)  # type: ignore[misc]


def test_blocks_of_a_loaded_home_are_worth_more() -> None:
    assert survivors_of_home_1(wait_s=0.02) > 30 > 25 > survivors_of_home_1(wait_s=0.0)


def test_a_loaded_home_is_worth_no_more_than_computing_the_block() -> None:
    assert survivors_of_home_1(wait_s=0.02, prefill_s=0.003) < 30


def test_what_a_block_of_this_request_costs_to_compute_is_what_the_node_says() -> None:
    policy = Checked(Reuse(40))
    chooser = random.Random(1)
    for step in range(6000):
        key = chooser.randrange(120)
        missed = Miss(key, step, recompute_s=0.003 if key % 2 else 0.0005)
        policy.handle(Hits(key, step) if key in policy else missed)
    assert sum(key % 2 for key in policy) > 30  # type: ignore[misc]


def test_what_is_wanted_is_in_the_pool_and_leaves_last() -> None:
    reuse = Reuse(100)
    ask(Checked(reuse), generate("scan", 1, 400))
    wanted = [reuse.core.is_wanted(key) for key in reuse.core.least(999)]
    assert sorted(wanted) == wanted
    assert all(wanted)


def test_what_is_not_wanted_leaves_first_and_of_equals_what_came_first() -> None:
    core = Reuse(20).core
    for key in range(4):
        assert core.ask(key, None, False, 0, 1, 1)  # there is room: all are wanted
        core.enter(key)
    core.enter(9)  # read back from a switch: nobody asked for it
    assert core.least(9) == [9, 0, 1, 2, 3]
    assert core.ask(1, None, False, 0, 1, 1) == IN_POOL
    core.leave(0)
    assert core.least(3) == [9, 2, 3]
    assert (len(core), 9 in core, 0 in core) == (4, True, False)
    assert core.is_wanted(0)
    assert not core.is_wanted(9)


def test_what_the_pool_lost_leaves_room_for_others() -> None:
    policy = Checked(Reuse(3))
    for key in range(3):
        policy.handle(Miss(key, 0.0))
    policy.handle(Lost(1, 1.0))
    assert policy.handle(Miss(9, 2.0)) == (Admit(9),)
    policy.check_all()


def test_evictions_say_how_likely_reuse_is() -> None:
    policy, chances = Reuse(200), []
    for request in generate("chat", 1, 500).requests:
        for depth, block in enumerate(request.blocks):
            asked = Miss(block, request.arrival_s, depth, len(request.blocks))
            decisions = policy.handle(Hits(block, request.arrival_s) if block in policy else asked)
            chances += [decision.reuse_chance for decision in decisions if isinstance(decision, Evict)]
    assert len(chances) > 100
    assert all(chance is not None and 0 <= chance <= 1 for chance in chances)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HISTORY_BLOCKS", 2000)
    policy = Reuse(10)
    for key in range(5000):
        policy.handle(Miss(key, 0.0))
    assert 2000 <= policy.core.known() <= 2000 + TICK_TOKENS // USUAL_BLOCK_TOKENS


def test_blocks_read_back_after_a_restart_are_adopted() -> None:
    policy = Checked(Reuse(3))
    for key in range(5):
        policy.handle(Found(key, 0.0))
    policy.check_all()
    assert len(policy) == 3
    policy.handle(Hits(next(iter(policy)), 1.0))
    policy.handle(Lost(next(iter(policy)), 1.0))
    assert policy.handle(Miss(9, 2.0)) == (Admit(9),)


@pytest.mark.parametrize("part", ["learning", "memory", "lookahead"])
def test_every_part_can_be_switched_off_and_matters(part: str) -> None:
    trace = generate("rag", 1, 500)
    whole, without = Checked(Reuse(300)), Checked(Reuse(300, parts=Parts(**{part: False})))
    assert ask(without, trace) != ask(whole, trace)
    without.check_all()
