"""No sentence of the report says more than the figures under it."""

import pytest

from experiments.study.rules import ablation_sentence, axis_sentence, sram_sentence, systems_sentence
from experiments.study.sample import percent_change, ratio
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
    assert "p99 differs nowhere" in axis_sentence({
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
    assert percent_change(ratio(runs, sample(1.0), "ttft_s", "mean")).startswith("no different")
    assert percent_change(ratio(sample(0.9), sample(1.0), "ttft_s", "mean")) == "10.0% ± 0.0% sooner"
