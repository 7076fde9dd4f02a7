"""The tiers as a state machine against a plain model, and their rules."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hostlib.tiers import LocalTiers, LruOrder

KEYS = st.integers(0, 12).map(lambda number: bytes([number]))


class TiersMachine(RuleBasedStateMachine):
    """Two lists, most recently used last, are what the tiers must behave like."""

    @initialize(gpu=st.integers(0, 4), dram=st.integers(0, 4))
    def start(self, gpu: int, dram: int) -> None:
        self.limits = (gpu, dram)
        self.tiers = LocalTiers(gpu, dram)
        self.gpu: list[bytes] = []
        self.dram: list[bytes] = []

    def model_insert(self, key: bytes) -> None:
        self.gpu = [held for held in self.gpu if held != key] + [key]
        self.dram = [held for held in self.dram if held != key]
        overflow = self.gpu[: max(0, len(self.gpu) - self.limits[0])]
        self.gpu = self.gpu[len(overflow) :]
        self.dram = (self.dram + overflow)[-self.limits[1] :] if self.limits[1] else []

    @rule(key=KEYS)
    def insert(self, key: bytes) -> None:
        self.tiers.insert(key)
        self.model_insert(key)

    @rule(key=KEYS)
    def use(self, key: bytes) -> None:
        expected = "gpu" if key in self.gpu else "dram" if key in self.dram else None
        assert self.tiers.use(key) == expected
        if expected:
            self.model_insert(key)

    @invariant()
    def sizes_agree_and_are_bounded(self) -> None:
        if hasattr(self, "tiers"):
            assert self.tiers.sizes() == {"gpu": len(self.gpu), "dram": len(self.dram)}
            assert len(self.gpu) <= self.limits[0]
            assert len(self.dram) <= self.limits[1]


TestTiers = TiersMachine.TestCase


def test_rules_can_be_swapped() -> None:
    class MostRecentFirst(LruOrder):
        def victim(self) -> bytes:
            return next(reversed(self._keys))

    tiers = LocalTiers(2, 2, order=MostRecentFirst, demotes=lambda key: key != b"c")
    for key in (b"a", b"b", b"c", b"d"):
        tiers.insert(key)
    assert tiers.stats.dropped == 1
    assert [tiers.use(key) for key in (b"a", b"b", b"c", b"d")] == ["gpu", "gpu", None, "dram"]
