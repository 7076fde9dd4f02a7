"""A sentence that the plot under it contradicts is refused; the rules make none."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.intervals import Interval
from experiments.simulator.measured import DIGEST_CPU_S, SWITCH_DIGEST_CPU_S
from experiments.study.claims import Claim, ContradictionError, Fact, contradictions, must_hold
from experiments.study.design_rules import (
    change_claim,
    changes_claim,
    cold_claim,
    joining_claim,
    ledger_claim,
    recompute_claim,
)
from experiments.study.designs import JOINED
from experiments.study.ledger import ENTRY_BYTES, Entry, entry
from experiments.study.panels import panels
from experiments.study.panels.panel import Found, Panel
from experiments.study.point import Point
from experiments.study.rivals import STEADY_MARK, Purchase, rivals_claim
from experiments.study.sample import MEAN, STEADY, Sample
from experiments.study.systems import Setting, system
from experiments.study.table import Table
from tests.experiments.study.made import of_runs, run, sample

TIMES = st.lists(st.floats(0.05, 2.0), min_size=3, max_size=3)


def drawn(samples: dict[str, Sample]) -> dict[str, Interval]:
    steady = {name + STEADY_MARK: found.interval(*STEADY) for name, found in samples.items()}
    return {name: found.interval(*MEAN) for name, found in samples.items()} | steady


def test_a_panel_whose_plot_shows_the_opposite_is_refused() -> None:
    claim = change_claim({"pool": sample(0.2), "none": sample(0.3)}, "pool", "none")
    assert "sooner" in claim.text
    table = Table("none", (), ())
    shown = drawn({"pool": sample(0.2), "none": sample(0.3)})
    Panel("right", claim, "", (), shown, table)
    swapped = {"pool": shown["none"], "none": shown["pool"]}
    with pytest.raises(ContradictionError, match="the plot does not show pool below none"):
        Panel("wrong", claim, "", (), swapped, table)
    with pytest.raises(ContradictionError):
        must_hold(claim, {})


def test_what_is_not_certain_claims_nothing() -> None:
    noisy = of_runs([run(value) for value in (0.2, 0.4, 0.3)])
    claim = change_claim({"pool": noisy, "none": sample(0.31)}, "pool", "none")
    assert claim.facts == ()
    assert "not decided" in claim.text


@settings(max_examples=60, deadline=None)
@given(st.lists(TIMES, min_size=4, max_size=4))
def test_no_rule_contradicts_the_means_that_are_drawn(times: list[list[float]]) -> None:
    names = ("recompute", "stores", "switch", "distributed")
    mine = {
        name: of_runs([run(value) for value in values]) for name, values in zip(names, times, strict=True)
    }
    bought = [Purchase(name, 2, found) for name, found in mine.items()]
    by_label = {one.label: one.sample for one in bought}
    claims = [rivals_claim(bought), recompute_claim(by_label, "recompute always")]
    claims += [change_claim(by_label, one, other) for one in by_label for other in by_label if one != other]
    for claim in claims:
        assert contradictions(claim, drawn(by_label)) == []


def test_a_cold_start_that_is_not_told_apart_is_said_to_be_so() -> None:
    apart = {"pushed": Interval(10, 9, 11), "cold": Interval(100, 90, 110)}
    assert cold_claim(apart).facts == (Fact("pushed", "cold"),)
    overlapping = {"pushed": Interval(10, 1, 95), "cold": Interval(100, 90, 110)}
    assert cold_claim(overlapping) == Claim(cold_claim(overlapping).text)
    assert "overlap" in cold_claim(overlapping).text


def test_what_is_open_is_told_after_what_is_decided() -> None:
    noisy = of_runs([run(value) for value in (0.2, 0.4, 0.3)])
    mine = {"pool": sample(0.2), "none": sample(0.3), "noisy": noisy}
    claim = changes_claim(mine, [("noisy", "none"), ("pool", "none"), ("missing", "none")])
    assert claim.text.index("pool: +33.3%") < claim.text.index(
        "Within their intervals, or under 0.05 %, are: noisy"
    )
    assert claim.facts == (Fact("pool", "none"),)


def entry_with(saved_s: float, against_s: float) -> Entry:
    found = {
        name: sample(
            0.3, cost, steady_s=mean_s, digests=10, table_writes=4, table_updates=20, control_bytes=1e6
        )
        for name, cost, mean_s in (
            ("switch", 2.0, 0.3),
            ("stores", 1.5, 0.3 + saved_s),
            ("recompute", 0.0, 0.3 + against_s),
        )
    }
    return entry(64, 12, found)


def test_the_ledger_says_what_is_lost_against_buying_nothing() -> None:
    losing = ledger_claim([entry_with(saved_s=0.1, against_s=-0.1)])
    assert "saves 100 ± 0 s of waiting" in losing.text
    assert "less than its 0.50 $/h" not in losing.text
    assert "against recomputing it loses 100 ± 0 s" in losing.text
    gaining = ledger_claim([entry_with(saved_s=0.01, against_s=0.1)])
    assert "less than its 0.50 $/h" in gaining.text
    assert "loses" not in gaining.text
    assert gaining.facts == (Fact("64 nodes: waiting saved, $", "64 nodes: dearer by, $"),)
    assert losing.facts == (Fact("64 nodes: dearer by, $", "64 nodes: waiting saved, $"),)


def test_the_ledger_multiplies_measured_costs_with_counts() -> None:
    row = entry_with(0.1, 0.1)
    assert row.digests.mean == 10  # a run of an hour
    assert row.cpu_s == pytest.approx(10 * (DIGEST_CPU_S + SWITCH_DIGEST_CPU_S))
    assert row.table_mb == pytest.approx(12 * 12 * ENTRY_BYTES / 1e6)


def test_ratios_are_to_recomputing_without_a_variant() -> None:
    done = []
    for name, variant, mean_s in (
        ("recompute", "", 0.2),
        ("recompute", "conductor", 0.1),
        ("switch", "", 0.15),
    ):
        setting = Setting(nodes=16)
        point = Point("rivals", 16, name, setting, system(name, setting), variant)
        done.append((point, sample(mean_s, cost=0.0 if name == "recompute" else 1.96)))
    (panel,) = panels(Found(done))
    (figure, _), *_ = panel.plots
    drawn = dict(zip(figure.data[1].y, figure.data[1].x, strict=True))
    assert drawn["recompute always"] == 1
    assert drawn["recompute always, conductor"] == pytest.approx(0.5)
    assert drawn["2 storage nodes and pool"] == pytest.approx(0.75)


def test_what_a_push_to_joining_nodes_saves_is_told_by_seed_and_held_to_the_plot() -> None:
    waits_s = {"cold": [2.0, 4.0, 6.0], "pushed": [1.0, 3.1, 4.9], "other": [0.0, 9.0, 4.0]}
    pairs = [("pushed", "cold"), ("cold", "pushed"), ("pushed", "other"), ("pushed", "not played")]
    claim = joining_claim(waits_s, pairs)
    assert claim.facts == (Fact("pushed", "cold"), Fact("pushed", "cold"))
    assert "pushed: 1.00 ± 0.25 s less than cold." in claim.text
    assert "cold: -1.00 ± 0.25 s less than pushed, that is more." in claim.text
    assert "than other, not decided." in claim.text
    assert "not played" not in claim.text


def test_what_joining_costs_is_compared_with_the_same_system_joined_warm() -> None:
    done = []
    for name, kind, mean_s in (
        ("switch", "no", 0.22), ("switch", "pool", 0.21), ("switch", "there", 0.2),
        ("stores", "no", 0.5), ("distributed", "no", 0.31), ("distributed", "there", 0.3),
    ):  # fmt: skip
        setting = Setting(nodes=16)
        point = Point("joining", "16 nodes", name, setting, system(name, setting), JOINED[kind])
        done.append((point, sample(mean_s)))
    (panel,) = panels(Found(done))
    assert panel.title == "One node in 4 joins: 16 nodes"
    means = {name: round(value.mean) for name, value in panel.plotted.items()}
    assert means == {
        "2 storage nodes and pool, joined cold": 20,
        "2 storage nodes and pool, the pool pushes": 10,
        "distributed DRAM (Mooncake-like), joined cold": 10,
    }  # nothing is said of storage nodes alone: their warm run is missing
    assert Fact(*reversed(list(means)[:2])) in panel.claim.facts
