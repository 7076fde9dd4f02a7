"""The cost of simulating grows no faster than requests times nodes."""

from experiments.simulate.kinds import generated
from simulator.simulation import simulate


def test_cost_is_at_most_linear_in_requests_and_nodes() -> None:
    def cpu_s(nodes: int, requests: int) -> float:
        return simulate(generated(requests, nodes)).cpu_s

    few_s = cpu_s(4, 150)
    # Twice of linear: CPU time on a busy machine is not exact; quadratic cost would be 16 and 4,096 times.
    assert cpu_s(4, 600) < 2 * 4 * few_s + 1.0
    assert cpu_s(256, 150) < 2 * 64 * few_s + 1.0
