"""No sentence of the report says more than the figures under it."""

from random import Random

import pytest

from experiments.study.benefit import benefit
from experiments.study.claims import EVEN, ZERO, Alike, Claim, Fact, Plotted, contradictions
from experiments.study.rivals import STEADY_MARK
from experiments.study.rules import (
    EVERYTHING,
    MEAN_MARK,
    NET_MARK,
    ablation_claim,
    ablation_sentence,
    at,
    axis_claim,
    axis_sentence,
    control_claim,
    sram_sentence,
    systems_claim,
    systems_sentence,
)
from experiments.study.sample import MEAN, P99, STEADY, Sample, percent_change, ratio, told_change
from experiments.study.tails import TAIL_MARK
from tests.experiments.study.made import of_runs, run, sample

MANY = {"completed": 1_000_000}
LRU = "LRU instead of reuse value"


def test_no_sentence_says_pays_where_recomputing_is_better_than_both() -> None:
    """At 60 nodes the pool is 45 % faster than without, and recomputing faster than both."""
    told = axis_sentence({
        16: {
            "stores": sample(0.198, 1.47, **MANY),
            "switch": sample(0.191, 1.96, **MANY),
            "recompute": sample(0.204, 0.0, **MANY),
        },
        60: {
            "stores": sample(0.608, 1.47, **MANY),
            "switch": sample(0.334, 1.96, **MANY),
            "recompute": sample(0.191, 0.0, **MANY),
        },
    })  # fmt: skip
    assert "it pays at 16." in told
    assert "it is beaten by what costs no more at 60 (recompute always)" in told


def test_a_dearer_rival_does_not_take_the_word_away() -> None:
    place = {
        "stores": sample(0.198, 1.47, **MANY),
        "switch": sample(0.191, 1.96, **MANY),
        "cxl": sample(0.184, 9.0, **MANY),
    }
    assert "it pays at 16" in axis_sentence({16: place})


@pytest.mark.parametrize("pool", [0.19801, 0.1985])
def test_a_pool_that_saves_nothing_never_pays(pool: float) -> None:
    told = axis_sentence({2: {"stores": sample(0.198, 1.47), "switch": sample(pool, 1.96)}})
    assert "pays" not in told
    assert "costs more than it earns at 2" in told


def test_p99_is_told_where_it_moves_and_only_there() -> None:
    moved = [run(0.2 * (1 + by)) for by in (-0.001, 0.0, 0.001)]
    for one in moved:
        one["ttft_s"] = {**one["ttft_s"], "p99": 0.9 * one["ttft_s"]["p99"]}
    told = axis_sentence({
        16: {"stores": sample(0.2, 1.47), "switch": sample(0.2, 1.96)},
        60: {"stores": sample(0.2, 1.47), "switch": of_runs(moved)},
    })  # fmt: skip
    assert "p99 differs at 60 (-10.0% ± 0.0%)." in told
    same = axis_sentence({16: {"stores": sample(0.2, 1.47), "switch": sample(0.19, 1.96)}})
    assert "p99 differs at 16 (-5.0%" in same
    assert "p99 is nowhere told apart by 0.5% or more" in axis_sentence({
        16: {"stores": sample(0.2, 1.47), "switch": sample(0.2, 1.96)}
    })  # fmt: skip


def ablation(**changed: float) -> dict[str, object]:
    made = {
        "everything": (0.1916, 116.0),
        "no merging": (0.1959, 146.0),
        "no multicast": (0.193, 123.0),
        "merging only, nothing cached": (0.1924, 134.0),
        LRU: (changed.get("lru_s", 0.1911), changed.get("lru_gb", 110.0)),
        "reclaim from stores that forget": (0.15, 50.0),
        "stores that forget, no reclaim": (0.15, 50.0),
        "no pool": (0.1978, 165.0),
    }
    return {label: sample(ttft, storage_egress_bytes=gb * 1e9) for label, (ttft, gb) in made.items()}


def test_lru_is_named_when_it_beats_reuse_value() -> None:
    told = ablation_sentence(ablation())  # type: ignore[arg-type]
    assert f"Better than everything: {LRU} (fewer bytes from storage and a shorter mean first token)" in told
    assert "stores that forget, no reclaim (" not in told


def test_lru_is_not_named_when_it_is_worse() -> None:
    assert "Better than everything" not in ablation_sentence(ablation(lru_s=0.2, lru_gb=120.0))  # type: ignore[arg-type]


def test_sram_that_serves_nothing_gains_by_merging_and_says_so() -> None:
    blocks = {"gpu": 0, "dram": 0, "pool": 1, "remote": 999, "recomputed": 0}
    told = sram_sentence(
        32, {"sram": sample(0.188, 1.93, blocks=blocks, **MANY), "stores": sample(0.193, 1.47, **MANY)}
    )
    assert "serves 0.1% of all" in told
    assert "by merging and not by what it holds" in told
    none = sram_sentence(32, {"sram": sample(0.193, 1.93, blocks=blocks), "stores": sample(0.193, 1.47)})
    assert "by merging" not in none


def test_a_pool_that_costs_more_than_it_earns_must_be_seen_to_do_so() -> None:
    place = {"stores": sample(0.198, 1.47), "switch": sample(0.19801, 1.96)}
    claim = axis_claim({2: place})
    assert "costs more than it earns at 2" in claim.text
    assert Fact("pool in the switch at 2 ($)", EVEN) in claim.facts


def test_systems_that_p99_does_not_tell_apart_are_said_to_be() -> None:
    near = of_runs([{**run(0.18), "ttft_s": {"mean": 0.18, "p99": p99}} for p99 in (0.5, 0.7, 0.6)])
    pool = of_runs([{**run(0.2), "ttft_s": {"mean": 0.2, "p99": p99}} for p99 in (0.7, 0.6, 0.5)])
    assert systems_sentence("agents", {"switch": pool, "cxl": near}).endswith(
        "p99 tells none of them from the pool."
    )
    far = sample(0.5)
    assert "p99 differs from the pool's with recompute always" in systems_sentence(
        "agents", {"switch": pool, "recompute": far}
    )


def test_a_change_within_its_interval_is_no_change() -> None:
    runs = of_runs([run(value) for value in (0.9, 1.0, 1.08)])
    assert percent_change(ratio(runs, sample(1.0), "ttft_s", "mean")).startswith("not told apart")
    near = of_runs([run(value) for value in (0.999, 1.0, 1.001)])
    assert percent_change(ratio(near, sample(1.0), "ttft_s", "mean")).startswith("no different")
    assert percent_change(ratio(sample(0.9), sample(1.0), "ttft_s", "mean")) == "10.0% ± 0.0% sooner"


def drawn(draw: Random, cost: float) -> Sample:
    """Three runs with little in common, so that means of ratios and ratios of means differ."""
    return of_runs([run(draw.uniform(0.1, 0.9), cost, draw.uniform(0.1, 0.9), **MANY) for _ in range(3)])


def swapped(claim: Claim, plotted: Plotted) -> Plotted:
    """The plot with the values of the first fact exchanged."""
    fact = next(fact for fact in claim.facts if isinstance(fact, Fact))
    return {**plotted, fact.less: plotted[fact.more], fact.more: plotted[fact.less]}


def test_whatever_is_drawn_the_axis_says_nothing_that_its_plots_do_not_show() -> None:
    draw, said = Random(5), 0
    costs = {"stores": 1.47, "switch": 1.96, "recompute": 0.0, "cxl": 9.0}
    for _ in range(200):
        places = {value: {name: drawn(draw, cost) for name, cost in costs.items()} for value in (1, 2, 4)}
        claim = axis_claim(places)
        plotted = {
            at(name, value) + mark: one.interval(*path)
            for path, mark in ((MEAN, ""), (STEADY, STEADY_MARK), (P99, TAIL_MARK))
            for value, systems in places.items()
            for name, one in systems.items()
        }
        plotted |= {
            at("switch", value) + NET_MARK: benefit(systems["switch"], systems["stores"]).net_dollars
            for value, systems in places.items()
        }
        plotted[EVEN] = ZERO
        assert not contradictions(claim, plotted)
        if any(isinstance(fact, Fact) for fact in claim.facts):
            said += 1
            assert contradictions(claim, swapped(claim, plotted))
    assert said > 20


def test_a_pool_that_pays_must_be_seen_to_be_sooner_in_steady_state() -> None:
    place = {"stores": sample(0.198, 1.47, **MANY), "switch": sample(0.191, 1.96, **MANY)}
    assert axis_claim({16: place}).facts == (
        Fact("pool in the switch at 16", "storage nodes, no pool at 16"),
        Fact("pool in the switch at 16 (second half)", "storage nodes, no pool at 16 (second half)"),
        Fact(EVEN, "pool in the switch at 16 ($)"),
        Fact("pool in the switch at 16 (p99)", "storage nodes, no pool at 16 (p99)"),
    )


def test_what_systems_are_beside_the_pool_must_be_seen() -> None:
    noisy = of_runs([{**run(value), "ttft_s": {"mean": value, "p99": 0.6}} for value in (0.1, 0.3, 0.19)])
    claim = systems_claim(
        {
            "chat": {
                "stores": sample(0.3),
                "switch": sample(0.2),
                "recompute": sample(0.4),
                "cxl": noisy,
            }
        }
    )
    assert claim.text.startswith(
        "chat: CXL pool (Beluga-like) 0.197 ± 0.249 s (p99 0.600 ± 0.000 s, 0.00 $/h;"
    )
    assert "against the pool not told apart (time -1.7%" in claim.text
    assert "against the pool 50.0% ± 0.0% later" in claim.text
    assert claim.facts == (
        Fact("pool in the switch at chat", "storage nodes, no pool at chat"),
        Fact("pool in the switch at chat", "recompute always at chat"),
        Fact("pool in the switch at chat (p99)", "storage nodes, no pool at chat (p99)"),
        Fact("pool in the switch at chat (p99)", "recompute always at chat (p99)"),
        Alike("CXL pool (Beluga-like) at chat (p99)", "pool in the switch at chat (p99)"),
    )


def test_what_beats_everything_must_be_seen() -> None:
    labels = (
        "no multicast",
        "no merging",
        "reclaim from stores that forget",
        "stores that forget, no reclaim",
    )
    mine = {EVERYTHING: sample(0.3), "no pool": sample(0.4), **{label: sample(0.3) for label in labels}}
    mine |= {"merging only, nothing cached": sample(0.3), LRU: sample(0.25, storage_egress_bytes=0.9e9)}
    claim = ablation_claim(mine)
    assert Fact(EVERYTHING + MEAN_MARK, "no pool" + MEAN_MARK) in claim.facts
    assert Fact(LRU, EVERYTHING) in claim.facts
    assert Fact(LRU + MEAN_MARK, EVERYTHING + MEAN_MARK) in claim.facts
    assert Fact(LRU + TAIL_MARK, EVERYTHING + TAIL_MARK) in claim.facts
    assert sum(isinstance(fact, Fact) for fact in claim.facts) == 4


def test_a_slower_control_plane_must_be_seen() -> None:
    claim = control_claim({"as measured": sample(0.3), "slow": sample(0.4), "same": sample(0.3)})
    assert claim.facts == (
        Fact("as measured", "slow"),
        Fact("as measured (p99)", "slow (p99)"),
        Alike("same (p99)", "as measured (p99)"),
    )


def test_a_word_that_the_drawn_means_contradict_is_not_said() -> None:
    """Sooner by the ratio of each seed, later in the mean that is drawn."""
    one = of_runs([run(mean_s) for mean_s in (0.099, 0.099, 0.099, 10.5)])
    other = of_runs([run(mean_s) for mean_s in (0.1, 0.1, 0.1, 10.45)])
    assert told_change(one, other, *MEAN).startswith(("no different", "not told apart"))
    assert "sooner" in told_change(sample(0.19), sample(0.2), *MEAN)


def test_an_axis_names_the_place_at_which_the_pool_changes_most() -> None:
    """Neither end: who tells only these hides it."""
    stores = {value: sample(0.2, 1.47) for value in (1, 4, 16, 64)}
    pools = {1: 0.199, 4: 0.197, 16: 0.15, 64: 0.2}
    claim = axis_claim(
        {value: {"stores": stores[value], "switch": sample(pools[value], 1.96)} for value in pools}
    )
    assert (
        "at 1, 0.5% ± 0.0% sooner; at 16, 25.0% ± 0.0% sooner; at 64, no different (time +0.0% ± 0.0%)"
        in claim.text
    )
    assert Fact("pool in the switch at 16", "storage nodes, no pool at 16") in claim.facts
