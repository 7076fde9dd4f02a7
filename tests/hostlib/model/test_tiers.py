"""The tiers under each rule: what holds always, and a plain model of the two that go by recency."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hostlib.model.tier_rules import RULES, TierRuleError, inclusive, make_rule
from hostlib.model.tiers import LocalTiers

KEYS = st.integers(0, 12)
CHAINS = st.lists(KEYS, min_size=1, max_size=6, unique=True)


def recompute_s(depth: int) -> float:
    return 1.0 + depth / 4


class TiersMachine(RuleBasedStateMachine):
    """Whatever is done: bounds hold, a hit comes from the nearest tier, what is kept is there if it fits."""

    @initialize(name=st.sampled_from(sorted(RULES)), gpu=st.integers(0, 5), dram=st.integers(0, 8))
    def start(self, name: str, gpu: int, dram: int) -> None:
        self.name, self.gpu, self.dram = name, gpu, dram
        self.tiers = LocalTiers[int](gpu, dram, make_rule(name, recompute_s))
        self.seen: tuple[int, set[int]] = (0, set())

    @rule(chain=CHAINS)
    def keep(self, chain: list[int]) -> None:
        self.tiers.keep(chain)
        if self.name != "by-value":
            for key in chain[: self.gpu]:
                assert self.tiers.holders(key)[0] == "gpu"
            assert all(key in self.tiers for key in chain[: max(self.gpu, self.dram)])

    @rule(key=KEYS)
    def use(self, key: int) -> None:
        nearest = next(iter(self.tiers.holders(key)), None)
        assert (key in self.tiers) == (nearest is not None)
        before = self.tiers.stats.gpu_hits, self.tiers.stats.dram_hits, self.tiers.stats.misses
        assert self.tiers.use(key) == nearest
        after = self.tiers.stats.gpu_hits, self.tiers.stats.dram_hits, self.tiers.stats.misses
        counted = [late - early for early, late in zip(before, after, strict=True)]
        assert counted == [nearest == "gpu", nearest == "dram", nearest is None]

    @rule(key=KEYS)
    def place(self, key: int) -> None:
        before = self.tiers.holders(key)
        self.tiers.place(key)
        if before:
            assert self.tiers.holders(key) == before
        else:
            assert self.tiers.holders(key) in ((), ("dram",))

    @invariant()
    def bounds_hold_and_rules_are_kept(self) -> None:
        if not hasattr(self, "tiers"):
            return
        held = {key: self.tiers.holders(key) for key in range(13)}
        in_gpu = {key for key, tiers in held.items() if "gpu" in tiers}
        in_dram = {key for key, tiers in held.items() if "dram" in tiers}
        assert self.tiers.sizes() == {"gpu": len(in_gpu), "dram": len(in_dram)}
        assert len(in_gpu) <= self.gpu
        assert len(in_dram) <= self.dram
        if self.name != "inclusive":
            assert not in_gpu & in_dram
        elif self.gpu <= self.dram:
            assert in_gpu <= in_dram

    @invariant()
    def what_changes_is_counted(self) -> None:
        if hasattr(self, "tiers"):
            before, now = self.seen, (self.tiers.changes, self.tiers.keys())
            assert now[1] == before[1] or now[0] > before[0]
            self.seen = now


TestTiers = TiersMachine.TestCase


class ExclusiveMachine(RuleBasedStateMachine):
    """Two lists, most recently used last, are what the default rule must behave like."""

    @initialize(gpu=st.integers(0, 4), dram=st.integers(0, 4))
    def start(self, gpu: int, dram: int) -> None:
        self.limits = (gpu, dram)
        self.tiers = LocalTiers[int](gpu, dram)
        self.gpu: list[int] = []
        self.dram: list[int] = []

    def raise_(self, key: int) -> None:
        self.gpu = [held for held in self.gpu if held != key] + [key]
        self.dram = [held for held in self.dram if held != key]
        overflow = self.gpu[: max(0, len(self.gpu) - self.limits[0])]
        self.gpu = self.gpu[len(overflow) :]
        self.dram = (self.dram + overflow)[-self.limits[1] :] if self.limits[1] else []

    @rule(key=KEYS)
    def keep(self, key: int) -> None:
        self.tiers.keep([key])
        self.raise_(key)

    @rule(key=KEYS)
    def use(self, key: int) -> None:
        expected = "gpu" if key in self.gpu else "dram" if key in self.dram else None
        assert self.tiers.use(key) == expected
        if expected:
            self.raise_(key)

    @invariant()
    def both_hold_the_same(self) -> None:
        if hasattr(self, "tiers"):
            assert [key for key in range(13) if self.tiers.holders(key) == ("gpu",)] == sorted(self.gpu)
            assert [key for key in range(13) if self.tiers.holders(key) == ("dram",)] == sorted(self.dram)


TestExclusive = ExclusiveMachine.TestCase


def test_the_first_blocks_of_a_chain_leave_last() -> None:
    for name in RULES:
        tiers = LocalTiers[int](2, 4, make_rule(name, recompute_s))
        tiers.keep(range(8))
        held = [key for key in range(8) if key in tiers]
        assert held == list(range(len(held))), name


def test_inclusive_blocks_leave_the_gpu_without_being_copied() -> None:
    tiers = LocalTiers[str](2, 4, inclusive())
    for key in "abcd":
        tiers.keep([key])
    assert tiers.stats.copied_down == 4
    assert tiers.sizes() == {"gpu": 2, "dram": 4}
    assert tiers.use("a") == "dram"
    assert tiers.stats.copied_down == 4
    assert tiers.holders("a") == ("gpu", "dram")


def test_exclusive_blocks_are_copied_when_they_leave_and_more_of_them_are_held() -> None:
    tiers = LocalTiers[str](2, 4)
    for key in "abcdef":
        tiers.keep([key])
    assert tiers.stats.copied_down == 4
    assert tiers.stats.dropped == 0
    assert all(key in tiers for key in "abcdef")


def test_by_value_a_scan_does_not_push_out_what_is_used_again() -> None:
    for name, survives in (("exclusive", False), ("by-value", True)):
        tiers = LocalTiers[int](2, 2, make_rule(name, recompute_s))
        for _ in range(5):
            tiers.keep([0, 1])
        tiers.keep([100, 101, 102])
        tiers.keep([200, 201, 202])
        assert all(key in tiers for key in (0, 1)) == survives, name


def test_by_value_worth_fades_with_what_leaves() -> None:
    tiers = LocalTiers[int](2, 2, make_rule("by-value", recompute_s))
    for _ in range(5):
        tiers.keep([0, 1])
    for other in range(10, 200):
        tiers.keep([other])
    assert 0 not in tiers
    assert 1 not in tiers


def test_a_rule_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(TierRuleError, match="no rule for tiers 'x': choose one of exclusive, incl"):
        make_rule("x", recompute_s)
