"""Links that the kernel shapes, and what passes them link by link."""

import pytest

from scenario import Scenario
from simulator.emulated.network import EmulatedNetwork, Shaper
from simulator.link import Link
from simulator.messages import Put
from simulator.network import Network
from simulator.simulation import prepare
from simulator.system import System

BURST_S = 0.01
FABRIC = Scenario().changed(
    workload={"requests": 20}, network={"topology": "leafspine", "leaves": 3, "spines": 1}
)


def network(**machine: object) -> tuple[System, Network]:
    system = System(*prepare(FABRIC.changed(machine=machine)))
    return system, system.network


def test_a_shaper_lets_a_burst_through_and_then_keeps_its_rate() -> None:
    shaper = Shaper("a->b", 100.0, 0.0, burst_s=2.0)
    ends = [shaper.send(10.0, 100.0, 100.0)[1] for _ in range(5)]
    assert ends == [10.0, 10.0, 10.0, 11.0, 12.0]  # two seconds' worth at once, and the packet on top of it
    assert shaper.wait_s(10.0) == 3.0
    assert shaper.send(20.0, 100.0, 100.0)[1] == 20.0


def test_a_message_through_a_shaper_ends_with_its_last_packet() -> None:
    shaper = Shaper("a->b", 100.0, 0.0, burst_s=2.0)
    passage = shaper.send(10.0, 500.0, 100.0)
    assert passage == (10.0, 12.0)


def test_links_are_shaped_where_the_machine_has_a_burst() -> None:
    plain, timeless, shaped = (
        network(**machine)[1] for machine in ({}, {"cores": 2}, {"link_burst_s": BURST_S})
    )
    assert [type(each) for each in (plain, timeless, shaped)] == [Network, EmulatedNetwork, EmulatedNetwork]
    kinds = [{type(link) for link in each.links.values()} for each in (plain, timeless, shaped)]
    assert kinds == [{Link}, {Link}, {Shaper}]


def arrivals(count: int, **machine: object) -> list[float]:
    """When so many blocks and their acknowledgements, all sent at once over several switches, are there."""
    system, one = network(**machine)
    block = system.library.chain(system.demand.requests[0])[0]
    source = max(system.fabric.nodes, key=lambda name: len(one._way(name, block.home)))
    came: list[float] = []
    one.keepers[block.home] = lambda put: came.append(system.loop.now)
    assert len(one._way(source, block.home)) > 2
    pass_time(system)  # buckets fill up
    began_s = system.loop.now
    for _ in range(count):
        one.put(source, Put(block, block.fragments, source))
    pass_time(system)
    answered_s = one.acknowledge(block.home, source, block.fragments) - system.loop.now
    return [*(time_s - began_s for time_s in came), answered_s]


def pass_time(system: System) -> None:
    end = system.loop.event()
    system.loop.after(10.0, end.succeed)
    system.loop.run(until=end)


def test_without_a_burst_everything_arrives_as_in_the_plain_network() -> None:
    assert arrivals(8, cores=2) == arrivals(8)


def test_a_burst_arrives_at_once_and_what_follows_at_the_links_rate() -> None:
    plain, shaped = arrivals(8), arrivals(8, link_burst_s=BURST_S)
    block_s = plain[1] - plain[0]
    ends_s = [max(0.0, block_s * number - BURST_S) for number in range(1, 9)]
    assert ends_s[1] == 0.0 < ends_s[-1]
    assert shaped[:-1] == pytest.approx(ends_s, abs=block_s / 8)  # a fragment less, and some hops more
    assert shaped[-1] < plain[-1]  # the way back is idle
