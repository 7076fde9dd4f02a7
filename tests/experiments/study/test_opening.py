"""What the report says first, and what it answers to objections: no more than its figures."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from experiments.study.adaptive import Coarse
from experiments.study.objections import objections
from experiments.study.opening import opening, opening_table
from experiments.study.panels.panel import Found
from experiments.study.point import Point
from experiments.study.sample import Sample
from experiments.study.systems import BOUND, Setting, system
from tests.experiments.study.made import of_runs, run, sample

COSTS = {"recompute": 0.0, "lent": 0.0, "stores": 1.47, "switch": 1.96, "lent_pool": 0.49, BOUND: 0.0}
NOTHING = Path("nowhere")


def bought(samples: dict[str, Sample], nodes: int = 16) -> list[tuple[Point, Sample]]:
    setting = Setting(nodes=nodes)
    return [
        (Point("rivals", nodes, name, setting, system(name, setting)), found)
        for name, found in samples.items()
    ]


def at(**times: float) -> list[tuple[Point, Sample]]:
    return bought({name: sample(mean_s, COSTS[name]) for name, mean_s in times.items()})


def test_a_pool_that_leads_everything_at_its_cost_is_named_and_no_other() -> None:
    ahead = opening(at(recompute=0.2, lent=0.18, lent_pool=0.17, switch=0.19))
    assert ahead[0].startswith(
        "Of 2 purchases with a pool or merging in the switch, with 16 nodes, these are"
    )
    lead = "the nodes' own DRAM, lent, pool in front with 16 nodes by 5.56% ± 0.00% (0.49 $/h)."
    assert f"With the cold start: {lead} In steady state: {lead}" in ahead[0]
    behind = opening(at(recompute=0.2, lent=0.17, lent_pool=0.18, switch=0.19))
    assert "with 16 nodes, none is surely sooner" in behind[0]
    assert behind[0].endswith("neither with the cold start nor in steady state.")
    cold = opening(bought({"recompute": sample(0.2, 0.0), "switch": sample(0.19, 1.96, steady_s=0.25)}))
    assert cold[0].endswith("In steady state: none.")


def test_the_bound_and_storage_nodes_are_told_where_they_were_played() -> None:
    told = opening(at(recompute=0.2, lent=0.18, stores=0.19, switch=0.171, **{BOUND: 0.1782}))
    assert told[1].endswith(
        "leads it by +1.00% ± 0.00% with 16 nodes; in steady state by +1.00% ± 0.00% with 16 nodes; p99 by "
        "+1.00% ± 0.00% with 16 nodes."
    )
    assert "a pool before these is sooner by +10.00% ± 0.00% with 16 nodes;" in told[2]
    more = {"stores": sample(0.19, 1.47), "switch": sample(0.152, 5.36)}
    both = [*at(recompute=0.2, lent=0.18, stores=0.19, switch=0.171), *bought(more, 60)]
    assert "sooner by +10.00% ± 0.00% with 16 nodes to +20.00% ± 0.00% with 60 nodes;" in opening(both)[1]
    table = opening_table(both)
    assert [row[0] for row in table.rows] == [16, 60]
    last = dict(zip(table.columns, table.rows[1], strict=True))
    assert last["pool over 2 storage nodes, p99"] == "+20.00% ± 0.00%"
    assert last["bound over lent DRAM"] is None
    assert (last["$/h of 2 storage nodes"], last["with pool"]) == ("1.47", "5.36")
    assert len(opening(at(recompute=0.2, lent=0.18, lent_pool=0.17))) == 1
    assert opening([]) == []


def test_who_is_named_leads_in_what_is_drawn_whatever_is_drawn() -> None:
    draw, named = Random(3), 0
    for _ in range(200):
        mine = {
            name: of_runs([run(draw.uniform(0.1, 0.2), cost) for _ in range(3)])
            for name, cost in COSTS.items()
        }
        pool = mine["lent_pool"].mean("ttft_s", "mean")
        (start, *_) = opening(bought(mine))[0].split(" In steady state")
        if "pool in front with 16 nodes" in start:
            named += 1
            assert pool < min(mine["lent"].mean("ttft_s", "mean"), mine["recompute"].mean("ttft_s", "mean"))
    assert named > 3


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
    assert "the widest (map 3) ±3.0%" in rows["One seed, and a noise that nobody measured"]
    pool = rows["The pool was compared with two storage nodes at any fan-in"]
    assert "against the nodes' own DRAM, lent: 5.0% ± 0.0% sooner, in steady state 5.0% ± 0.0% sooner" in pool
    assert "(1.96 and 0.00 $/h)" in pool
    assert rows["Recomputing was billed for storage"] == "0.00 $/h"
    assert not any("emulator" in objection for objection in rows)


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
        "2 storage nodes and pool: 60 nodes, against 2 storage nodes: 45.2% ± 0.0% sooner, against "
        "recompute always: 74.9% ± 0.0% later"
    )


def test_the_tail_that_differs_most_has_its_interval() -> None:
    done = at(recompute=0.2, lent=0.18)
    rows = dict(objections(Found(done), NOTHING).rows)
    assert rows["Means only; p99 was the same"].endswith("lent, -10.0% ± 0.0%")


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
    rows = dict(objections(Found([]), file).rows)
    assert [text[:40] for text in rows.values()] == [
        "in 1 of 2 plays all figures agree within",
        "of published rows, none fitted, 1 of 2 w",
    ]
    assert next(iter(rows.values())).endswith("(make validate, revision def)")
    said = list(rows.values())[1]
    assert "1 of 2 within 15 %, 2 within 25 % (make validate, revision abc); one: 1 of 1 within 15 %" in said
    assert said.endswith("another: 0 of 1 within 15 %, 1 within 25 %")


@pytest.mark.parametrize("text", ["", "{", "{}"])
def test_a_damaged_validation_says_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "summary.json"
    file.write_text(text)
    assert objections(Found([]), file).rows == ()
