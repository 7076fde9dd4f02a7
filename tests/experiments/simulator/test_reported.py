"""A router knows what nodes and pools last said, not what they are."""

from controller.slots import Slots
from experiments.simulator.hardware import Machine
from experiments.simulator.reported import ReportedCluster
from experiments.simulator.routing import ClusterParts
from experiments.simulator.scenario import Scenario
from experiments.simulator.simulation import prepare, simulate
from experiments.simulator.system import System
from workload.schedule import CONDUCTOR

NODE_S, POOL_S = 0.05, 0.1
CONDUCTED = Scenario().changed(workload={"scheduler": CONDUCTOR, "requests": 60}, nodes={"count": 3})


def world() -> tuple[System, ReportedCluster]:
    system = System(*prepare(CONDUCTED))
    parts = ClusterParts(system.nodes, system.stores, system.controls, None, system.library, system.cost)
    return system, ReportedCluster(
        system.loop, parts, Machine(node_report_s=NODE_S, pool_report_s=POOL_S), seed=1
    )


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
