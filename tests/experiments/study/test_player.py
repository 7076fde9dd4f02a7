"""A budget over sweeps: a few seeds of each first, then the others of all."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.study.adaptive import ALL_SEEDS, FIRST_SEEDS
from experiments.study.options import parse_options
from experiments.study.plan import points
from experiments.study.player import Player
from experiments.study.systems import Setting
from scenario import Scenario
from tests.experiments.study.made import run


def played(
    folder: Path, noisy_nodes: int, sweeps: str = "rivals,codec", simulations: int = 100_000
) -> Player:
    """Storage nodes beside so many nodes are uncertain, all else is known. There is time for so many
    simulations."""
    options = parse_options([f"--sweeps={sweeps}", f"--results={folder}", "--minutes=100"], "study", "")
    left = simulations

    def simulate_until(scenarios: Sequence[Scenario], deadline_s: float) -> list[dict[str, Any] | None]:
        nonlocal left
        left -= len(scenarios)
        if left < 0:
            return [None for _ in scenarios]
        noise = [one.nodes.count == noisy_nodes and one.storage.kind == "stores" for one in scenarios]
        return [
            run(0.2 + 0.1 * wild * (one.workload.seed % 2) * (one.pool.memory == "none"))
            for one, wild in zip(scenarios, noise, strict=True)
        ]

    centre = Setting(requests=100)
    planned = list(points(centre, None, quick=True))
    player = Player(options, simulate_until, time.monotonic())
    for sweep in options.sweeps:
        player.play(sweep, centre, [point for point in planned if point.sweep == sweep])
    return player


def seeds(player: Player) -> dict[tuple[str, int], int]:
    return {(point.sweep, point.setting.nodes): len(sample.runs) for point, sample in player.found().done}


def test_the_rest_of_the_time_brings_all_to_the_same_seeds_whatever_is_found(tmp_path: Path) -> None:
    player = played(tmp_path, noisy_nodes=32)
    assert set(seeds(player).values()) == {FIRST_SEEDS}
    assert [one.name for one in player.found().coarse] == ["rivals 32"]
    player.remaining_seeds()
    assert seeds(player) == dict.fromkeys((("rivals", 16), ("rivals", 32), ("codec", 16)), ALL_SEEDS)
    assert [(one.name, one.seeds) for one in player.found().coarse] == [("rivals 32", ALL_SEEDS)]


def test_purchases_get_their_seeds_before_axes_get_more_than_their_first(tmp_path: Path) -> None:
    first = played(tmp_path, noisy_nodes=0, sweeps="reuse,rivals")
    enough = FIRST_SEEDS * len(seeds_of_points(first)) + FIRST_SEEDS * len(seeds_of_points(first, "rivals"))
    player = played(tmp_path, noisy_nodes=0, sweeps="reuse,rivals", simulations=enough)
    player.remaining_seeds()
    assert {*seeds_of_points(player, "rivals")} == {ALL_SEEDS}
    assert {*seeds_of_points(player, "reuse")} == {FIRST_SEEDS}


def seeds_of_points(player: Player, sweep: str = "") -> list[int]:
    return [len(sample.runs) for point, sample in player.found().done if sweep in ("", point.sweep)]
