"""Nodes that join while others serve: with empty memory, requests from then on, and a push to them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from commands.toml_file import ScenarioError
from experiments.simulate.emulate import Emulator
from scenario import Scenario
from simulator.messages import Block
from simulator.result import SimResult
from simulator.simulation import _Run, prepare, simulate
from simulator.system import System
from workload.schedule import PLANNED

GROUP: dict[str, dict[str, Any]] = {
    "workload": {"requests": 400, "load": 16.0, "scheduler": "round_robin"},
    "model": {"gpu": "h800", "block_tokens": 512},
    "nodes": {"count": 16, "gpu_gb": 8.0, "dram_gb": 64.0, "joining": 8},
    "pool": {"memory": "dram", "size_gb": 256.0},
    "control": {"report_count": 1},
}


def scenario(**changed: dict[str, Any]) -> Scenario:
    """16 nodes before two storage nodes and a pool; eight of them join halfway."""
    merged = {table: {**GROUP.get(table, {}), **changed.get(table, {})} for table in {*GROUP, *changed}}
    return Scenario().changed(**merged)


def played(**changed: dict[str, Any]) -> System:
    """A run that has ended."""
    system = System(*prepare(scenario(**changed)))
    _Run(system).to_the_end()
    return system


@cache
def warmed(kind: str) -> SimResult:
    """With joining nodes that are warmed in this way."""
    return simulate(scenario(nodes={"warm": kind}))


@pytest.mark.parametrize("name", PLANNED)
def test_requests_go_to_those_who_join_from_then_on(name: str) -> None:
    system = played(workload={"scheduler": name, "requests": 200})
    first = system.demand.requests[100].arrival_s
    early, late = system.nodes[:8], system.nodes[8:]
    assert all(record.arrival_s >= first for node in late for record in node.records)
    assert all(node.records for node in late)
    assert sum(len(node.records) for node in early) > 100
    shares = [sum(record.arrival_s >= first for record in node.records) for node in late]
    assert sum(shares) < 90  # nobody is flooded because it was sent nothing so far


def test_who_joins_holds_nothing_before() -> None:
    for kind in ("stores", "peers"):
        scene = scenario(
            storage={"kind": kind}, pool={"memory": "none"}, workload={"requests": 50, "shape": "rag"}
        )
        system = System(*prepare(scene))
        held = [len(node._tiers.keys()) for node in system.nodes]
        assert not any(held[8:])
        assert any(held[:8]) == (kind == "peers")  # these hold the past


def test_a_push_gives_them_what_was_used_most_before_they_ask() -> None:
    cold, there = warmed("no"), warmed("there")
    assert there.blocks["dram"] > cold.blocks["dram"] + 100
    assert there.ttft_s.mean < cold.ttft_s.mean
    for kind in ("multicast", "unicast", "pool"):
        pushed = warmed(kind)
        assert cold.blocks["dram"] + 100 < pushed.blocks["dram"] <= there.blocks["dram"], kind


def test_the_pools_push_takes_no_storage_link_and_the_homes_does() -> None:
    cold, pool, homes = warmed("no"), warmed("pool"), warmed("multicast")
    assert pool.storage_egress_bytes < 1.02 * cold.storage_egress_bytes
    assert homes.storage_egress_bytes > 1.2 * cold.storage_egress_bytes
    assert homes.storage_egress_bytes < warmed("unicast").storage_egress_bytes


def test_a_push_lets_others_pass_between_its_blocks() -> None:
    """What is asked for meanwhile waits at a link for one pushed block of each source, not for all."""
    pushed = warmed("unicast")
    block_s = 1.02 * pushed.block_bytes / 25e9
    assert pushed.longest_queue_s < warmed("no").longest_queue_s + 3 * block_s


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"nodes": {"joining": 16}}, r"nodes\.joining: somebody has to be there first"),
        ({"workload": {"scheduler": "conductor"}}, r"workload\.scheduler: it knows of no node"),
        ({"nodes": {"joining": 0, "warm": "pool"}}, r"nodes\.warm: pushes what the switches' pools hold"),
        ({"pool": {"memory": "none"}, "nodes": {"warm": "pool"}}, r"nodes\.warm: pushes what the switches'"),
    ],
)
def test_what_cannot_join_is_refused(changed: dict[str, dict[str, Any]], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        simulate(scenario(**changed))


def test_who_joins_is_pushed_to_by_the_controller_as_live() -> None:
    """It subscribes to what others asked for most, and has it before its first request."""
    scene = scenario(nodes={"lead_s": 2.0}, control={"push": True}, workload={"load": 2.0})
    system = System(*prepare(scene))
    taken: list[float] = []
    for client in list(system.clients.values())[8:]:
        assert client.pushed is not None
        keep = client.pushed._keep

        def kept(block: Block, keep: Callable[[Block], None] = keep) -> None:
            taken.append(system.loop.now)
            keep(block)

        client.pushed._keep = kept
    _Run(system).to_the_end()
    requests = system.demand.requests
    joins_s = requests[len(requests) // 2].arrival_s
    early = [time_s for time_s in taken if time_s < joins_s]
    assert len(early) > 8 * 5
    assert min(early) > joins_s - 2.0 > 0


def test_the_emulators_nodes_join_as_it_has_them() -> None:
    nodes: dict[str, Any] = {"count": 4, "joining": 1, "gpu_gb": 8.0}
    base = Scenario().changed(workload={"requests": 40}, nodes=nodes)
    assert Emulator(base, 20_000.0).run.joining == ("node4",)
    with pytest.raises(ScenarioError, match="nodes join when half"):
        Emulator(base.changed(nodes={"joins_at": 0.3}), 20_000.0)
