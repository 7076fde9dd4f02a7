"""Blocks that nodes begin to compute: controllers are told, and pools have them once they are put."""

from collections.abc import Sequence
from typing import Any

import pytest

from commands.toml_file import Document
from controller.operations import Answer
from experiments.simulate.emulate import Emulator
from experiments.simulate.kinds import figures
from hostlib.protocol import wire
from hostlib.protocol.expected import ENTRIES, MAX_TOLD, ExpectedBlock, read_expected
from scenario import GB, Scenario
from scenario.reading import decode_scenario
from simulator.expected import Teller
from simulator.messages import NOWHERE, Block
from simulator.simulation import prepare
from simulator.system import System
from tests.simulator.expecting import MACHINE, NEW_ID, new_chain, pass_time, serve, world
from workload.trace import Request


def sent_bytes(system: System) -> float:
    """Of all storage nodes."""
    return sum(system.network.access(name)[1].sent_bytes for name in system.fabric.stores)


def heard(system: System) -> list[tuple[float, Answer]]:
    """What the nodes' switches hand on from now on, and when it came to them."""
    said: list[tuple[float, Answer]] = []
    for node in system.nodes:
        if node.teller is not None:
            control: Any = node.teller._control
            control.on_expect = lambda answer: said.append((system.loop.now, answer))
    return said


def named(answers: Sequence[tuple[float, Answer]]) -> list[ExpectedBlock]:
    return [block for _, answer in answers for block in read_expected(answer.message.value)]


# What comes of it.


@pytest.mark.parametrize("machine", [{}, MACHINE])
def test_an_expected_block_is_in_the_pool_once_its_home_has_it_and_no_byte_leaves_a_home(
    machine: dict[str, Any],
) -> None:
    system = world(machine=machine)
    request, chain = new_chain(system)
    serve(system, 0, request)
    (switch,), acknowledged_bytes = system.switches, sent_bytes(system)
    assert all(block.at_home != NOWHERE and switch.holds(block) for block in chain)
    (record,) = serve(system, 1, request).records
    assert record.sources["pool"] == len(chain)
    assert sent_bytes(system) == acknowledged_bytes


@pytest.mark.parametrize("machine", [{}, MACHINE])
def test_one_that_is_not_expected_comes_from_its_home_the_first_time(machine: dict[str, Any]) -> None:
    system = world(machine=machine, control={"expects": False})
    request, chain = new_chain(system)
    serve(system, 0, request)
    (switch,) = system.switches
    assert all(block.at_home != NOWHERE for block in chain)
    assert not switch.index
    (record,) = serve(system, 1, request).records
    assert record.sources["remote"] == len(chain)


@pytest.mark.parametrize("machine", [{}, MACHINE])
def test_only_the_switch_of_the_node_hears_of_it_and_has_it(machine: dict[str, Any]) -> None:
    fabric = {"topology": "leafspine", "leaves": 2, "spines": 1}
    system = world(network=fabric, machine=machine)
    request, chain = new_chain(system)
    serve(system, 0, request)
    (leaf,) = system.fabric.graph.adj[system.fabric.nodes[0]]
    for switch, control in zip(system.switches, system.controls, strict=True):
        there = len(chain) * (switch.name == leaf)
        assert control.counts.expected == there
        assert sum(switch.holds(block) for block in chain) == there


@pytest.mark.parametrize("fill", ["idle", "now"])
def test_expected_blocks_are_not_fetched_when_they_are_admitted(fill: str) -> None:
    system = world(control={"fill": fill})
    request, chain = new_chain(system)
    serve(system, 0, request)
    (control,) = system.controls
    assert (control.counts.expected, control.counts.admitted) == (len(chain), len(chain))
    assert (control.counts.fills, control.counts.not_found) == (0, 0)
    assert sum(store.stats.requests for store in system.stores) == len(chain)  # the node's probes


def test_a_pool_that_expects_serves_more() -> None:
    scenario = Scenario().changed(
        workload={"requests": 200, "load": 8.0, "scheduler": "round_robin"},
        nodes={"count": 6, "gpu_gb": 4.0, "dram_gb": 1.0},
        control={"report_count": 1, "list_s": 0.1},
    )
    without, expecting = figures(scenario), figures(scenario.changed(control={"expects": True}))
    assert expecting["blocks"]["pool"] > without["blocks"]["pool"]
    assert expecting["storage_egress_bytes"] < without["storage_egress_bytes"]


def test_an_expected_block_that_goes_again_unfilled_is_no_loss() -> None:
    """A pool for one block and its successor: a second message evicts what is not put yet."""
    block_gb = world().sizes.block_bytes / GB
    system = world(pool={"size_gb": 2.5 * block_gb}, control={"eviction": "reclaim"})
    request, chain = new_chain(system, ENTRIES + 2)
    serve(system, 0, request)
    assert all(block.at_home != NOWHERE for block in chain)
    (control,) = system.controls
    assert control.counts.evicted == control.counts.held_elsewhere > 0
    assert control.counts.reclaim_requests == 0


# What is said.


def test_it_is_said_when_computing_begins_of_what_has_to_be_computed() -> None:
    system = world()
    said, node = heard(system), system.nodes[0]
    serve(system, 0, new_chain(system, 2)[0])
    assert [block.depth for block in named(said)] == [0, 1]
    said.clear()
    request, chain = new_chain(system)
    with node.gpu.exclusive() as turn:  # another request computes
        system.loop.start(node.serve(request, chain, {}))
        system.loop.run(until=turn)
        pass_time(system, 10.0)
        assert said == []
    ended_s = system.loop.now
    pass_time(system, 30.0)
    assert [block.depth for block in named(said)] == [2, 3]
    assert said[0][0] == pytest.approx(ended_s, abs=1e-3)


def test_a_message_names_blocks_as_reports_do_and_who_sent_it() -> None:
    system = world()
    said, (request, chain) = heard(system), new_chain(system, ENTRIES + 2)
    serve(system, 1, request)
    assert [len(read_expected(answer.message.value)) for _, answer in said] == [ENTRIES, 2]
    assert {answer.message.op for _, answer in said} == {wire.OP_EXPECT}
    assert {answer.source for _, answer in said} == {system.fabric.hosts[system.fabric.nodes[1]].ipv4}
    assert named(said) == [
        ExpectedBlock(len(block.parts), block.depth, len(chain), 0, block.parent, block.key)
        for block in chain
    ]


def test_on_an_emulated_machine_nodes_say_what_computing_a_block_takes() -> None:
    system = world(machine=MACHINE | {"pace": 2.0})
    said, (request, chain) = heard(system), new_chain(system)
    serve(system, 0, request)
    costs_ms = [round(1000 * system.cost.block_prefill_s(block.depth) / 2) for block in chain]
    assert [block.recompute_ms for block in named(said)] == costs_ms
    assert all(costs_ms)


def test_numbers_that_no_message_has_room_for_are_the_largest_it_has() -> None:
    system = world()
    deep = Block(b"k" * 16, 70_000, b"p" * 16, system.fabric.stores[0], system.sizes.parts)
    reference, _ = system.controls[0].named(deep, 80_000)
    assert (reference.depth, reference.chain_blocks) == (0xFFFF, 0xFFFF)


def test_of_a_long_chain_the_beginning_is_said() -> None:
    system = world()
    said = heard(system)
    request, _ = new_chain(system, MAX_TOLD + 100)
    serve(system, 0, request, for_s=600.0)
    assert len(named(said)) == MAX_TOLD


def test_a_message_waits_on_the_nodes_link_and_then_as_a_digest_and_is_counted() -> None:
    system = world(control={"digest_latency_s": 0.5, "digest_cpu_s": 0.125})
    (control,), node, name = system.controls, system.nodes[0], system.fabric.nodes[0]
    _, chain = new_chain(system)
    _, link = system.network.access(name)
    link.send(system.loop.now, 2.0 * link.bytes_per_s, 1.0)
    sent = link.sent_bytes
    heard_s: list[float] = []
    answered = control.pool.answered

    def note(answer: Answer, now_s: float) -> None:
        heard_s.append(now_s)
        answered(answer, now_s)

    control.pool.answered = note  # type: ignore[method-assign]
    assert node.teller is not None
    node.teller.tell(chain, chain)
    pass_time(system)
    assert heard_s == pytest.approx([2.0 + 0.5 + 4 * 0.125], abs=1e-3)
    assert (control.costs.packets, control.costs.cpu_s) == (1, 0.5)
    assert link.sent_bytes == sent


def test_one_node_is_heard_as_far_as_others_have_as_much() -> None:
    system = world(control={"max_digests_per_s": 2})  # eight within its window, four of one node
    request, _ = new_chain(system, 12)
    serve(system, 0, request)
    assert system.controls[0].counts.expected == 4
    request = Request(0.0, 12 * system.demand.block_tokens, 1, tuple(range(NEW_ID + 100, NEW_ID + 112)))
    serve(system, 1, request)
    assert system.controls[0].counts.expected == 8


@pytest.mark.parametrize(
    "tables",
    [
        {"storage": {"kind": "peers"}, "direct": {"front": "switches"}},
        {"nodes": {"stores_new": False}},
        {"nodes": {"gate": "never"}},
        {"pool": {"memory": "none"}},
        {"storage": {"kind": "direct"}},
        {"storage": {"kind": "peers"}},
    ],
)
def test_nothing_is_said_where_nothing_is_put_or_nobody_hears(tables: dict[str, dict[str, Any]]) -> None:
    assert all(node.teller is None for node in world(**tables).nodes)


def test_nodes_that_work_in_steps_say_it_too() -> None:
    system = world(nodes={"decode": "steps", "loading": "blocking"})
    said, (request, chain) = heard(system), new_chain(system)
    serve(system, 0, request)
    assert [block.key for block in named(said)] == [block.key for block in chain]


def test_of_a_stream_all_levels_are_expected_each_with_its_own_length() -> None:
    model = {"name": "llama3-70b", "gpu": "h800", "codec": "cachegen", "level": "adaptive", "coder": "cpu"}
    system = world(model=model, workload={"ttft_slo_s": 1.0, "shape": "chat"}, network={"segments": 1})
    said, (request, chain) = heard(system), new_chain(system, 2)
    serve(system, 0, request)
    forms = [form for block in chain for form in system.library.stored(block)]
    assert len(forms) > len(chain)
    assert [(block.key, block.fragments) for block in named(said)] == [
        (form.key, form.fragments) for form in forms
    ]


def test_a_chunk_is_the_first_block_of_a_chain_of_its_own() -> None:
    system = world()
    said, (_, chain) = heard(system), new_chain(system)
    chunk = Block(b"chunk" + bytes(11), 0, bytes(16), system.fabric.stores[0], system.sizes.parts)
    teller = system.nodes[0].teller
    assert teller is not None
    teller.tell([*chain[2:], chunk], chain)
    pass_time(system)
    assert [block.chain_blocks for block in named(said)] == [4, 4, 1]


# Where it is asked for.


@pytest.mark.parametrize("expects", [False, True])
def test_the_emulators_nodes_expect_as_those_of_the_scenario(expects: bool) -> None:
    emulator = Emulator(Scenario().changed(control={"expects": expects}), 20_000.0)
    assert emulator.run.options.control.expects == expects
    assert [emulator.matched(pool).control.expects for pool in (False, True)] == [expects, expects]


def test_a_scenario_file_may_say_so() -> None:
    document = Document("[control]\nexpects = true\n", "scenario.toml")
    assert decode_scenario(document).control.expects
    assert isinstance(System(*prepare(decode_scenario(document))).nodes[0].teller, Teller)
