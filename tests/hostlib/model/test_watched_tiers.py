"""Tiers that say what changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hostlib.model.tier_rules import RULES, make_rule
from hostlib.model.watched_tiers import WatchedTiers
from tests.hostlib.world import key

STEPS = st.lists(
    st.tuples(
        st.sampled_from(("keep", "use", "place", "ask")),
        st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True),
    ),
    max_size=40,
)


@given(st.sampled_from(sorted(RULES)), st.integers(0, 4), st.integers(0, 5), STEPS)
def test_what_came_less_what_left_is_what_is_held(
    rule: str, gpu: int, dram: int, steps: list[tuple[str, list[int]]]
) -> None:
    tiers = WatchedTiers(gpu, dram, make_rule(rule, lambda depth: 1.0 + depth))
    known: set[bytes] = set()
    asked = True
    calls = 0

    def noticed() -> None:
        nonlocal asked, calls
        assert asked, "said again before it was asked"
        asked, calls = False, calls + 1

    tiers.on_change = noticed
    for step, numbers in [*steps, ("ask", [0])]:
        chain = [key(number) for number in numbers]
        if step == "keep":
            tiers.keep(chain)
        elif step == "use":
            tiers.use(chain[0])
        elif step == "place":
            tiers.place(chain[0])
        else:
            came, left = tiers.changed()
            assert not (came or left) or not asked
            asked = True
            assert not known.intersection(came)
            assert known.issuperset(left)
            known = (known | set(came)) - set(left)
            assert known == tiers.keys()
