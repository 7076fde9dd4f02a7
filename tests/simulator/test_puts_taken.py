"""What a PUT leaves in the pool of a switch that it passes, and when that counts."""

from typing import Any

import pytest

from simulator.messages import NOWHERE, Block, Put
from simulator.system import System
from tests.simulator.expecting import MACHINE, new_chain, pass_time, world


def put(system: System, node: int, block: Block, for_s: float = 1.0) -> None:
    name = system.fabric.nodes[node]
    system.clients[name].store([block])
    pass_time(system, for_s)


def installed(system: System, block: Block) -> set[int]:
    """The parts that a new entry of it has from then on."""
    (switch,) = system.switches
    switch.install(block.key, 0)
    return switch.index[block.key].filled


@pytest.mark.parametrize("machine", [{}, MACHINE])
@pytest.mark.parametrize("requests_first", [False, True])
def test_it_counts_when_the_home_says_that_it_has_the_block(
    requests_first: bool, machine: dict[str, Any]
) -> None:
    """That leaves the home behind what waits there, unless it has a queue of its own."""
    system = world(
        storage={"count": 1},
        network={"requests_first": requests_first, "fragments": 4},  # all in a window
        machine=machine,
    )
    block, home = new_chain(system, 1)[1][0], system.fabric.stores[0]
    filled, egress = installed(system, block), system.network.access(home)[1]
    egress.send(system.loop.now, 2.0 * egress.bytes_per_s, 1.0)
    put(system, 0, block)
    assert block.at_home != NOWHERE
    assert bool(filled) == requests_first
    pass_time(system)
    assert filled == set(range(len(block.parts)))
    assert system.switches[0].stats.fills == block.fragments


def test_what_passed_before_the_entry_is_filled_by_what_the_home_sends() -> None:
    system = world()
    block = new_chain(system, 1)[1][0]
    client = system.clients[system.fabric.nodes[0]]
    client.store([block])
    pass_time(system, 0.001)  # it is on its way
    filled = installed(system, block)
    pass_time(system)
    assert block.at_home != NOWHERE
    assert filled == set()
    client.fetch([block], lambda sources: None)
    pass_time(system)
    assert filled == set(range(len(block.parts)))


def test_a_block_that_its_home_held_already_does_not_count() -> None:
    """What the node sends is another write than the home has."""
    system = world()
    block = new_chain(system, 1)[1][0]
    put(system, 1, block)
    filled = installed(system, block)
    put(system, 0, block)
    assert filled == set()


def test_of_two_that_put_a_block_only_the_write_that_the_home_has_counts() -> None:
    """Part by part: the second to pass lies over the first."""
    system = world()
    block, (one, other) = new_chain(system, 1)[1][0], system.fabric.nodes
    filled, (switch,) = installed(system, block), system.switches
    first = block.parts[0]
    whole, probe = Put(block, block.fragments, one), Put(block, first, other)
    switch.passes(whole)
    switch.passes(probe)
    switch.made(whole)
    assert filled == set(range(1, len(block.parts)))
    switch.passes(probe)
    switch.made(probe)
    assert filled == set(range(1, len(block.parts)))


def test_a_part_counts_when_all_its_fragments_have_passed() -> None:
    system = world()
    block, name = new_chain(system, 1)[1][0], system.fabric.nodes[0]
    filled, (switch,) = installed(system, block), system.switches
    probe, body, _ = block.parts
    for fragment in range(probe + body + 1):  # of the last part one
        switch.passes(Put(block, 1, name, fragment))
    switch.made(Put(block, 1, name))
    assert filled == {0, 1}


def test_values_that_filled_parts_meanwhile_stay() -> None:
    system = world()
    block, name = new_chain(system, 1)[1][0], system.fabric.nodes[0]
    filled, (switch,) = installed(system, block), system.switches
    whole = Put(block, block.fragments, name)
    switch.passes(whole)
    filled.add(1)
    switch.made(whole)
    switch.passes(whole)
    switch.made(whole)
    assert filled == {1}


def test_what_was_left_for_an_entry_is_nothing_to_the_next() -> None:
    system = world()
    block, name = new_chain(system, 1)[1][0], system.fabric.nodes[0]
    installed(system, block)
    (switch,) = system.switches
    switch.passes(Put(block, block.fragments, name))
    switch.remove(block.key)
    filled = installed(system, block)
    switch.made(Put(block, block.fragments, name))
    assert filled == set()


def test_a_block_on_its_way_out_of_another_pool_leaves_nothing() -> None:
    system = world()
    block = new_chain(system, 1)[1][0]
    filled, (switch,) = installed(system, block), system.switches
    whole = Put(block, block.fragments, "another switch", reclaim=True)
    switch.passes(whole)
    switch.made(whole)
    assert filled == set()


def test_a_put_takes_the_pools_memory_as_a_fill_does() -> None:
    system = world(pool={"memory": "dram"})
    block = new_chain(system, 1)[1][0]
    (switch,) = system.switches
    memory: Any = switch._memory
    put(system, 0, block)
    assert memory.sent_bytes == 0  # it has no entry
    system = world(pool={"memory": "dram"})
    installed(system, block := new_chain(system, 1)[1][0])
    put(system, 0, block)
    memory = system.switches[0]._memory
    assert memory.sent_bytes == pytest.approx(block.fragments * system.sizes.value_bytes)
