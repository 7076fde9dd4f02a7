"""What is done when the machine does not keep up."""

from dataclasses import replace
from typing import Any

import pytest

from commands.command import Screen
from commands.verbosity import QUIET
from emulator.options import parse_options
from emulator.repeats import Repeats
from emulator.scenario import Scenario, make_scenario
from experiments.run import __main__ as command
from tests.experiments.run.test_report import RESULT


@pytest.mark.parametrize(
    ("scale", "first", "played"),
    [
        ("auto", 5000.0, [(5000.0, True), (10_000.0, True), (20_000.0, False)]),
        ("auto", 80_000.0, [(80_000.0, True), (160_000.0, False)]),  # a block is one fragment then
        ("5000", 5000.0, [(5000.0, False)]),
    ],
)
def test_all_is_played_again_with_a_sigma_that_makes_less_of_it(
    scale: str, first: float, played: list[tuple[float, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def play(
        screen: Screen, scenario: Scenario, engine: Any, cluster: None, give_up: bool
    ) -> command._Played:
        asked.append((scenario.scale.sigma, give_up))
        overloaded = replace(RESULT, overloaded=True, complaints=["CPU: too much"])
        return command._Played(scenario, Repeats({"pool": (overloaded,)}), {})

    monkeypatch.setattr(command, "_play", play)
    options = parse_options(["--scale", scale, "--requests", "10"], "test", "")
    scenario = make_scenario(options, first)
    assert command._play_to_count(Screen(QUIET), scenario, None, None).repeats.overloaded  # type: ignore[arg-type]
    assert asked == played
