"""The table that the report begins with."""

from experiments.study.first import first_table
from experiments.study.point import Point
from experiments.study.sample import Sample
from experiments.study.systems import Setting, system
from tests.experiments.study.made import sample

COSTS = {"recompute": 0.0, "lent": 0.0, "stores": 1.47, "switch": 1.96}


def bought(nodes: int, **times: float) -> list[tuple[Point, Sample]]:
    setting = Setting(nodes=nodes)
    return [
        (Point("rivals", nodes, name, setting, system(name, setting)), sample(mean_s, COSTS[name]))
        for name, mean_s in times.items()
    ]


def test_each_number_of_nodes_has_a_column_and_what_was_not_played_is_left_out() -> None:
    table = first_table(
        [
            *bought(16, recompute=0.2, lent=0.18, stores=0.19, switch=0.171),
            *bought(60, stores=0.19, switch=0.152),
        ]
    )
    assert table.columns == ("sooner by", "16 nodes", "60 nodes")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["pool over 2 storage nodes, p99"] == ("+10.00% ± 0.00%", "+20.00% ± 0.00%")
    assert rows["lent DRAM over recomputing"] == ("+10.00% ± 0.00%", "")
    assert "bound over lent DRAM" not in rows
    assert rows["2 storage nodes and pool, $/h"] == ("1.96", "1.96")
    assert rows["seeds"] == (3, 3)
    assert first_table([]).rows == ()


def test_an_hour_stands_beside_the_second_half_of_short_runs() -> None:
    setting = Setting(nodes=16)
    hours = [
        (Point("hour", 16, name, setting, system(name, setting)), sample(mean_s, COSTS[name]))
        for name, mean_s in (("stores", 0.2), ("switch", 0.198))
    ]
    table = first_table([*bought(16, recompute=0.2, stores=0.19, switch=0.171), *hours])
    rows = {row[0]: row[1] for row in table.rows}
    assert rows["pool over 2 storage nodes, second half"] == "+10.00% ± 0.00%"
    assert rows["pool over 2 storage nodes, an hour"] == "+1.00% ± 0.00%"
