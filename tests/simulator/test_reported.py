"""A router knows what nodes and pools last said, not what they are."""

from typing import Any

import pytest

from controller.pool.slots import Slots
from scenario import Scenario
from scenario.machine import Machine
from simulator.emulated.reported import ReportedCluster
from simulator.routing import ClusterParts
from simulator.simulation import prepare, simulate
from simulator.system import System
from workload.schedule import CONDUCTOR

NODE_S, POOL_S = 0.05, 0.1
CONDUCTED = Scenario().changed(workload={"scheduler": CONDUCTOR, "requests": 60}, nodes={"count": 3})


def world(node_s: float = NODE_S, **tables: Any) -> tuple[System, ReportedCluster]:
    system = System(*prepare(CONDUCTED.changed(**{"machine": {"live_puts": True}, **tables})))
    parts = ClusterParts(system.nodes, system.stores, system.controls, None, system.library, system.cost)
    machine = Machine(node_report_s=node_s, pool_report_s=POOL_S)
    past = system.library.by_recency(system.demand.past)
    return system, ReportedCluster(system.loop, parts, machine, 1, past)


def pass_time(system: System, seconds: float) -> None:
    over = system.loop.event()
    system.loop.after(seconds, over.succeed)
    system.loop.run(until=over)


def test_what_came_into_a_nodes_memory_is_known_with_its_next_report() -> None:
    system, cluster = world()
    request = system.demand.requests[0]
    chain = system.library.chain(request)
    pass_time(system, NODE_S)  # each has said something by now
    system.nodes[0].place(chain[0])
    assert (system.nodes[0].held(chain), cluster.held_blocks(0, request)) == (1, 0)
    pass_time(system, NODE_S)
    assert cluster.held_blocks(0, request) == 1


def test_the_end_of_a_prefill_is_said_at_once_and_with_it_what_the_node_holds_and_waits_for() -> None:
    system, cluster = world()
    node, request = system.nodes[0], system.demand.requests[0]
    chain = system.library.chain(request)
    pass_time(system, NODE_S)
    node.place(chain[0])
    assert node.fetcher is not None
    alone_s = cluster.transfer_s(0, request, 0, 1)
    node.fetcher.fetch(chain, lambda sources: None)
    assert cluster.transfer_s(0, request, 0, 1) == alone_s
    cluster.prefilled(0)
    assert cluster.held_blocks(0, request) == 1
    assert cluster.transfer_s(0, request, 0, 1) > alone_s
    assert cluster.transfer_s(1, request, 0, 1) == alone_s


def test_what_storage_nodes_hold_is_known_when_the_node_that_stored_it_says_so() -> None:
    system, cluster = world(node_s=1000.0)
    node, request = system.nodes[0], system.demand.requests[0]
    stored = cluster.stored_blocks(request)
    assert stored  # from the start
    block = system.library.chain(request)[stored]
    assert node.fetcher is not None
    node.fetcher.store([block])
    pass_time(system, 1.0)
    assert any(store.holds(block) for store in system.stores)
    assert cluster.stored_blocks(request) == stored
    cluster.prefilled(0)
    assert cluster.stored_blocks(request) == stored + 1


def test_a_transfer_is_as_long_as_the_frames_that_a_link_carries() -> None:
    network, machine = {"header_share": 0.25}, {"live_puts": True, "cores": 2}
    (system, plain), (_, framed) = world(), world(network=network, machine=machine)
    request = system.demand.requests[0]
    assert framed.transfer_s(0, request, 0, 4) == pytest.approx(1.25 * plain.transfer_s(0, request, 0, 4))


def test_a_pools_blocks_are_known_with_its_next_report() -> None:
    system, cluster = world()
    request = system.demand.requests[0]
    stored = cluster.stored_blocks(request)
    block = system.library.chain(request)[stored]  # no storage node has it
    pass_time(system, POOL_S)
    system.controls[0].pool.resident[block.key] = Slots(0, 0, 1)
    assert cluster.stored_blocks(request) == stored
    pass_time(system, POOL_S)
    assert cluster.stored_blocks(request) == stored + 1


def test_a_router_that_hears_late_decides_otherwise() -> None:
    slow = CONDUCTED.changed(workload={"load": 20.0, "shape": "drift"}, network={"link_gbit_s": 5.0})
    late = {"node_report_s": NODE_S, "pool_report_s": POOL_S}
    told, knows = simulate(slow.changed(machine=late)), simulate(slow)
    assert told.requests == knows.requests
    assert told.conductor != knows.conductor
