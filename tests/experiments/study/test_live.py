"""The designs live: what would be played, and what is made and said of it."""

from typing import Any

import pytest

from experiments.simulate.emulate import Emulator
from experiments.study.live import in_turns, main, scenario, simulated
from experiments.study.panels import panels
from experiments.study.panels.live import live
from experiments.study.panels.panel import Found
from experiments.study.played import DESIGNS, Live, complaints, gains
from tests.slow import rest_slow


def record(live_s: float | None, simulated_s: float | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "simulated": None if simulated_s is None else {"mean_s": simulated_s, "p99_s": 3 * simulated_s}
    }
    if live_s is not None:
        made["played"] = {"mean_s": live_s, "p99_s": 3 * live_s, "complaints": []}
    return made


FOUND: Live = {
    "no_pool 1": record(0.4, 0.4),
    "no_pool 2": record(0.5, 0.5),
    "no_pool 3": record(None, 0.5),
    "pool 1": record(0.2, 0.3),
    "pool 2": record(0.26, 0.25),
    "pool 3": record(0.1, 0.1),
    "push 1": record(0.15, None),
}


def of(live: Live, label: str) -> Any:
    return next(gain for gain in gains(live) if gain.design.label == label)


def test_a_gain_is_that_of_pairs_with_the_same_seed() -> None:
    gain = of(FOUND, "merging and pool")
    assert gain.live.mean == pytest.approx((0.5 + 0.48) / 2)
    assert gain.live.low < 0.48 < 0.5 < gain.live.high
    assert gain.simulated.mean == pytest.approx((0.25 + 0.5) / 2)  # the third seed was not played without
    assert gain.apart.mean == pytest.approx((0.25 - 0.02) / 2)


def test_the_table_has_what_was_played_and_says_what_has_no_counterpart() -> None:
    table = live(FOUND).table.flat()
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert list(rows) == ["the switch forwards", "merging and pool", "pool, and hot prefixes pushed"]
    assert rows["the switch forwards"]["seeds"] == 2
    assert rows["the switch forwards"]["simulated_mean_s"] == pytest.approx(0.45)  # of the seeds played
    push = rows["pool, and hot prefixes pushed"]
    assert push["simulated_mean_s"] is None
    assert push["live_sooner"] == pytest.approx(0.25)
    assert push["live_p99_sooner"] == pytest.approx(0.25)
    assert push["live_sooner_low"] is None  # one seed, no interval


def test_the_studys_report_has_what_was_played_and_only_then() -> None:
    found = Found([], live=FOUND)
    assert [panel.title for panel in panels(found)] == ["The designs live"]
    simulated_only = Found([], live={"no_pool 1": record(None, 0.4), "pool 1": record(None, 0.3)})
    assert not panels(simulated_only)


def test_designs_take_turns() -> None:
    assert list(in_turns(("no_pool", "pool"), (1, 2))) == [
        ("no_pool", 1), ("pool", 1), ("pool", 2), ("no_pool", 2),
    ]  # fmt: skip


def test_a_play_that_does_not_count_is_named() -> None:
    late = record(0.4, 0.4)
    late["played"]["complaints"] = ["timers were 30 ms late"]
    assert complaints({"pool 1": late, "pool 2": record(None, 0.4)}) == ["pool 1: timers were 30 ms late"]
    assert "did not keep up in 1 plays: pool 1" in live({"no_pool 1": record(0.4, 0.4), "pool 1": late}).note


@pytest.mark.parametrize("name", rest_slow(["push"], DESIGNS))
def test_every_design_can_be_played_and_simulated(name: str) -> None:
    design = DESIGNS[name]
    emulator = Emulator(scenario(design, 1).changed(workload={"requests": 160}), 20_000.0)
    found = simulated(emulator, design.mode)
    assert found["mean_s"] > 0
    assert (found["pushed"] > 0) == design.push == emulator.run.options.control.push
    assert len(emulator.run.joining) == design.joining
    assert emulator.run.options.model.codec == ("cachegen" if design.coded else "none")
    assert emulator.run.fabric.requests_first == design.requests_first
    assert emulator.run.options.gate == (design.gate == "compare")
    assert emulator.run.options.lends == design.lends
    assert found["from_hosts"] > 0
    assert not design.against or design.against in DESIGNS


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--designs=pool,magic", "DESIGNS: there is no 'magic'"),
        ("--seeds=1,two", "SEEDS: must be a whole number, not 'two'"),
    ],
)
def test_what_is_not_there_is_refused(given: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([given]) == 2
    assert said in capsys.readouterr().err
