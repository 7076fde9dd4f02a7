"""Nodes that read blocks from one another's memory, and the conductor over them."""

import json
from pathlib import Path

import pytest

from experiments.simulator.money import bill
from experiments.simulator.result import SimResult
from experiments.simulator.scenario import Scenario
from experiments.simulator.simulation import simulate
from workload.cost import make_cost_model

COST = make_cost_model(gpu="h800")
BLOCK_S = COST.fetch_s(COST.block_bytes, 200e9)


def play(
    folder: Path, chains: list[list[int]], late_s: float = 10.0, **tables: dict[str, object]
) -> SimResult:
    """Requests for these chains, in turn at four nodes that have nothing but one another.

    The second comes `late_s` after the first, the others 10 s apart or, if that is less, 10 ms.
    """
    gap_s = 10.0 if late_s >= 10.0 else 0.01
    trace = folder / f"{len(list(folder.iterdir()))}.jsonl"
    trace.write_text(
        "".join(
            json.dumps(
                {
                    "timestamp": round(1000 * (late_s + gap_s * (number - 1))) if number else 0,
                    "input_length": 512 * len(chain),
                    "output_length": 1,
                    "hash_ids": chain,
                }
            )
            + "\n"
            for number, chain in enumerate(chains)
        )
    )
    base = Scenario().changed(
        workload={
            "trace": str(trace),
            "requests": len(chains),
            "start_s": 0.0,
            "scheduler": "round_robin",
            "seed": 0,
        },
        model={"gpu": "h800"},
        nodes={"count": 4},
        storage={"kind": "peers"},
    )
    return simulate(base.changed(**tables))


def found(result: SimResult) -> dict[str, int]:
    return {source: count for source, count in result.blocks.items() if count}


def test_what_one_node_computed_another_reads_and_then_holds(tmp_path: Path) -> None:
    result = play(tmp_path, [[1, 2, 3]] * 5)
    assert found(result) == {"recomputed": 3, "remote": 9, "gpu": 3}
    assert result.storage_egress_bytes == pytest.approx(9 * COST.block_bytes)
    assert result.get_s.mean == pytest.approx(BLOCK_S, rel=0.02)


def test_copies_share_the_work_of_sending(tmp_path: Path) -> None:
    chain = list(range(1, 21))
    apart = play(tmp_path, [chain] * 4)
    sent = [
        round(bytes_ / COST.block_bytes) for name, bytes_ in apart.link_bytes.items() if name.endswith("out")
    ]
    assert sum(sent) == 60
    assert max(sent) < 60  # the third and the fourth to ask read from copies, too
    crowd = play(tmp_path, [chain] * 4, late_s=5.0)
    assert crowd.get_s.p99 > apart.get_s.p99  # all three at once from the only holder


def test_a_node_that_dropped_a_block_is_not_asked_for_it(tmp_path: Path) -> None:
    small = {"count": 4, "gpu_gb": 3.5 * COST.block_bytes / 1e9, "dram_gb": 0.0}
    chains = [[1, 2, 3], [7], [8], [9], [11, 12, 13], [1, 2, 3]]  # the first node forgets what it computed
    result = play(tmp_path, chains, nodes=small)
    assert found(result) == {"recomputed": 12}


def test_the_conductor_sends_a_request_to_who_holds_its_prefix(tmp_path: Path) -> None:
    chain = list(range(1, 21))
    result = play(tmp_path, [chain, [*chain, 30], [*chain, 31]], workload={"scheduler": "conductor"})
    assert found(result) == {"recomputed": 22, "gpu": 40}
    assert result.conductor is not None
    assert result.conductor["held_blocks"] == 40


def test_the_conductor_copies_a_hot_prefix_where_its_holder_is_busy(tmp_path: Path) -> None:
    chain = list(range(1, 21))
    burst = [[*chain, *range(1000 * number, 1000 * number + 40)] for number in range(1, 9)]
    result = play(tmp_path, [chain, *burst], late_s=5.0, workload={"scheduler": "conductor"})
    assert result.conductor is not None
    assert result.conductor["replicated_blocks"] >= 20
    assert result.blocks["remote"] >= 20


def test_the_nodes_dram_is_what_the_cache_costs() -> None:
    peers = Scenario().changed(storage={"kind": "peers"}, nodes={"count": 8, "dram_gb": 1000.0})
    apart = Scenario().changed(nodes={"count": 8, "dram_gb": 1000.0, "gate": "never"})
    assert bill(peers, 1).cache == pytest.approx(bill(apart, 1).dram)
    assert bill(peers, 1).total == pytest.approx(bill(apart, 1).total)


def test_without_fetching_nothing_moves(tmp_path: Path) -> None:
    result = play(tmp_path, [[1, 2, 3]] * 4, nodes={"count": 4, "gate": "never"})
    assert found(result) == {"recomputed": 12}
    assert result.storage_egress_bytes == 0
