"""What a controller is told, and when: digests by themselves, or in lists as P4Runtime servers send them."""

import pytest

from scenario import Scenario
from simulator.messages import Ask
from simulator.result import SimResult
from simulator.simulation import prepare, simulate
from simulator.system import System


def run(**control: object) -> SimResult:
    """A burst of agents' requests for what is stored, on few nodes."""
    return simulate(
        Scenario().changed(
            workload={"requests": 120, "seed": 3},
            nodes={"count": 4, "gpu_gb": 4.0, "dram_gb": 1.0},
            control={"report_count": 1, "digest_cpu_s": 0.0} | control,
        )
    )


def test_digests_in_lists_are_the_same_and_come_later_and_in_fewer_writes() -> None:
    alone, listed = run(), run(list_s=0.1)
    assert listed.digests > 0.9 * alone.digests
    assert listed.table_writes < alone.table_writes / 2
    assert listed.table_updates > 0.9 * alone.table_updates


def test_a_list_waits_for_the_time_of_its_first_digest() -> None:
    """What is asked for again within that time is not in the pool yet."""
    soon, late = run(list_s=0.001), run(list_s=30.0)
    assert late.blocks["pool"] < soon.blocks["pool"]


def test_a_full_list_does_not_wait() -> None:
    never = run(list_s=1000.0)
    assert never.digests > 128
    assert never.admitted > 0


def lists(at_s: list[float]) -> list[float]:
    """When lists leave a switch whose digests come at these times."""
    scenario, demand = prepare(Scenario().changed(workload={"requests": 20}, control={"list_s": 0.1}))
    system = System(scenario, demand)
    (control,) = system.controls
    block = system.library.chain(demand.requests[0])[0]
    left: list[float] = []
    control._misses._send = lambda reports: left.append(system.loop.now)
    for time_s in at_s:
        system.loop.after(time_s, control._on_miss, Ask(block, 0, 1, "node1", 1), 1, 0.0, 1)
    end = system.loop.event()
    system.loop.after(10.0, end.succeed)
    system.loop.run(until=end)
    return left


def test_a_list_after_a_pause_leaves_soon() -> None:
    at_s = [1.0, 1.05, 1.2, 5.0]
    assert lists(at_s) == pytest.approx([1.0125, 1.15, 1.2125 + 0.0875, 5.0125])


def test_the_controllers_clock_is_the_emulations() -> None:
    """Ten times as fast as reality: counters are read every half second of the emulation."""
    slow = run(list_s=0.1)
    fast = simulate(
        Scenario().changed(
            workload={"requests": 120, "seed": 3},
            nodes={"count": 4, "gpu_gb": 4.0, "dram_gb": 1.0},
            control={"report_count": 1, "digest_cpu_s": 0.0, "list_s": 0.1},
            machine={"pace": 10.0},
        )
    )
    assert 0 < fast.entries_read < 0.3 * slow.entries_read


def test_a_list_is_heard_from_the_beginnings_of_chains_on() -> None:
    """Whatever order its digests left in: what is not known of yet is nobody's parent."""
    scenario, demand = prepare(Scenario().changed(workload={"requests": 20}, control={"list_s": 0.1}))
    system = System(scenario, demand)
    (control,) = system.controls
    chain = max((system.library.chain(request) for request in demand.requests), key=len)
    heard: list[int] = []
    control.pool.hot_miss = lambda miss, now_s: heard.append(miss.depth)  # type: ignore[method-assign]
    for block in reversed(chain[:3]):
        control._on_miss(Ask(block, 0, 1, "node1", len(chain)), 1, 0.0, 1)
    end = system.loop.event()
    system.loop.after(10.0, end.succeed)
    system.loop.run(until=end)
    assert heard == [0, 1, 2]


def test_a_request_for_a_block_is_one_hit_however_many_fragments_it_has() -> None:
    scenario, demand = prepare(Scenario().changed(workload={"requests": 20}, network={"fragments": 64}))
    system = System(scenario, demand)
    (control,), (switch,) = system.controls, system.switches
    block = system.library.chain(demand.requests[0])[0]
    control.pool._hits.started(block.key, 0, len(block.parts))
    switch.install(block.key, 0)
    switch.index[block.key].filled = set(range(len(block.parts)))
    for _ in range(3):
        asks = [Ask(block, part, block.parts[part], "node1", 1) for part in range(len(block.parts))]
        switch.asked(asks, "node1", 0.0)
    assert [times for _, times in control.pool._hits.read(control.read_hits([0]))] == [3]
