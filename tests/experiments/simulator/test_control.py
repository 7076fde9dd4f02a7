"""What a controller is told, and when: digests by themselves, or in lists as P4Runtime servers send them."""

from experiments.simulator.result import SimResult
from experiments.simulator.scenario import Scenario
from experiments.simulator.simulation import simulate


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
