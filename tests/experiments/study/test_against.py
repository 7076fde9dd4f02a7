"""What argues against a panel is told from what was played: another scenario, another sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from experiments.simulator.scenario import Scenario
from experiments.study.against import (
    all_of,
    around,
    asked,
    favoured,
    held_by_warm,
    inference,
    queues,
    racks,
    switches,
)
from experiments.study.designs import decoder_points, gate_points
from experiments.study.panels.compared import gate
from experiments.study.point import Point
from experiments.study.sample import Sample
from experiments.study.systems import Setting, system
from tests.experiments.study.made import sample


def played(name: str, **setting: Any) -> Scenario:
    return system(name, replace(Setting(), **setting))


def test_questions_wait_at_links_where_they_are_messages_and_a_round_trip_where_they_are_not() -> None:
    """tests/experiments/simulator/test_designs.py holds the simulator to the first."""
    assert asked([played("stores")]) == (
        "what nodes ask homes and switches before a fetch waits at links (before blocks), and takes no CPU"
    )
    assert "(behind blocks)" in asked([played("switch", requests_first=False)])
    both = asked([played("stores", requests_first=False), played("stores")])
    assert "(behind blocks or before blocks)" in both
    index = "what nodes ask that read one another's memory takes a round trip, whatever waits"
    assert asked([played("lent")]) == asked([played("answered")]) == index
    assert asked([played("recompute"), played("stores", asks_first=False)]) == ""


def test_what_is_idealised_is_said_of_what_was_played_alone() -> None:
    assert favoured([played("stores"), played("lent")]) == ""
    assert favoured([played("cxl")]).endswith("no CPU and in no fabric here, which favours it")
    front = favoured([played("cxl"), played("lent_pool")])
    assert "which favours them" in front
    assert "the switches' own" not in front
    assert "the switches' own before them" in favoured([played("lent_pool"), played("answered_pool")])


def test_how_nodes_compute_is_said_with_the_scenarios_own_numbers() -> None:
    apart = inference([played("stores")])
    assert "every pair of tokens" in apart
    assert "no step" in apart
    assert "other nodes decode" in apart
    real = played("stores", decode="batched").changed(
        model={"attention": "causal", "launch_ms": 1.0}, nodes={"chunk_tokens": 512, "running_gb": 32.0}
    )
    assert inference([real]).startswith("where nodes decode, too, chunks are 512 tokens, 32 GB are")


def test_a_queue_for_requests_is_said_to_be_played_live_where_it_was() -> None:
    assert "simulated alone" in queues({})
    live = {
        f"{name} {seed}": {
            world: {"mean_s": mean_s, "p99_s": 3 * mean_s} for world in ("played", "simulated")
        }
        for name, mean_s in (("no_pool", 0.4), ("requests_first", 0.3))
        for seed in (1, 2)
    }
    told = queues(live)
    assert told.endswith("alone: +25.0% ± 0.0% sooner (p99 +25.0% ± 0.0%), simulated +25.0% ± 0.0%")
    done = [(point, sample(0.2)) for point in gate_points(Setting(), quick=True)]
    assert told in gate(done, 16, live).against
    assert "simulated alone" in gate(done, 16, {}).against


def of_sweep(sweep: str, name: str, **setting: Any) -> tuple[Point, Sample]:
    mine = replace(Setting(), **setting)
    return Point(sweep, 1, name, mine, system(name, mine)), sample(0.2)


def test_several_controllers_are_said_to_be_simulated_where_they_were() -> None:
    one = [of_sweep("control", "switch")]
    assert switches(one, "control") == "one setting, with 1 switch"
    more = [*one, of_sweep("rivals", "switch", nodes=60), of_sweep("nodes", "recompute", nodes=256)]
    assert switches(more, "control").endswith("; 8 with their controllers are in: rivals")


def test_the_place_that_an_axis_goes_through_is_that_of_its_points() -> None:
    done = [of_sweep("load", "switch", nodes=32, stores=4)]
    assert (
        around(done, "load")
        == "one axis at a time around 32 nodes and 4 storage nodes; nothing is said of two"
    )
    assert around(done, "stores").startswith("one axis at a time around 32 nodes;")


@pytest.mark.parametrize(("nodes", "told"), [(16, "all decoders are equally near"), (60, "in 4 racks")])
def test_racks_are_those_of_the_fabric(nodes: int, told: str) -> None:
    points = decoder_points(Setting(), quick=False)
    assert told in racks([point.scenario for point in points if point.value == nodes])


def test_warm_nodes_hold_what_their_scenario_says() -> None:
    warm = played("stores").changed(nodes={"warm": "there", "warm_gb": 8.0})
    assert held_by_warm([played("stores"), warm]) == "hold 8 GB of what was used most"


def test_what_does_not_apply_is_left_out() -> None:
    assert all_of("", "one", "", "two") == "one; two."
