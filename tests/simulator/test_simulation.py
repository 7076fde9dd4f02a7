"""Whole simulations: what must hold whatever the scenario, and what each mechanism does."""

import json
from functools import cache
from pathlib import Path

import pytest

from commands.toml_file import ScenarioError
from scenario import Scenario
from simulator.result import SimResult
from simulator.simulation import simulate
from workload.generate import to_line
from workload.trace import InSession, Request

DOCUMENT = 24
"""Blocks that the crowd has in common."""


def crowd_trace(folder: Path, nodes: int, rounds: int = 6) -> str:
    """In each round, all nodes ask at once for one stored document, each with a question of its own."""
    lines, own = [], 1_000_000
    for number in range(rounds):
        document = list(range(number * 100, number * 100 + DOCUMENT))
        lines.append((0, [*document]))
        at_ms, first = 20_000 + 10_000 * number, own + number * 1000
        lines += [(at_ms, [*document, first + node]) for node in range(nodes)]
    lines.sort()
    path = folder / "crowd.jsonl"
    path.write_text(
        "".join(
            json.dumps(
                {"timestamp": ms, "input_length": 512 * len(ids), "output_length": 10, "hash_ids": ids}
            )
            + "\n"
            for ms, ids in lines
        )
    )
    return str(path)


def crowd(folder: Path, nodes: int = 8, gate: str = "always", **tables: dict[str, object]) -> SimResult:
    base = (
        Scenario()
        .changed(
            workload={"trace": crowd_trace(folder, nodes), "requests": 6 * nodes, "start_s": 15.0},
            nodes={"count": nodes, "gate": gate},
            storage={"count": 1},
            network={"segments": 4},
        )
        .changed(workload={"scheduler": "round_robin"})
    )
    return simulate(base.changed(**tables))


NO_POOL: dict[str, object] = {"memory": "none"}


def test_merging_leaves_one_copy_at_the_storage_node(tmp_path: Path) -> None:
    without, merged = crowd(tmp_path, pool=NO_POOL), crowd(tmp_path, pool={"policy": "lru"})
    one_copy = 6 * DOCUMENT * without.block_bytes * 1.02
    assert without.storage_egress_bytes == pytest.approx(8 * one_copy, rel=0.05)
    assert merged.storage_egress_bytes == pytest.approx(one_copy, rel=0.05)
    assert merged.ttft_s.p50 < 0.6 * without.ttft_s.p50
    assert merged.blocks["recomputed"] == without.blocks["recomputed"] == 48


def test_a_session_waits_for_answers_in_a_closed_loop(tmp_path: Path) -> None:
    requests = [
        Request(0.0, 8000, 200, tuple(range(16)), place=InSession(0, 0)),
        Request(0.5, 8000, 200, tuple(range(16, 32)), place=InSession(0, 1, (0,), 3.0)),
    ]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(to_line(request) + "\n" for request in requests))
    played = {}
    for loop in ("closed", "open"):
        scenario = Scenario().changed(
            workload={"trace": str(path), "requests": 2, "start_s": 0.0, "loop": loop}
        )
        played[loop] = simulate(scenario)
    answer_s = played["closed"].end_to_end_s.p50
    assert played["closed"].duration_s == pytest.approx(3.0 + 2 * answer_s, rel=0.02)
    assert played["open"].duration_s < 2 * answer_s


def test_every_block_of_every_request_has_a_source(tmp_path: Path) -> None:
    result = crowd(tmp_path)
    assert sum(result.blocks.values()) == 48 * (DOCUMENT + 1)
    assert result.completed == 48


def test_leaf_and_spine_merge_too(tmp_path: Path) -> None:
    fabric: dict[str, object] = {"topology": "leafspine", "leaves": 4, "spines": 2}
    result = crowd(tmp_path, nodes=16, network=fabric)
    assert result.storage_egress_bytes < 2 * 6 * DOCUMENT * result.block_bytes
    assert result.blocks["recomputed"] == 96


def test_without_merging_nothing_is_merged(tmp_path: Path) -> None:
    result = crowd(tmp_path, pool={"merging": False})
    assert result.merged == result.copies == 0


def test_copies_without_multicast_come_one_after_the_other(tmp_path: Path) -> None:
    together, apart = crowd(tmp_path), crowd(tmp_path, pool={"multicast": False})
    assert apart.copies > 0
    assert apart.get_s.mean > together.get_s.mean


MACHINE: dict[str, object] = {
    "link_burst_s": 0.001,
    "cores": 2,
    "slowdown": 0.3,
    "switch_wake_s": 1e-5,
    "host_wake_s": 1e-4,
    "node_block_s": 1e-4,
    "node_fragment_s": 1e-5,
    "store_block_s": 1e-5,
    "store_fragment_s": 1e-5,
}


def test_a_machine_that_carries_a_scenario_out_adds_time_and_moves_the_same_blocks(tmp_path: Path) -> None:
    alone, carried = crowd(tmp_path, pool=NO_POOL), crowd(tmp_path, pool=NO_POOL, machine=MACHINE)
    assert carried.blocks == alone.blocks
    assert carried.storage_egress_bytes == pytest.approx(alone.storage_egress_bytes)
    assert alone.ttft_s.p50 < carried.ttft_s.p50 < 1.2 * alone.ttft_s.p50


def test_a_slow_machine_makes_nodes_miss_answers_that_they_could_have_shared(tmp_path: Path) -> None:
    slow = MACHINE | {"cores": 4, "node_block_s": 1e-3}
    together, apart = crowd(tmp_path), crowd(tmp_path, machine=slow)
    assert together.blocks["pool"] == 0 < apart.blocks["pool"]


def test_buffers_that_count_as_backlog_make_nodes_ask_for_less_at_once(tmp_path: Path) -> None:
    plain = crowd(tmp_path, pool=NO_POOL)
    counted = crowd(tmp_path, pool=NO_POOL, machine={"buffer_share": 4.0, "batch_fragments": 1})
    assert counted.longest_queue_s < plain.longest_queue_s


once = cache(simulate)
"""Simulates a scenario that several tests look at only once."""


def agents(**tables: dict[str, object]) -> SimResult:
    base = Scenario().changed(workload={"requests": 400, "load": 2.0}, control={"report_count": 1})
    return once(base.changed(**tables))


def test_the_same_scenario_gives_the_same_result() -> None:
    one, other = (simulate(Scenario().changed(workload={"requests": 100})).to_dict() for _ in range(2))
    del one["cpu_s"], other["cpu_s"]
    assert one == other


def test_the_pool_takes_load_off_the_storage_nodes() -> None:
    small: dict[str, object] = {"dram_gb": 0.0, "gpu_gb": 2.0}
    without, pooled = agents(nodes=small, pool=NO_POOL), agents(nodes=small)
    assert pooled.storage_egress_bytes < 0.8 * without.storage_egress_bytes
    assert pooled.blocks["pool"] > 0
    assert pooled.switch_served_bytes > 0
    assert pooled.digests > 0
    assert without.digests == without.table_updates == 0


def test_a_full_pool_evicts_and_can_reclaim() -> None:
    tables: dict[str, dict[str, object]] = {
        "nodes": {"dram_gb": 0.0, "gpu_gb": 2.0},
        "pool": {"size_gb": 2.0, "policy": "lru"},
    }
    dropped = agents(**tables)
    assert dropped.evicted > 0
    assert dropped.reclaimed == 0
    control: dict[str, object] = {"report_count": 1, "eviction": "reclaim"}
    assert agents(**tables, control=control).reclaimed == 0  # the stores hold it all
    forgetful: dict[str, object] = {"dram_gb": 2.0, "ssd_gb": 0.0}
    assert agents(**tables, control=control, storage=forgetful).reclaimed > 0
    filled = agents(**tables, control={"report_count": 1, "fill": "now"})
    assert filled.fills > 0


def test_recomputing_always_shares_nothing() -> None:
    result = agents(nodes={"gate": "never"})
    assert result.blocks["pool"] == result.blocks["remote"] == 0
    assert result.storage_egress_bytes == 0


def test_the_gate_closes_on_a_slow_link() -> None:
    open_ = agents(network={"link_gbit_s": 1.0})
    gated = agents(network={"link_gbit_s": 1.0}, nodes={"gate": "compare"})
    assert gated.blocks["recomputed"] > open_.blocks["recomputed"]
    assert gated.ttft_s.mean < open_.ttft_s.mean


def test_what_a_home_holds_is_not_sent_there_again(tmp_path: Path) -> None:
    """A PUT ends when its home says HELD, so nodes that compute what is stored already send little of it."""
    slow = crowd(tmp_path, gate="compare", network={"link_gbit_s": 10.0}, pool=NO_POOL)
    assert slow.blocks["recomputed"] > 4 * 6 * DOCUMENT  # most nodes compute each document for themselves
    new = 6 * (DOCUMENT + 8)
    assert slow.link_bytes["s1->store1"] < 1.2 * new * slow.block_bytes


def test_bytes_on_links_are_those_that_were_sent() -> None:
    result = agents(pool=NO_POOL, storage={"count": 1})
    into_store = result.link_bytes["s1->store1"]
    from_nodes = sum(size for name, size in result.link_bytes.items() if name.startswith("node"))
    assert into_store == pytest.approx(from_nodes)


def test_a_direct_pool_is_read_at_its_rates() -> None:
    scenario = Scenario().changed(
        workload={
            "hit_share": 1.0,
            "requests": 40,
            "clients": 8,
            "prompt_tokens": 15_360,
            "output_tokens": 4,
        },
        model={"name": "qwen3-32b", "gpu": "h20", "gpus": 1, "block_tokens": 16},
        nodes={"count": 4, "gpu_gb": 1.0, "dram_gb": 0.0, "decode": "batched", "running_gb": 28.0},
        storage={"kind": "direct"},
        direct={"nodes_per_adapter": 4},
    )
    fast = simulate(scenario)
    slow = simulate(scenario.changed(direct={"read_gbyte_s": 4.6}))
    assert fast.blocks["recomputed"] == 0
    assert slow.ttft_s.mean > 3 * fast.ttft_s.mean
    assert slow.storage_egress_bytes == fast.storage_egress_bytes == 40 * 960 * fast.block_bytes


def test_blocks_that_the_trace_cannot_be_cut_into_are_refused() -> None:
    with pytest.raises(ScenarioError, match="can't be made of the trace's 512"):
        agents(model={"block_tokens": 100})


def test_a_pool_of_smaller_blocks_finds_as_much() -> None:
    """The same prompts in blocks of 128 tokens: at least what blocks of 512 find is found."""
    coarse, fine = agents(pool=NO_POOL), agents(pool=NO_POOL, model={"block_tokens": 128})
    assert fine.saved_prefill_s >= 0.98 * coarse.saved_prefill_s


def test_dollars_add_up() -> None:
    pooled = agents(pool={"memory": "dram", "size_gb": 1000.0})
    bare = agents(pool=NO_POOL)
    per_hour = (16_000.0 + 1000.0 * 4.0) / (4 * 8760)
    assert pooled.dollars_per_hour - bare.dollars_per_hour == pytest.approx(per_hour)
    assert pooled.dollars_per_saved_s is not None
    assert pooled.dollars_per_saved_s > 0


def test_start_and_steady_state_are_the_halves_of_the_arrivals() -> None:
    result = simulate(Scenario().changed(workload={"requests": 41}, nodes={"count": 4}))
    record = result.to_dict()
    assert len(result.ttfts_s) == 41
    assert record["start_ttft_s"]["mean"] == pytest.approx(sum(result.ttfts_s[:20]) / 20)
    assert record["steady_ttft_s"]["mean"] == pytest.approx(sum(result.ttfts_s[20:]) / 21)


def busy(scheduler: str, **tables: dict[str, object]) -> SimResult:
    workload = {"requests": 300, "load": 3.0, "scheduler": scheduler}
    return simulate(Scenario().changed(workload=workload).changed(**tables))


def test_the_conductor_shortens_the_tail_and_replicates_hot_blocks() -> None:
    conductor, turns = busy("conductor"), busy("round_robin")
    assert conductor.ttft_s.p99 < 0.7 * turns.ttft_s.p99
    assert conductor.ttft_s.mean < turns.ttft_s.mean
    assert conductor.conductor is not None
    assert conductor.conductor["assigned"] == conductor.completed == 300
    assert conductor.conductor["replicated_blocks"] > 0
    assert turns.conductor is None


def test_the_conductor_refuses_what_would_come_too_late() -> None:
    result = busy("conductor", workload={"load": 8.0, "ttft_slo_s": 5.0})
    assert result.conductor is not None
    assert result.conductor["rejected"] > 0
    assert result.completed == 300 - result.conductor["rejected"]
    assert result.ttft_s.p99 < 1.5 * 5.0  # an estimate
    assert result.ttft_s.p99 < 0.8 * busy("conductor", workload={"load": 8.0}).ttft_s.p99


def test_the_conductor_works_without_storage_and_with_memory_that_nodes_read() -> None:
    apart = busy("conductor", nodes={"gate": "never"})
    assert apart.conductor is not None
    assert apart.conductor["fetching"] == apart.blocks["remote"] == 0
    direct = busy("conductor", storage={"kind": "direct", "count": 0}, pool={"memory": "none"})
    assert direct.conductor is not None
    assert direct.conductor["fetching"] > 0


def test_a_reply_reaches_its_asker_though_another_has_claimed_the_cell_since() -> None:
    """With one cell most requests are forwarded without a claim; the claim's owner got the replies alone."""
    crowded = Scenario().changed(
        workload={"requests": 100, "load": 8.0, "scheduler": "round_robin"},
        nodes={"count": 8},
        storage={"count": 1},
        pool={"size_gb": 1.0, "pending_cells": 1},
        network={"link_gbit_s": 50.0},
        control={"report_count": 0x8000},
    )
    result = simulate(crowded)
    assert result.completed == 100
    assert result.merged > 0
