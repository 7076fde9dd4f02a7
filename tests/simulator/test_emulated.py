"""The emulator's machine around the parts: there where a scenario has one, and nothing more than that."""

from typing import Any

import pytest

from experiments.simulate.kinds import figures
from hostlib.client.pushed import PushedOptions
from hostlib.native.lane_options import LaneOptions
from scenario import Scenario
from scenario.machine import Machine
from simulator.client import Client
from simulator.emulated.answers import SocketBacklog
from simulator.emulated.client import EmulatedClient
from simulator.emulated.lenders import EmulatedLender
from simulator.emulated.node import EmulatedNode
from simulator.emulated.store import EmulatedStore
from simulator.emulated.switch import EmulatedSwitch
from simulator.events import Event, Loop
from simulator.link import Link
from simulator.messages import NOWHERE, QUESTION, Ask, Block, Put
from simulator.node import Node
from simulator.simulation import prepare
from simulator.store import Store
from simulator.switch import Switch
from simulator.system import System

BUSY = Scenario().changed(
    workload={"requests": 120, "load": 8.0, "scheduler": "round_robin"},
    nodes={"count": 6, "gate": "compare"},
    control={"report_count": 1, "push": True},
)
LENT = BUSY.changed(
    nodes={"hints": "homes"},
    storage={"kind": "peers"},
    direct={"front": "switches"},
    control={"push": False},
)
TIMELESS = {"batch_fragments": 2}
"""A machine that takes no time."""


@pytest.mark.parametrize(
    ("machine", "kinds"),
    [
        ({}, {Client, Node, Store, Switch}),
        (TIMELESS, {EmulatedClient, EmulatedNode, EmulatedStore, EmulatedSwitch}),
        ({"cores": 2}, {EmulatedClient, EmulatedNode, EmulatedStore, EmulatedSwitch}),
    ],
)
def test_parts_are_on_a_machine_where_a_scenario_has_one(machine: dict[str, Any], kinds: set[type]) -> None:
    system = System(*prepare(BUSY.changed(machine=machine)))
    parts = (*system.clients.values(), *system.nodes, *system.stores, *system.switches)
    assert {type(part) for part in parts} == kinds


@pytest.mark.parametrize("scenario", [BUSY, LENT])
def test_on_a_machine_that_takes_no_time_everything_happens_as_without_one(scenario: Scenario) -> None:
    alone = figures(scenario)
    assert alone["blocks"]["pool"] > 0
    assert figures(scenario.changed(machine=TIMELESS)) == alone


@pytest.mark.parametrize("scenario", [BUSY, LENT])
def test_a_process_that_takes_time_makes_them_wait(scenario: Scenario) -> None:
    alone = figures(scenario)["ttft_s"]["mean"]
    for cost in ("switch_packet_s", "node_block_s", "node_fragment_s", "store_fragment_s"):
        slow = scenario.changed(machine={"cores": 64, cost: 0.002})
        assert figures(slow)["ttft_s"]["mean"] > alone, cost


def lenders(**machine: Any) -> tuple[System, list[EmulatedLender]]:
    system = System(*prepare(LENT.changed(machine=machine)))
    fetchers = (node.fetcher for node in system.nodes)
    return system, [one for one in fetchers if isinstance(one, EmulatedLender)]


def test_the_question_to_the_index_wakes_the_index_and_its_answer_the_node() -> None:
    system, (asker, *_) = lenders(cores=2, host_wake_s=0.25, index_s=0.125)
    answered = asker.ask_index(())
    assert isinstance(answered, Event)
    system.loop.run(until=answered)
    assert system.loop.now == 0.75


def test_what_a_node_is_asked_for_waits_until_its_process_has_come_to_it() -> None:
    system, (lender, asker, *_) = lenders(cores=8)
    block = Block(b"its own", 0, b"", "", system.sizes.parts)
    lender._tiers.place(block)
    lender.store([])
    lender._process.do(1.0, lambda: None)
    came = system.loop.event()
    asker.fetch([block], lambda sources: came.succeed())
    system.loop.run(until=came)
    assert 1.0 < system.loop.now < 1.1
    assert len(asker.get_s) == 1


def test_the_index_hears_of_all_that_a_node_has_come_to_hold() -> None:
    """Also of what came for one request while it is another's turn."""
    system, (lender, *_) = lenders(cores=2)
    assert system.lenders is not None
    first, second = (Block(name, 0, b"", "", system.sizes.parts) for name in (b"first", b"second"))
    for block in (first, second):
        lender._fetched.append(block)
        lender.store([])
        assert system.lenders.holders.of(block) == []
    for block in (first, second):
        lender._tiers.place(block)
    lender.store([])
    assert [system.lenders.holders.of(block) for block in (first, second)] == [[0], [0]]


def test_a_host_counts_buffers_as_waiting_until_what_they_hold_has_left_in_whole_milliseconds() -> None:
    loop, link = Loop(), Link("egress", 1e6, 0.0)
    machine = Machine(pace=2.0, cores=2, buffer_share=1.5, batch_fragments=4)
    backlog = SocketBacklog(loop, link, 1000.0, machine)
    block = Block(b"a", 0, b"", "node1", (1, 5))
    link.send(0.0, 5000.0, 1000.0)
    backlog.handed_over([Ask(block, 1, 5, "node2", 1), Ask(block, QUESTION, 1, "node2", 1)])
    assert backlog.said_ms(5.0) == 8.0  # two batches, 3 ms, on top
    assert backlog.said_ms(5.0 - 0.9) == 8.0
    assert backlog.said_ms(5.0 - 1.1) == 6.0
    left = loop.event()
    loop.after(link.free_s, left.succeed)
    loop.run(until=left)
    assert backlog.said_ms(0.0) == 0.0


def test_hosts_fixed_times_are_longer_by_the_emulations_pace() -> None:
    (real, *_), (host, *_) = (
        list(System(*prepare(BUSY.changed(machine=machine))).clients.values())
        for machine in ({}, {"pace": 3.0})
    )
    plain, stretched = real._options.lane, host._options.lane
    assert stretched.target_backlog_ms == 3 * plain.target_backlog_ms
    assert stretched.merged_backlog_ms == 3 * plain.merged_backlog_ms
    assert stretched.min_timeout_s == 3 * plain.min_timeout_s
    assert stretched.initial_window == plain.initial_window


def test_hosts_count_frames_and_what_has_not_come_of_what_they_fetch() -> None:
    framed = BUSY.changed(network={"header_share": 0.25})
    system, plain = (
        System(*prepare(framed.changed(machine=machine))) for machine in ({"cores": 2}, TIMELESS)
    )
    node, block_s = system.nodes[0], system.nodes[0].block_s
    assert block_s == pytest.approx(1.25 * plain.nodes[0].block_s)
    chain = system.library.chain(system.demand.requests[0])[:3]
    homes = {block.home for block in chain}
    first, all_three = system.loop.event(), system.loop.event()
    assert node.fetcher is not None
    node.fetcher.fetch(chain[:1], lambda sources: first.succeed())
    node.fetcher.fetch(chain, lambda sources: all_three.succeed())
    asked = node._load_now(lambda home: 0.0)
    assert asked.link_s == pytest.approx(3 * block_s)
    assert sum(asked.home_s(home) for home in homes) == pytest.approx(3 * block_s)
    system.loop.run(until=first)
    assert 0 < node._load_now(lambda home: 0.0).link_s <= 2 * block_s
    system.loop.run(until=all_three)
    idle = node._load_now(lambda home: 9.0)
    assert (idle.link_s, {idle.home_s(home) for home in homes}) == (0.0, {9.0})


def test_a_node_subscribes_again_by_its_hosts_clock() -> None:
    again_s = PushedOptions().subscribe_again_s
    system = System(*prepare(BUSY.changed(machine={"pace": 10.0})))
    pushed = next(iter(system.clients.values())).pushed
    assert pushed is not None
    first = system.library.chain(system.demand.requests[0])[0]
    assert pushed.asks(first, 0.0)
    assert not pushed.asks(first, 9 * again_s)
    assert pushed.asks(first, 10 * again_s)


def test_of_a_held_block_a_window_leaves_where_hosts_take_time_and_else_a_fragment() -> None:
    left = []
    for machine in ({}, {"pace": 2.0}, {"cores": 2}):
        system = System(*prepare(BUSY.changed(machine=machine)))
        client = next(iter(system.clients.values()))
        held = system.library.chain(system.demand.requests[0])[0]
        assert held.at_home != NOWHERE
        sent: list[int] = []

        def keep(put: Put, sent: list[int] = sent) -> None:
            sent.append(put.fragments)

        system.network.keepers[held.home] = keep
        client.store([held])
        end = system.loop.event()
        system.loop.after(1.0, end.succeed)
        system.loop.run(until=end)
        left += sent
    assert left == [1, 1, LaneOptions().initial_window]
