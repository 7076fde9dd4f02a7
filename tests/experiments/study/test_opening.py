"""What the report says first: no more than its figures."""

from random import Random

from experiments.study.opening import opening, opening_table
from experiments.study.point import Point
from experiments.study.sample import Sample
from experiments.study.systems import BOUND, Setting, system
from tests.experiments.study.made import of_runs, run, sample

COSTS = {"recompute": 0.0, "lent": 0.0, "stores": 1.47, "switch": 1.96, "lent_pool": 0.49, BOUND: 0.0}


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
        "Of 2 purchases with a pool or merging in the switch, with 16 nodes, 1 is surely sooner to the first "
        "token than everything that costs no more, in the second half 1 is. "
    )
    name = "the nodes' own DRAM, lent, pool in front"
    lead = f"{name} with 16 nodes by 5.56% ± 0.00% (p99 +5.56% ± 0.00%; 0.49 $/h)."
    assert f"With the cold start: {lead} In the second half: {lead}" in ahead[0]
    behind = opening(at(recompute=0.2, lent=0.17, lent_pool=0.18, switch=0.19))
    assert "with 16 nodes, none is surely sooner" in behind[0]
    assert behind[0].endswith("than everything that costs no more, in the second half none is.")
    cold = opening(bought({"recompute": sample(0.2, 0.0), "switch": sample(0.19, 1.96, steady_s=0.25)}))
    assert "1 is surely sooner" in cold[0]
    assert "in the second half none is." in cold[0]
    assert "In the second half:" not in cold[0]


def test_the_bound_and_storage_nodes_are_told_where_they_were_played() -> None:
    told = opening(at(recompute=0.2, lent=0.18, stores=0.19, switch=0.181, **{BOUND: 0.1782}))
    one = "+1.00% ± 0.00% with 16 nodes"
    assert told[0].endswith(
        "the bound on all switches that merge or keep blocks in front of it leads it by "
        f"{one}; in the second half by {one}; p99 by {one}."
    )
    assert told[0].count(". ") == 0  # the bound is in the first sentence
    told = opening(at(recompute=0.2, lent=0.18, stores=0.19, switch=0.171))
    assert "a pool before these is sooner by +10.00% ± 0.00% with 16 nodes;" in told[1]
    more = {"stores": sample(0.19, 1.47), "switch": sample(0.152, 5.36)}
    both = [*at(recompute=0.2, lent=0.18, stores=0.19, switch=0.171), *bought(more, 60)]
    assert "sooner by +10.00% ± 0.00% with 16 nodes to +20.00% ± 0.00% with 60 nodes;" in opening(both)[1]
    table = opening_table(both)
    assert table.columns == ("sooner by", "16 nodes", "60 nodes")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["pool over 2 storage nodes, p99"] == ("+10.00% ± 0.00%", "+20.00% ± 0.00%")
    assert "bound over lent DRAM" not in rows  # the bound was not played
    assert rows["lent DRAM over recomputing"] == ("+10.00% ± 0.00%", "")
    assert rows["2 storage nodes, $/h"] == ("1.47", "1.47")
    assert rows["2 storage nodes and pool, $/h"] == ("1.96", "5.36")
    assert rows["seeds"] == (3, 3)
    assert opening_table([]).rows == ()
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
        (start, *_) = opening(bought(mine))[0].split(" In the second half")
        if "pool in front with 16 nodes" in start:
            named += 1
            assert pool < min(mine["lent"].mean("ttft_s", "mean"), mine["recompute"].mean("ttft_s", "mean"))
    assert named > 3


def test_an_hour_is_told_beside_the_halves_of_short_runs() -> None:
    halves = at(recompute=0.2, lent=0.18, stores=0.19, switch=0.171)
    setting = Setting(nodes=16)
    hours = [
        (Point("hour", 16, name, setting, system(name, setting)), sample(mean_s, COSTS[name]))
        for name, mean_s in (("stores", 0.2), ("switch", 0.198))
    ]
    assert "In an hour" not in opening(halves)[-1]
    said = opening([*halves, *hours])[-1]
    assert said.startswith(
        "In an hour, its first twelfth left out, a pool before 2 storage nodes is sooner by"
    )
    assert "+1.00% ± 0.00% with 16 nodes (p99 +1.00% ± 0.00% with 16 nodes)" in said
    table = opening_table([*halves, *hours])
    rows = {row[0]: row[1] for row in table.rows}
    assert rows["pool over 2 storage nodes, second half"] == "+10.00% ± 0.00%"
    assert rows["pool over 2 storage nodes, an hour"] == "+1.00% ± 0.00%"
