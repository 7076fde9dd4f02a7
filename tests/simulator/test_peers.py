"""Nodes that read blocks from one another's memory, and the conductor over them."""

from pathlib import Path

import pytest

from scenario import Scenario
from simulator.money import bill
from tests.simulator.chains import BLOCK_S, COST, CROWD, found, play, sent_blocks


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


def test_a_switch_in_front_merges_reads_of_what_is_on_its_way(tmp_path: Path) -> None:
    alone = play(tmp_path, CROWD, late_s=5.0)
    merged = play(tmp_path, CROWD, late_s=5.0, direct={"front": "merge"})
    assert sent_blocks(alone) == 60
    assert sent_blocks(merged) < 40
    assert found(merged)["pool"] > 20
    assert merged.get_s.p99 < alone.get_s.p99


def test_a_pool_in_front_still_has_what_all_nodes_dropped(tmp_path: Path) -> None:
    small = {"count": 4, "gpu_gb": 3.5 * COST.block_bytes / 1e9, "dram_gb": 0.0}
    chains = [[1, 2, 3], [1, 2, 3], [7, 8, 9], [10, 11, 12], [13, 14, 15], [16, 17, 18], [1, 2, 3]]
    pool = {"memory": "none", "size_gb": 10.0}
    alone = play(tmp_path, chains, nodes=small, pool=pool)
    fronted = play(tmp_path, chains, nodes=small, pool=pool, direct={"front": "pool"})
    assert found(alone) == {"recomputed": 18, "remote": 3}
    assert found(fronted) == {"recomputed": 15, "remote": 3, "pool": 3}


def test_the_bound_waits_for_no_adapter_but_the_readers_own(tmp_path: Path) -> None:
    alone = play(tmp_path, CROWD, late_s=5.0)
    bound = play(tmp_path, CROWD, late_s=5.0, direct={"front": "whole"})
    assert bound.get_s.p99 == pytest.approx(BLOCK_S, rel=0.02)
    assert bound.get_s.p99 < alone.get_s.p99


def test_blocks_wait_at_links_between_switches(tmp_path: Path) -> None:
    """Of two leaves the second has the third node, which reads what both in the first hold."""
    star = play(tmp_path, CROWD[:3])
    leaves = play(tmp_path, CROWD[:3], network={"topology": "leafspine", "leaves": 2, "spines": 1})
    between = {name: size for name, size in leaves.link_bytes.items() if name.startswith("leaf1->spine1")}
    assert sum(between.values()) == pytest.approx(20 * COST.block_bytes)  # the third node's
    assert leaves.get_s.mean > star.get_s.mean


def test_what_transfers_reach_of_a_link_is_a_parameter(tmp_path: Path) -> None:
    half = play(tmp_path, [[1, 2, 3]] * 2, direct={"peer_share": 0.5})
    assert half.get_s.mean == pytest.approx(2 * BLOCK_S, rel=0.02)


def test_two_requests_of_a_node_share_a_read(tmp_path: Path) -> None:
    chain = list(range(1, 21))
    chains = [chain, [30], [31], [32], [33], chain, [34], [35], [36], chain]  # of 4 nodes the second, twice
    result = play(tmp_path, chains, late_s=5.0)
    assert found(result) == {"recomputed": 27, "remote": 40}
    assert 20 <= sent_blocks(result) < 40  # what the first had got when the second asked is not known yet


def test_nodes_that_ask_first_leave_a_busy_holder_alone(tmp_path: Path) -> None:
    gate = {"count": 4, "gate": "compare"}
    blind = play(tmp_path, CROWD, late_s=5.0, nodes=gate, network={"link_gbit_s": 60.0})
    told = play(tmp_path, CROWD, late_s=5.0, nodes={**gate, "hints": "homes"}, network={"link_gbit_s": 60.0})
    assert told.blocks["remote"] < blind.blocks["remote"]
    assert told.ttft_s.mean <= blind.ttft_s.mean


def test_only_what_a_node_has_beyond_its_own_is_the_caches() -> None:
    peers = Scenario().changed(
        storage={"kind": "peers", "own_gb": 64.0}, nodes={"count": 8, "dram_gb": 564.0}
    )
    hours = peers.prices.years * 8760
    assert bill(peers, 1).cache == pytest.approx(8 * 500 * 4 / hours)
    assert bill(peers, 1).dram == pytest.approx(8 * 64 * 4 / hours)
    fronted = peers.changed(direct={"front": "merge"})
    assert bill(fronted, 1).pool == pytest.approx(16_000 / hours)
    assert bill(peers.changed(direct={"front": "whole"}), 1).pool == 0
