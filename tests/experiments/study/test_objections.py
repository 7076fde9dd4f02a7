"""Each objection is answered with a figure that a rule makes of what was played, validated or counted."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.intervals import Interval
from experiments.study.adaptive import Coarse
from experiments.study.answers import answers
from experiments.study.believed import OBJECTIONS, RELATIVE, believed, missing
from experiments.study.claims import Claim, Fact
from experiments.study.objections import objections
from experiments.study.panels import panels
from experiments.study.panels.panel import Found, Panel
from experiments.study.point import Point
from experiments.study.sample import Sample
from experiments.study.systems import BOUND, Setting, system
from experiments.study.table import Table
from experiments.study.tornado import BASE
from tests.experiments.study.made import of_runs, run, sample
from tests.experiments.study.test_opening import at, bought

NOTHING = Path("nowhere")


def test_objections_are_answered_with_what_was_played(tmp_path: Path) -> None:
    done = at(recompute=0.2, lent=0.18, stores=0.19, switch=0.171, **{BOUND: 0.1782})
    setting = Setting(nodes=60)
    for name, asks, mean_s in (("recompute", True, 0.19), ("stores", False, 0.61), ("stores", True, 0.186)):
        mine = replace(setting, asks_first=asks, requests_first=asks)
        variant = {True: "requests first, homes asked", False: "gate by last answers"}[asks]
        point = Point("gate", 60, name, mine, system(name, mine), "" if name == "recompute" else variant)
        done.append((point, sample(mean_s)))
    rows = dict(objections(Found(done, coarse=[Coarse("map 3", 4, 0.03, 0.005)]), NOTHING).rows)
    assert (
        "0.610 ± 0.002 s (p99 1.830 ± 0.005 s) by last answers, 0.186"
        in rows["The gate fetched from jammed homes"]
    )
    assert rows["One seed, and a noise that nobody measured"].startswith("3 seeds, the same for all")
    assert "the widest (map 3) ±3.0%" in rows["One seed, and a noise that nobody measured"]
    pool = rows["The pool was compared with two storage nodes at any fan-in"]
    assert (
        "against the nodes' own DRAM, lent: 5.0% ± 0.0% sooner (p99: time -5.0% ± 0.0%), in the second half "
        "5.0%" in pool
    )
    assert "(1.96 and 0.00 $/h)" in pool
    assert rows["Recomputing was billed for storage"] == "0.00 $/h"
    assert rows[RELATIVE].startswith("not answered: ")


def test_a_pool_stands_beside_the_storage_nodes_that_cost_as_much() -> None:
    """At 60 nodes eight switches have a pool: four storage nodes are no rival at equal cost."""
    bought_stores = {2: 1.47, 4: 2.03, 8: 3.14, 16: 5.363}
    done: list[tuple[Point, Sample]] = []
    for stores, cost in bought_stores.items():
        setting = Setting(nodes=60, stores=stores)
        point = Point("rivals", 60, "stores", setting, system("stores", setting))
        done.append((point, sample(0.2 - stores / 1000, cost)))
    done += bought({"switch": sample(0.19, 5.356)}, 60)
    (told,) = (
        text for _, text in objections(Found(done), NOTHING).rows if text.startswith("2 storage nodes")
    )
    assert "against 4 storage nodes" not in told
    assert "against 8 storage nodes: 1.0% ± 0.0% sooner" in told
    assert "against 16 storage nodes: 3.3% ± 0.0% later" in told


def test_a_gain_at_many_nodes_has_buying_nothing_beside_it() -> None:
    done: list[tuple[Point, Sample]] = []
    for name, mean_s in (("switch", 0.334), ("stores", 0.610), ("recompute", 0.191)):
        setting = Setting(nodes=60)
        done.append((Point("nodes", 60, name, setting, system(name, setting)), sample(mean_s)))
    rows = dict(objections(Found(done), NOTHING).rows)
    told = rows["A pool was said to pay where recomputing was better than both"]
    assert told == (
        "2 storage nodes and pool:\n60 nodes, against 2 storage nodes: 45.2% ± 0.0% sooner (p99: time "
        "-45.2% ± 0.0%), against recompute always: 74.9% ± 0.0% later (p99: time +74.9% ± 0.0%)"
    )


def test_tails_that_are_told_apart_are_named_with_their_intervals() -> None:
    rows = dict(objections(Found(at(recompute=0.2, lent=0.18)), NOTHING).rows)
    assert rows["Means only; p99 was the same"].endswith("lent (-10.0% ± 0.0%)")
    same = dict(objections(Found(at(recompute=0.2, lent=0.2)), NOTHING).rows)
    assert same["Means only; p99 was the same"].endswith(
        "told from recomputing nowhere; of the other 1 furthest with the nodes' own DRAM, lent (+0.0% ± 0.0%)"
    )


def test_p50_is_told_beside_the_mean_which_it_is_not() -> None:
    lent = of_runs([{**run(0.19), "ttft_s": {"mean": 0.19, "p50": 0.1, "p99": 0.6}} for _ in range(3)])
    rows = dict(objections(Found(bought({"recompute": sample(0.2), "lent": lent})), NOTHING).rows)
    assert "16 nodes: p50 50.0% ± 0.1% sooner, mean 5.0% ± 0.2% sooner" in rows["p50 was not told"]


def test_a_real_switch_in_front_of_lent_dram_is_told_at_every_fan_in_that_it_was_bought_at() -> None:
    done = [
        pair
        for nodes in (16, 60)
        for pair in bought(
            {"lent": sample(0.2), "lent_pool": sample(0.199, 0.49), "answered_pool": sample(0.206, 0.49)},
            nodes,
        )
    ]
    told = dict(objections(Found(done), NOTHING).rows)["A switch in front of lent DRAM was an idealised one"]
    assert "16 nodes, against none" in told
    assert "60 nodes, against none: with the switches' own pool and control plane 3.0% ± 0.0% later" in told


def test_belugas_claim_is_tried_on_belugas_pool() -> None:
    done = of_sweep("designs", 32, recompute=0.2, stores=0.16, cxl=0.1)
    setting = Setting(nodes=32, scheduler="round_robin")
    blind = Point("designs", 32, "cxl", setting, system("cxl", setting), "round robin")
    rows = dict(objections(Found([*done, (blind, sample(0.4))]), NOTHING).rows)
    told = rows["Round robin with a pool was not tried on Beluga's own pool"]
    assert "32 nodes: 100.0% ± 0.0% later (p99: time +100.0% ± 0.0%) than recompute always" in told
    assert "150.0% ± 0.0% later" in told
    assert told.endswith("than CXL pool (Beluga-like)")


def test_what_validation_left_is_told_by_play_and_by_row(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    figures = [("a", True), ("a", True), ("b", True), ("b", False), ("c", None), ("d", False)]
    summary = {
        "revision": "abc",
        "revisions": {"emulator": "def"},
        "overloaded": ["d"],
        "emulator": [
            {"scenario": name, "tolerance": None if agrees is None else 0.1, "agrees": agrees}
            for name, agrees in figures
        ],
        "literature": [
            {"source": "one", "deviation": 0.1, "fitted": False},
            {"source": "another", "deviation": -0.2, "fitted": False},
            {"source": "another", "deviation": 0.0, "fitted": True},
        ],
    }
    file.write_text(json.dumps(summary))
    rows = dict(believed(file))
    emulated = rows["The simulator was compared with the emulator relative to all blocks"]
    assert emulated.startswith("in 1 of 2 plays all figures agree within")
    assert emulated.endswith("(make validate, revision def)")
    said = rows["Published figures were met by fits, or not compared"]
    assert said.startswith("of published rows, without those used to fit, 1 of 2 w")
    assert "1 of 2 within 15 %, 2 within 25 % (make validate, revision abc); one: 1 of 1 within 15 %" in said
    assert said.endswith("another: 0 of 1 within 15 %, 1 within 25 %")


@pytest.mark.parametrize("text", [None, "", "{", "{}"])
def test_what_was_not_validated_is_said_where_an_objection_needs_it(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "summary.json"
    if text is not None:
        file.write_text(text)
    rows = dict(believed(file))
    assert list(rows) == list(OBJECTIONS)
    assert all(said.startswith("not answered:") and "make validate" in said for said in rows.values())
    told = missing(file)
    assert told is not None
    assert f"{len(OBJECTIONS)} of the report's objections" in told


def of_sweep(sweep: str, value: object, **times: float) -> list[tuple[Point, Sample]]:
    setting = Setting(nodes=32)
    return [
        (Point(sweep, value, name, setting, system(name, setting)), sample(mean_s, cost=1.0))
        for name, mean_s in times.items()
    ]


def test_storage_nodes_share_the_same_memory_however_many_they_are() -> None:
    done = []
    for stores in (1, 16):
        setting = Setting(nodes=16, stores=stores)
        point = Point("rivals", 16, "stores", setting, system("stores", setting))
        done.append((point, sample(0.2)))
    told = dict(objections(Found(done), NOTHING).rows)["More storage nodes had more memory"]
    assert told == "8 TB with 1, 8 TB with 16 storage nodes"


def test_dollars_are_told_against_rivals_with_their_interval() -> None:
    done = of_sweep("tornado", BASE, switch=0.19, stores=0.19, distributed=0.15)
    told = dict(objections(Found(done), NOTHING).rows)[
        "A pool was said to be worth 132 $/h, against two jammed storage nodes"
    ]
    assert told.startswith("32 nodes, second half:\n2 storage nodes and pool ")
    assert "against distributed DRAM (Mooncake-like) (mean first token sooner by -26.7% ± 0.0%" in told


def test_what_single_seeds_would_have_said_stands_beside_what_all_say() -> None:
    stores = of_runs([run(0.2)] * 3)
    pool = of_runs([run(mean_s) for mean_s in (0.19, 0.18, 0.2)])
    rows = dict(objections(Found(bought({"stores": stores, "switch": pool})), NOTHING).rows)
    told = rows["One seed, and a noise that nobody measured"]
    assert "single seeds say +0.0% to +10.0% sooner, all 3 +5.0% ± 12.4%" in told


def test_pools_of_all_sizes_and_a_cold_start_at_the_most_nodes_are_told() -> None:
    done = [
        *of_sweep("pool_gb", 1.0, switch=0.19, stores=0.2),
        *of_sweep("pool_gb", 256.0, switch=0.18, stores=0.2),
    ]
    rows = dict(objections(Found(done), NOTHING).rows)
    assert rows["The plot of breaking even was one dot"] == (
        "2 sizes, the mean first token sooner by: 1 GB +5.0% ± 0.0% (p99 +5.0% ± 0.0%) to 256 GB +10.0% ± "
        "0.0% (p99 +10.0% ± 0.0%)"
    )


def test_a_variant_is_told_with_its_figures_even_where_it_is_no_better() -> None:
    done = of_sweep("ablation", "everything", switch=0.2) + of_sweep("ablation", "no pool", stores=0.21)
    done += of_sweep("ablation", "LRU instead of reuse value", switch=0.202)
    told = dict(objections(Found(done), NOTHING).rows)[
        "Variants (LRU) beat the whole design, and nothing said so"
    ]
    assert told.startswith(
        "none surely does now; LRU instead of reuse value: mean first token 1.0% ± 0.0% later"
    )


def test_answers_are_held_to_the_panels_and_differing_ones_are_counted() -> None:
    found = Found(
        [
            *of_sweep("reuse", 0.0, switch=0.2, stores=0.2),
            *of_sweep("reuse", 1.0, switch=0.19, stores=0.2),
            *at(recompute=0.2, stores=0.18, switch=0.17),
        ]
    )
    made, told = panels(found), answers(found)
    name = "Answer 1 said 32 nodes, the panel 16"
    rows = dict(objections(found, NOTHING, told, made).rows)
    assert rows[name].startswith("1 of 1 answers are word for word")
    assert rows[name].endswith("the first sentence is of 16 nodes, the panels of 16")
    rows = dict(objections(found, NOTHING, ["Below which reuse? At 0.5."], made).rows)
    assert rows[name].startswith("0 of 1 answers")


def test_comparisons_that_sentences_make_are_counted() -> None:
    drawn = {"pool": Interval(0.1, 0.1, 0.1), "none": Interval(0.2, 0.2, 0.2)}
    panel = Panel("a", Claim("pool is sooner.", (Fact("pool", "none"),)), "", (), drawn, Table("a", (), ()))
    rows = dict(objections(Found([]), NOTHING, [], [panel, panel]).rows)
    told = rows["Sentences said the opposite of the plot under them"]
    assert told.startswith("2 comparisons in the claims of 2 panels")


def test_beluga_and_drawn_scenarios_have_rows_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    play = {"tolerance": 0.1}
    figures = {"simulated": 1.2, "published": 1.33}
    summary = {
        "revision": "abc",
        "emulator": [
            {**play, "scenario": "drawn 1: rag, without the pool", "agrees": True},
            {**play, "scenario": "drawn 1: rag, with the pool", "agrees": False},
            {**play, "scenario": "drawn 2: chat, with the pool", "agrees": True},
            {**play, "scenario": "named", "agrees": True},
        ],
        "literature": [
            {
                "source": "Beluga, arXiv",
                "row": "interleaving",
                "figure": "ratio",
                "deviation": -0.1,
                **figures,
            },
            {"source": "Beluga, arXiv", "row": "hit", "figure": "s", "deviation": 0.5, **figures},
            {"source": "Beluga, arXiv", "row": "alone", "deviation": 0.0, "fitted": True},
        ],
    }
    file.write_text(json.dumps(summary))
    rows = dict(believed(file))
    assert (
        ": of 2 1 agree in all figures" in rows["Scenarios were changed until simulator and emulator agreed"]
    )
    beluga = rows["Beluga: 9 of 27 rows within 25 %, by mechanisms that were missing"]
    assert beluga.startswith("1 of 2 within 15 %, 1 within 25 %; 1 more were used to fit")
    met = rows["Readers of a pool that is not interleaved met at one device"]
    assert "interleaved over not: ratio: 1.20, published 1.33" in met
