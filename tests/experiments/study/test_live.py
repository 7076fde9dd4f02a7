"""The designs live: what would be played, and what the table makes of it."""

from typing import Any

import pytest

from experiments.simulator.emulate import Emulator
from experiments.study.live import DESIGNS, Found, gain, main, scenario, simulated, table


def record(live_s: float, simulated_s: float | None) -> dict[str, Any]:
    return {
        "played": {"mean_s": live_s, "p99_s": 3 * live_s, "complaints": []},
        "simulated": None if simulated_s is None else {"mean_s": simulated_s, "p99_s": 3 * simulated_s},
    }


FOUND: Found = {
    "no_pool 1": record(0.4, 0.4),
    "no_pool 2": record(0.5, 0.5),
    "pool 1": record(0.2, 0.3),
    "pool 2": record(0.26, 0.25),
    "pool 3": record(0.1, 0.1),
    "push 1": record(0.15, None),
}


def test_a_gain_is_that_of_pairs_with_the_same_seed() -> None:
    live, model = gain(FOUND, "pool", "played"), gain(FOUND, "pool", "simulated")
    assert live is not None
    assert live.mean == pytest.approx((0.5 + 0.48) / 2)
    assert live.low < 0.48 < 0.5 < live.high
    assert model is not None
    assert model.mean == pytest.approx((0.25 + 0.5) / 2)


def test_the_table_has_what_was_played_and_says_what_has_no_counterpart() -> None:
    lines = table(FOUND).splitlines()
    assert len(lines) == 2 + 3
    assert lines[2].startswith("| the switch forwards | 2 | 0.450 | 0.450 | |".replace("| |", "|  |"))
    push = lines[-1].split("|")
    assert push[4].strip() == "none"
    assert push[5].strip() == "+25.0%"  # one seed, no interval
    assert push[6].strip() == "none"


def test_every_design_can_be_played_and_all_but_the_push_simulated() -> None:
    for key, design in DESIGNS.items():
        emulator = Emulator(scenario(design, 1).changed(workload={"requests": 30}), 20_000.0)
        found = simulated(emulator, design)
        assert (found is None) == (key == "push")
        assert emulator.run.options.codec == ("cachegen" if design.coded else "none")
        assert emulator.run.options.gate == (design.gate == "compare")
        assert not design.against or design.against in DESIGNS


@pytest.mark.parametrize(
    ("given", "said"),
    [("--designs=pool,magic", "no design 'magic'"), ("--seeds=1,two", "whole numbers")],
)
def test_what_is_not_there_is_refused(given: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([given]) == 2
    assert said in capsys.readouterr().err
