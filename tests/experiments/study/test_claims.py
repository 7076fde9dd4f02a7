"""A sentence that the plot under it contradicts is refused; the rules make none."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.intervals import Interval
from experiments.simulator.measured import SWITCH_DIGEST_CPU_S
from experiments.study.claims import EVEN, Claim, ContradictionError, Fact, contradictions, must_hold
from experiments.study.design_rules import (
    change_claim,
    changes_claim,
    cold_claim,
    joining_claim,
    ledger_claim,
    recompute_claim,
    tails_claim,
)
from experiments.study.designs import JOINED
from experiments.study.ledger import ENTRY_BYTES, READ_S, Entry, entry
from experiments.study.panels import panels
from experiments.study.panels.panel import Found, Panel
from experiments.study.point import Point
from experiments.study.rivals import STEADY_MARK, Purchase, rivals_claim
from experiments.study.sample import MEAN, P99, STEADY, Sample
from experiments.study.systems import Setting, system
from experiments.study.table import Table, ledger_table
from experiments.study.tails import TAIL_MARK
from tests.experiments.study.made import of_runs, run, sample

TIMES = st.lists(st.floats(0.05, 2.0), min_size=3, max_size=3)


def drawn(samples: dict[str, Sample]) -> dict[str, Interval]:
    return {
        name + mark: found.interval(*path)
        for path, mark in ((MEAN, ""), (STEADY, STEADY_MARK), (P99, TAIL_MARK))
        for name, found in samples.items()
    }


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
    claims.append(tails_claim(by_label, list(permutations(by_label, 2))))
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
            0.3,
            cost,
            steady_s=mean_s,
            digests=10,
            table_writes=4,
            table_updates=20,
            control_bytes=1e6,
            entries_read=50_000,
            control_cpu_s=7,
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
    assert "saves 100 ± 0 s of waiting an hour, its first twelfth left out" in losing.text
    assert "less than its 0.50 $/h" not in losing.text
    assert "against recomputing it loses 100 ± 0 s" in losing.text
    gaining = ledger_claim([entry_with(saved_s=0.01, against_s=0.1)])
    assert "less than its 0.50 $/h" in gaining.text
    assert "loses" not in gaining.text
    assert gaining.facts[0] == Fact("64 nodes: waiting saved, $", "64 nodes: dearer by, $")
    assert losing.facts[0] == Fact("64 nodes: dearer by, $", "64 nodes: waiting saved, $")


def test_the_ledger_is_held_to_its_plot_where_mean_or_p99_move() -> None:
    row = replace(entry_with(0.1, 0.1), sooner=Interval(0.02, 0.01, 0.03), tail=Interval(-0.02, -0.03, -0.01))
    claim = ledger_claim([row])
    assert "sooner (below 0: later) by +2.00% ± 1.00% than theirs, p99 by -2.00% ± 1.00%;" in claim.text
    assert claim.facts[1:] == (Fact(EVEN, "64"), Fact("64 (p99)", EVEN))


def test_all_that_the_ledger_counts_has_its_interval() -> None:
    counted = {"table_writes": 4, "table_updates": 20, "control_bytes": 1e6, "pool_blocks": 12}
    pool = of_runs(
        [
            run(0.3, 2.0, digests=some, entries_read=9 * some, control_cpu_s=some, **counted)
            for some in (10, 12, 14)
        ]
    )
    row = entry(64, 12, {"switch": pool, "stores": sample(0.3, 1.5), "recompute": sample(0.3)})
    assert row.switch_s.half == pytest.approx(SWITCH_DIGEST_CPU_S * row.digests.half)
    assert row.digests.half > 0
    table = ledger_table([row])
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["seeds"] == 3
    for name in (
        "requests", "digests", "counters_read", "messages_mb", "controller_cpu_s", "of_which_reading_s",
        "switch_cpu_s", "saved_wait_s", "sooner", "p99_sooner", "saved_ms_a_digest",
    ):  # fmt: skip
        assert isinstance(cells[name], Interval), name


def test_the_ledger_multiplies_measured_costs_with_counts() -> None:
    row = entry_with(0.1, 0.1)
    assert row.digests.mean == 10  # a run of an hour
    assert row.switch_s.mean == pytest.approx(10 * SWITCH_DIGEST_CPU_S)
    assert row.controller_s.mean == 7  # what the simulator counted, reading counters included
    assert row.reading_s.mean == pytest.approx(5e4 * READ_S)
    each = row.earned_ms
    assert each["digest"] is not None
    assert each["digest"].mean == pytest.approx(1e3 * row.saved_s.mean / 10)
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
    panel, *_ = panels(Found(done))
    (figure, _), *_ = panel.plots
    drawn = {
        name: mean
        for trace in figure.data
        if trace.xaxis == "x2"
        for name, mean in zip(trace.y, trace.x, strict=True)
    }
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
    panel, *_ = panels(Found(done))
    assert panel.title == "One node in 4 joins: 16 nodes"
    costs = {name: value for name, value in panel.plotted.items() if not name.endswith(TAIL_MARK)}
    means = {name: round(value.mean) for name, value in costs.items()}
    assert means == {
        "2 storage nodes and pool, joined cold": 20,
        "2 storage nodes and pool, the pool pushes": 10,
        "distributed DRAM (Mooncake-like), joined cold": 10,
    }  # nothing is said of storage nodes alone: their warm run is missing
    assert Fact(*reversed(list(means)[:2])) in panel.claim.facts
    assert Fact(*(name + TAIL_MARK for name in reversed(list(means)[:2]))) in panel.claim.facts
    rows = {row[0]: dict(zip(panel.table.columns, row, strict=True)) for row in panel.table.rows}
    assert rows.keys() == means.keys()
    joined_cold = rows["2 storage nodes and pool, joined cold"]
    assert joined_cold["ttft_p99_s"].mean == pytest.approx(0.66)
    assert joined_cold["p99_ratio"].mean == pytest.approx(1.1)
    assert joined_cold["seeds"] == 3
