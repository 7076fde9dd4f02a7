import random

import pytest

from controller.policies import Admit, Evict, Found, Hits, HomeLoad, Lost, Miss, make_policy
from controller.policies.checked import Checked
from controller.policies.reuse_model import TICK_ACCESSES
from controller.policies.reuse_parts import Parts
from controller.policies.reuse_value import ReuseValue
from workload.generate import generate
from workload.trace import Trace


def ask(policy: Checked | ReuseValue, trace: Trace) -> tuple[int, int]:
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
    assert ask(Checked(ReuseValue(1000)), generate("chat", 1, 800)) == GOLDEN


GOLDEN = (1132, 1132)


@pytest.mark.parametrize("shape", ["agents", "scan", "rag"])
def test_beats_lru_where_the_pool_is_small(shape: str) -> None:
    trace = generate(shape, 4, 2500)
    ours, _ = ask(make_policy("reuse", 300), trace)  # type: ignore[arg-type]
    lru, _ = ask(make_policy("lru", 300), trace)  # type: ignore[arg-type]
    assert ours > lru


def test_hits_are_prefix_hits() -> None:
    hits, prefix_hits = ask(ReuseValue(300), generate("chat", 1, 1500))
    assert prefix_hits > 0.99 * hits


def test_a_scan_does_not_flush_what_is_used() -> None:
    policy = Checked(ReuseValue(20))
    for step in range(300):
        for key in range(10):
            policy.handle(Hits(key, step) if key in policy else Miss(key, step))
    for key in range(1000, 3000):
        policy.handle(Miss(key, 400.0))
        if key % 50 == 0:
            for hot in range(10):
                assert hot in policy
                policy.handle(Hits(hot, 400.0))


def test_no_block_without_its_parent_and_leaves_go_first() -> None:
    policy = Checked(ReuseValue(4))
    for depth in range(6):
        policy.handle(Miss(depth, 0.0, depth, 6, depth - 1 if depth else None))
    held = sorted(policy)  # type: ignore[type-var]
    assert held == list(range(len(held)))


def test_orphans_are_admitted_where_prefixes_do_not_matter() -> None:
    policy = ReuseValue(1, parts=Parts(prefix=False))
    policy.handle(Miss(1, 0.0))
    policy.handle(Lost(1, 0.0))
    assert policy.handle(Miss(2, 0.0, depth=1, parent=1)) == (Admit(2),)
    strict = ReuseValue(1)
    strict.handle(Miss(1, 0.0))
    strict.handle(Lost(1, 0.0))
    assert not strict.handle(Miss(2, 0.0, depth=1, parent=1))


def test_blocks_of_a_loaded_home_are_worth_more() -> None:
    def survivors(loaded: int) -> int:
        policy = Checked(ReuseValue(40))
        policy.handle(HomeLoad(loaded, 0.0, 0.02))
        chooser = random.Random(1)
        for step in range(4000):
            key = chooser.randrange(120)
            policy.handle(Hits(key, step) if key in policy else Miss(key, step, home=key % 2))
        return sum(key % 2 for key in policy)  # type: ignore[operator, misc]

    assert survivors(loaded=1) > 30 > 10 > survivors(loaded=0)


def test_a_loaded_home_is_worth_no_more_than_computing_the_block() -> None:
    waits_s = (1.0, 1e6)
    choices = []
    for wait_s in waits_s:
        policy = ReuseValue(20)
        policy.handle(HomeLoad(1, 0.0, wait_s))
        chooser = random.Random(2)
        for step in range(2000):
            key = chooser.randrange(60)
            policy.handle(Hits(key, step) if key in policy else Miss(key, step, home=key % 2))
        choices.append(set(policy))
    assert choices[0] == choices[1]


def test_evictions_say_how_likely_reuse_is() -> None:
    policy, chances = ReuseValue(200), []
    for request in generate("chat", 1, 500).requests:
        for depth, block in enumerate(request.blocks):
            asked = Miss(block, request.arrival_s, depth, len(request.blocks))
            decisions = policy.handle(Hits(block, request.arrival_s) if block in policy else asked)
            chances += [decision.reuse_chance for decision in decisions if isinstance(decision, Evict)]
    assert len(chances) > 100
    assert all(chance is not None and 0 <= chance <= 1 for chance in chances)


def test_memory_is_bounded() -> None:
    policy = ReuseValue(10)
    remembered = policy._history._remembered
    for key in range(remembered + 5000):
        policy.handle(Miss(key, 0.0))
    assert remembered * 0.9 < len(policy._history.blocks) <= remembered + 10 + 2 * TICK_ACCESSES


def test_blocks_read_back_after_a_restart_are_adopted() -> None:
    policy = Checked(ReuseValue(3))
    for key in range(5):
        policy.handle(Found(key, 0.0))
    policy.check_all()
    assert len(policy) == 3
    policy.handle(Hits(next(iter(policy)), 1.0))
    policy.handle(Lost(next(iter(policy)), 1.0))
    assert policy.handle(Miss(9, 2.0)) == (Admit(9),)


@pytest.mark.parametrize("part", ["learning", "memory", "lineage", "place", "lookahead", "prefix"])
def test_every_part_can_be_switched_off_and_matters(part: str) -> None:
    trace = generate("chat", 1, 1200)
    whole, without = Checked(ReuseValue(1000)), Checked(ReuseValue(1000, parts=Parts(**{part: False})))
    assert ask(without, trace) != ask(whole, trace)
    without.check_all()
