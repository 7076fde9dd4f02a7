"""The emulator's machine around the parts: there where a scenario has one, and nothing more than that."""

from collections.abc import Mapping

import pytest

from experiments.simulator.client import Client
from experiments.simulator.emulated.client import EmulatedClient
from experiments.simulator.emulated.node import EmulatedNode
from experiments.simulator.emulated.store import EmulatedStore
from experiments.simulator.emulated.switch import EmulatedSwitch
from experiments.simulator.kinds import figures
from experiments.simulator.node import Node
from experiments.simulator.scenario import Scenario
from experiments.simulator.simulation import prepare
from experiments.simulator.store import Store
from experiments.simulator.switch import Switch
from experiments.simulator.system import System

BUSY = Scenario().changed(
    workload={"requests": 120, "load": 8.0, "scheduler": "round_robin"},
    nodes={"count": 6, "gate": "compare"},
    control={"report_count": 1, "push": True},
)
TIMELESS = {"lump_fragments": 2}
"""A machine that takes no time."""


@pytest.mark.parametrize(
    ("machine", "kinds"),
    [
        ({}, {Client, Node, Store, Switch}),
        (TIMELESS, {EmulatedClient, EmulatedNode, EmulatedStore, EmulatedSwitch}),
        ({"cores": 2}, {EmulatedClient, EmulatedNode, EmulatedStore, EmulatedSwitch}),
    ],
)
def test_parts_are_on_a_machine_where_a_scenario_has_one(
    machine: Mapping[str, object], kinds: set[type]
) -> None:
    system = System(*prepare(BUSY.changed(machine=machine)))
    parts = (*system.clients.values(), *system.nodes, *system.stores, *system.switches)
    assert {type(part) for part in parts} == kinds


def test_on_a_machine_that_takes_no_time_everything_happens_as_without_one() -> None:
    alone = figures(BUSY)
    assert alone["blocks"]["pool"] > 0
    assert figures(BUSY.changed(machine=TIMELESS)) == alone


def test_a_process_that_takes_time_makes_them_wait() -> None:
    alone = figures(BUSY)["ttft_s"]["mean"]
    for cost in ("switch_packet_s", "node_block_s", "node_fragment_s", "store_fragment_s"):
        slow = BUSY.changed(machine={"cores": 64, cost: 0.002})
        assert figures(slow)["ttft_s"]["mean"] > alone, cost
