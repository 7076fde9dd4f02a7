"""The picture of the answer: every purchase at its price, and who is left out is said."""

import pytest

from experiments.study.panels.front import KINDS, front, kind
from experiments.study.point import Point
from experiments.study.sample import Sample
from experiments.study.systems import NAMES, Setting, system
from tests.experiments.study.made import sample


def played(nodes: int, **times: float) -> list[tuple[Point, Sample]]:
    setting = Setting(nodes=nodes)
    return [
        (Point("rivals", nodes, name, setting, system(name, setting)), sample(mean_s, cost=number / 2))
        for number, (name, mean_s) in enumerate(times.items())
    ]


TIMES = {
    "recompute": 0.2, "lent": 0.18, "stores": 0.19, "switch": 0.185, "cxl": 0.17, "kvswitch": 0.21,
    "lent_pool": 0.179, "distributed": 0.18, "ideal": 0.178,
}  # fmt: skip


def test_each_purchase_is_drawn_at_its_cost_beside_recomputing() -> None:
    plot = front([*played(16, **TIMES), *played(60, **TIMES)])
    assert plot is not None
    figure, text = plot
    assert "16, 60 nodes" in text
    drawn = {
        (trace.name, x): y
        for trace in figure.data[: len(KINDS)]
        for x, y in zip(trace.x, trace.y, strict=True)
    }
    assert len(drawn) == len(TIMES)
    assert drawn["neither", 0.5] == pytest.approx(0.9)  # lent DRAM
    assert drawn[KINDS[0], 1.5] == pytest.approx(0.925)  # storage nodes and pool
    assert drawn[KINDS[1], 2.5] == pytest.approx(1.05)  # switches that route
    assert {trace.name for trace in figure.data if trace.showlegend} == {*KINDS}


def test_who_is_far_above_is_not_drawn_and_named() -> None:
    plot = front(played(16, **TIMES, l7=4.0))
    assert plot is not None
    assert plot[1].endswith(f"; far above and not drawn: {NAMES['l7']}")


def test_without_recomputing_there_is_nothing_to_compare_with() -> None:
    assert front([]) is None
    assert front(played(16, lent=0.1)) is None


def test_of_what_kind_a_system_is_follows_from_its_switch() -> None:
    assert {name: kind(name) for name in ("switch", "kvswitch", "stores", "l7", "ideal")} == {
        "switch": KINDS[0], "kvswitch": KINDS[1], "stores": KINDS[2], "l7": KINDS[2], "ideal": KINDS[3],
    }  # fmt: skip
