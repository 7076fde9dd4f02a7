"""Nodes that answer one another's GETs, past the network's own switches."""

from pathlib import Path
from typing import Any

import pytest

from commands.toml_file import ScenarioError
from scenario import Scenario
from simulator.checks import check, pool_blocks
from simulator.lenders import LentBlock
from simulator.messages import Block
from simulator.money import bill
from simulator.result import SimResult
from tests.simulator.chains import COST, CROWD, found, play

NO_POOL: dict[str, object] = {"memory": "none"}
POOL: dict[str, object] = {"memory": "dram", "size_gb": 100 * COST.block_bytes / 1e9}


def lend(
    folder: Path,
    chains: list[list[int]],
    pool: dict[str, object] = NO_POOL,
    late_s: float = 10.0,
    **more: Any,
) -> SimResult:
    """The same chains, at nodes that answer GETs."""
    tables: dict[str, Any] = {
        "direct": {"front": "switches"},
        "pool": pool,
        "control": {"report_count": 1},
        **more,
    }
    return play(folder, chains, late_s, **tables)


def test_what_one_node_computed_another_gets_and_then_holds(tmp_path: Path) -> None:
    result = lend(tmp_path, [[1, 2, 3]] * 5)
    assert found(result) == {"recomputed": 3, "remote": 9, "gpu": 3}
    assert 9 * COST.block_bytes < result.storage_egress_bytes < 9.5 * COST.block_bytes  # with headers


def test_holders_share_the_work_of_sending(tmp_path: Path) -> None:
    """The third node reads a chain of two who both hold it: each sends half."""
    chain = list(range(1, 21))
    result = lend(tmp_path, [chain] * 3, nodes={"count": 4, "gate": "compare", "hints": "homes"})
    sent = [result.link_bytes[f"node{node}->s1"] / COST.block_bytes for node in (1, 2)]
    assert sum(sent) == pytest.approx(41, rel=0.02)  # with headers and requests
    assert sent[1] == pytest.approx(10.6, rel=0.02)


def test_a_node_that_dropped_a_block_is_not_asked_for_it(tmp_path: Path) -> None:
    small = {"count": 4, "gpu_gb": 3.5 * COST.block_bytes / 1e9, "dram_gb": 0.0}
    chains = [[1, 2, 3], [7], [8], [9], [11, 12, 13], [1, 2, 3]]  # the first node forgets what it computed
    assert found(lend(tmp_path, chains, nodes=small)) == {"recomputed": 12}


def test_the_switches_controller_learns_of_misses_and_its_pool_answers_later(tmp_path: Path) -> None:
    chains = [[1, 2, 3]] * 4
    result = lend(tmp_path, chains, POOL)
    assert result.digests == 3  # of the second node's fetch; entries came in time for the third's
    assert result.table_updates == 3
    assert result.fills == 3 * 32
    assert found(result) == {"recomputed": 3, "remote": 6, "pool": 3}
    assert result.switch_served_bytes > 3 * COST.block_bytes


def test_digests_and_table_updates_take_their_time(tmp_path: Path) -> None:
    """With entries 20 s late, three nodes ask 10 s apart and the pool has nothing for any."""
    late = lend(tmp_path, [[1, 2, 3]] * 4, POOL, control={"report_count": 1, "digest_latency_s": 25.0})
    assert found(late) == {"recomputed": 3, "remote": 9}


def test_a_switch_merges_reads_of_what_is_on_its_way_within_its_pending_table(tmp_path: Path) -> None:
    merging = {"memory": "sram", "size_gb": 2 * COST.block_bytes / 1e9}
    slow = {"link_gbit_s": 20.0}  # a block takes 67 ms, and the nodes ask 10 ms apart
    never: dict[str, Any] = {"control": {"report_count": 0x8000}, "network": slow}
    alone = lend(tmp_path, CROWD, late_s=5.0, network=slow)
    merged = lend(tmp_path, CROWD, merging, late_s=5.0, **never)
    assert merged.merged > 0
    assert merged.storage_egress_bytes < 0.8 * alone.storage_egress_bytes
    full = lend(tmp_path, CROWD, merging | {"pending_cells": 1}, late_s=5.0, **never)
    assert full.storage_egress_bytes > merged.storage_egress_bytes


def test_a_pool_still_has_what_all_nodes_dropped_if_the_switch_is_asked(tmp_path: Path) -> None:
    small = {"count": 4, "gpu_gb": 3.5 * COST.block_bytes / 1e9, "dram_gb": 0.0, "gate": "compare"}
    chains = [
        [1, 2, 3], [1, 2, 3], [1, 2, 3], [10, 11, 12], [13, 14, 15], [16, 17, 18], [19, 20, 21], [1, 2, 3],
    ]  # fmt: skip
    told = lend(tmp_path, chains, POOL, nodes={**small, "hints": "switch"})
    blind = lend(tmp_path, chains, POOL, nodes={**small, "hints": "homes"})
    assert found(told) == {"recomputed": 15, "remote": 6, "pool": 3}
    assert found(blind) == {"recomputed": 18, "remote": 6}


def test_blocks_wait_at_links_between_switches(tmp_path: Path) -> None:
    leaves = lend(tmp_path, CROWD[:3], network={"topology": "leafspine", "leaves": 2, "spines": 1})
    between = {name: size for name, size in leaves.link_bytes.items() if name.startswith("leaf1->spine1")}
    assert sum(between.values()) >= 20 * COST.block_bytes


def test_replies_pass_the_leaves_and_spines_where_their_requests_are_noted(tmp_path: Path) -> None:
    """Else claims stay behind that absorb later requests until they are too old; here nothing is merged."""
    given: dict[str, Any] = {
        "nodes": {"count": 8, "gate": "always"},
        "network": {"topology": "leafspine", "leaves": 2, "spines": 2},
    }
    chains = [[1, 2, 3]] * 8
    alone = lend(tmp_path, chains, late_s=5.0, **given)
    merging = lend(
        tmp_path, chains, {"memory": "sram", "size_gb": 2 * COST.block_bytes / 1e9}, late_s=5.0,
        **given, control={"report_count": 0x8000},
    )  # fmt: skip
    assert merging.merged == 0
    assert merging.get_s == alone.get_s
    assert merging.ttft_s == alone.ttft_s


def test_requests_for_one_block_at_two_nodes_are_not_merged() -> None:
    block = Block(b"k" * 16, 0, b"", "", (1, 31))
    assert LentBlock(block, "node1").claim != LentBlock(block, "node2").claim
    assert LentBlock(block, "node1").claim == LentBlock(block, "node1").claim


def test_the_pool_is_billed_and_lent_memory_is_not() -> None:
    lent = Scenario().changed(
        storage={"kind": "peers", "own_gb": 64.0},
        nodes={"count": 8, "dram_gb": 64.0},
        direct={"front": "switches"},
    )
    hours = lent.prices.years * 8760
    assert bill(lent.changed(pool={"memory": "none"}), 1).cache == 0
    dram = lent.changed(pool={"memory": "dram", "size_gb": 100.0})
    assert bill(dram, 1).cache == pytest.approx((16_000 + 400) / hours)
    assert pool_blocks(dram, COST) > 0


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"storage": {"kind": "stores"}}, "direct.front"),
        ({"workload": {"scheduler": "conductor"}}, "it does not look through"),
        ({"control": {"eviction": "reclaim"}}, "nothing can be reclaimed"),
        ({"pool": {"memory": "sram", "size_gb": 0.001}}, "the pool does not hold one"),
    ],
)
def test_what_does_not_go_with_it_is_refused(tables: dict[str, Any], said: str) -> None:
    lent = Scenario().changed(storage={"kind": "peers"}, direct={"front": "switches"})
    with pytest.raises(ScenarioError, match=said):
        check(lent.changed(**tables))
