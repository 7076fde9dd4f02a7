"""Hot prefixes pushed by the switches' controllers: who gets what, and what it changes."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from commands.toml_file import ScenarioError
from experiments.simulate.emulate import Emulator
from hostlib.client.pushed import PushedOptions
from scenario import Scenario
from simulator.messages import PROBE, Ask, Block, Reply
from simulator.pushed import PushedParts
from simulator.result import SimResult
from simulator.simulation import prepare, simulate
from simulator.system import System

GROUP = 7
CROWD: dict[str, dict[str, Any]] = {
    "workload": {"requests": 200, "load": 16.0, "scheduler": "round_robin"},
    "nodes": {"count": 6, "gpu_gb": 4.0, "dram_gb": 4.0},
    "control": {"report_count": 1, "push": True},
}
FABRIC: dict[str, dict[str, Any]] = {
    "nodes": {"count": 4},
    "storage": {"count": 1},
    "network": {"topology": "leafspine", "leaves": 3, "spines": 1, "segments": 2},
}


def play(**tables: dict[str, Any]) -> SimResult:
    """Requests that go to each of six small nodes in turn."""
    merged = {name: {**CROWD.get(name, {}), **tables.get(name, {})} for name in {*CROWD, *tables}}
    return simulate(Scenario().changed(**merged))


@cache
def block(number: int, above: int = 0, parts: tuple[int, ...] = (1, 4, 4)) -> Block:
    """A block and the one before it in its chain, by number; 0: it is the first. One object a block."""
    return Block(key(number), 1 if above else 0, key(above), "store1", parts)


def key(number: int) -> bytes:
    return number.to_bytes(4, "big") * 4


class Node:
    """What a node holds, and what it takes of what comes unasked."""

    def __init__(self) -> None:
        self.held: list[Block] = []
        self.parts = PushedParts(self.held.__contains__, self.held.append)

    def offer(self, *blocks: Block) -> None:
        for each in blocks:
            for part in range(len(each.parts)):
                self.parts.offer(each, part)


def test_a_node_takes_what_follows_what_it_asked_for_and_nothing_else() -> None:
    node = Node()
    assert node.parts.asks(block(1), 0.0)
    node.offer(block(2, above=1), block(3, above=2), block(9, above=8))
    assert node.held == [block(2, above=1), block(3, above=2)]
    assert node.parts.taken == 2
    node.offer(block(2, above=1))
    assert node.held == [block(2, above=1), block(3, above=2)]


def test_a_block_is_taken_when_all_its_parts_are_there() -> None:
    node = Node()
    node.parts.asks(block(1), 0.0)
    for part in (0, 2, 2, 0):
        node.parts.offer(block(2, above=1), part)
    assert not node.held
    node.parts.offer(block(2, above=1), 1)
    assert node.held == [block(2, above=1)]


def test_of_too_many_incomplete_blocks_the_oldest_gives_way() -> None:
    node, most = Node(), PushedOptions().max_partial
    node.parts.asks(block(1), 0.0)
    many = [block(number, above=1) for number in range(2, most + 3)]
    for each in many:
        node.parts.offer(each, 0)
    for each in (many[-1], many[0]):
        for part in (1, 2):
            node.parts.offer(each, part)
    assert node.held == [many[-1]]


def test_a_node_subscribes_to_the_beginning_of_a_prefix_and_again_after_a_while() -> None:
    again_s, node = PushedOptions().subscribe_again_s, Node()
    assert node.parts.asks(block(1), 0.0)
    assert not node.parts.asks(block(2, above=1), 0.0)
    assert not node.parts.asks(block(1), 0.9 * again_s)
    assert node.parts.asks(block(1), again_s)


def fabric() -> System:
    """Four nodes and a storage node at three leaves below a spine; nobody asks for anything."""
    scenario, demand = prepare(Scenario().changed(**FABRIC, workload={"requests": 5}, control={"push": True}))
    return System(scenario, demand)


def run(system: System, for_s: float = 10.0) -> None:
    end = system.loop.event()
    system.loop.after(for_s, end.succeed)
    system.loop.run(until=end)


def test_a_push_goes_to_the_group_and_from_another_switch_on_to_hosts_only() -> None:
    system = fabric()
    switches = {switch.name: switch for switch in system.switches}
    nodes = {name: system.fabric.graph.adj[name] for name in system.fabric.nodes}
    got: dict[str, int] = dict.fromkeys(nodes, 0)
    for name, client in system.clients.items():
        port = next(iter(nodes[name]))

        def count(replies: Sequence[Reply], neighbour: str, tail_s: float, name: str = name) -> None:
            got[name] += sum(reply.ask.fragments for reply in replies)

        system.network.ports[port, name].replied = count
        assert client.pushed is not None
    (spine,) = (name for name in switches if not set(system.fabric.graph.adj[name]) & set(nodes))
    leaves = [name for name in switches if name != spine]
    behind = {leaf: [name for name in nodes if leaf in nodes[name]] for leaf in leaves}
    subscribed = [each[0] for each in behind.values() if each]
    switches[spine].groups[GROUP] = leaves
    for leaf in leaves:
        switches[leaf].groups[GROUP] = [spine, *behind[leaf][:1]]
    pushed = system.library.chain(system.demand.requests[0])[0]
    switches[spine].install(pushed.key, 0)
    assert not switches[spine].push(pushed, PROBE, GROUP)  # it is not filled
    switches[spine].index[pushed.key].filled = set(range(len(pushed.parts)))
    for part in range(len(pushed.parts)):
        assert switches[spine].push(pushed, part, GROUP)
    run(system)
    assert got == {name: pushed.fragments * (name in subscribed) for name in nodes}


def test_a_pushed_value_answers_a_request_that_waits_and_it_is_not_sent() -> None:
    system = fabric()
    client = system.clients[system.fabric.nodes[0]]
    asked = max((system.library.chain(request) for request in system.demand.requests), key=len)
    found: list[str] = []
    client.fetch(asked, found.extend)
    waiting = [ask for lane in client._lanes._lanes for ask in lane.waiting]
    late = waiting[-1].block  # its probe has to wait for others'
    for part in range(len(late.parts)):
        reply = Reply(Ask(late, part, late.parts[part], "leaf", 0), found=True, from_pool=True)
        reply.group = GROUP
        client.replied([reply], "leaf", 0.0)
    assert all(
        ask.part != PROBE or ask.block is not late for lane in client._lanes._lanes for ask in lane.waiting
    )
    run(system)
    assert all(lane.in_flight == 0 for lane in client._lanes._lanes)


def test_what_nodes_keep_asking_for_comes_unasked_and_is_held() -> None:
    without, pushed = play(control={"push": False}), play()
    assert (without.pushed_blocks, without.taken_blocks) == (0, 0)
    assert 0 < pushed.taken_blocks <= pushed.pushed_blocks * 6
    assert pushed.completed == without.completed == 200
    own = [found.blocks["gpu"] + found.blocks["dram"] for found in (without, pushed)]
    assert own[1] > own[0]
    assert pushed.digests > without.digests  # subscriptions


def test_the_pace_counts_fragments_of_the_protocol() -> None:
    """Twice as many fragments in a block: half as many blocks within the controller's bound."""
    coarse, fine = (
        play(network={"fragments": fragments}, workload={"requests": 60}) for fragments in (8, 4096)
    )
    assert fine.pushed_blocks > 0
    assert fine.taken_blocks < coarse.taken_blocks


@pytest.mark.parametrize(
    "changed",
    [
        {"pool": {"memory": "none"}},
        {"nodes": {"gate": "never"}},
        {"storage": {"kind": "peers"}},
        {"model": {"coded_share": 0.25}},
    ],
)
def test_what_cannot_be_pushed_is_refused(changed: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(ScenarioError, match=r"control\.push"):
        play(**changed)


def test_a_scenario_with_a_push_is_played_and_simulated_with_it() -> None:
    emulator = Emulator(Scenario().changed(workload={"requests": 40}, control={"push": True}), 20_000.0)
    assert emulator.run.options.control.push
    assert emulator.matched(pool=True).control.push
    assert not emulator.matched(pool=False).control.push
