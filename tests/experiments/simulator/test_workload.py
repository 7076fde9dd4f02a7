"""Who arrives when."""

from experiments.simulator.workload import delay
from workload.trace import Request


def test_late_requests_do_not_overtake_each_other_at_their_node() -> None:
    assigned = [(Request(float(n // 8), 512, 1, (n,)), n % 2) for n in range(200)]
    late = delay(assigned, 0.5, seed=1)
    arrivals = [request.arrival_s for request, _ in late]
    assert arrivals == sorted(arrivals)
    for node in (0, 1):
        assert [r.blocks for r, at in late if at == node] == [r.blocks for r, at in assigned if at == node]
    nominal = {request.blocks: request.arrival_s for request, _ in assigned}
    assert all(0.0 <= request.arrival_s - nominal[request.blocks] <= 0.5 for request, _ in late)
    assert len({request.arrival_s - nominal[request.blocks] for request, _ in late}) > 20
