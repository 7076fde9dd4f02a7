"""Simulations with blending: chunks come from wherever they are, whatever stood before them."""

import json
from pathlib import Path
from typing import Any

import pytest

from commands.toml_file import ScenarioError
from scenario import Scenario
from simulator.result import SimResult
from simulator.simulation import simulate
from simulator.workload import recut_blocks
from workload.trace import Request

ORDERS = ([1, 2, 3, 4], [3, 1, 4, 2], [4, 3, 2, 1])


def trace_of(folder: Path, orders: tuple[list[int], ...] = ORDERS, chunks: bool = True) -> str:
    """A system prompt, the same passages in another order each time, and a question."""
    lines, ids = [], 1
    for number, order in enumerate(orders):
        blocks = [0, *range(ids, ids + len(order) + 1)]
        ids += len(order) + 1
        line = {"timestamp": 5000 * number, "input_length": 512 * (len(order) + 1) + 40, "output_length": 5}
        lines.append(line | {"hash_ids": blocks} | ({"chunk_ids": [None, *order, None]} if chunks else {}))
    path = folder / "passages.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def blended(folder: Path, trace: str | None = None, **tables: dict[str, Any]) -> SimResult:
    base = Scenario().changed(
        workload={"trace": trace or trace_of(folder), "start_s": 0.0, "scheduler": "round_robin"},
        model={"name": "llama3-70b", "gpu": "h800"},
        nodes={"count": 3, "blend": True},
    )
    return simulate(base.changed(**tables))


def test_other_nodes_fetch_chunks_in_any_order(tmp_path: Path) -> None:
    result = blended(tmp_path)
    assert result.blended is not None
    assert (result.blended.requests, result.blended.chunks, result.blended.alone) == (3, 12, 4)
    assert result.blended.tokens == 2 * round(0.15 * 4 * 512)
    assert result.blocks["pool"] + result.blocks["remote"] == 8 + 2  # with the system prompt, a prefix
    assert sum(result.blocks.values()) == 18
    exact = blended(tmp_path, nodes={"blend": False})
    assert exact.blended is None
    assert exact.blocks["recomputed"] == 16
    first, second, _ = result.ttfts_s
    assert first > exact.ttfts_s[0] > 2 * second


def test_a_prefix_that_is_there_is_not_blended(tmp_path: Path) -> None:
    lines = [
        {"timestamp": 9000 * n, "input_length": 3 * 512, "output_length": 5, "hash_ids": [0, 1, 2]}
        | ({} if n == 0 else {"chunk_ids": [None, 8, 9]})
        for n in range(2)
    ]
    path = tmp_path / "again.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = blended(tmp_path, str(path))
    assert result.blended is None
    assert result.blocks["remote"] + result.blocks["pool"] == 3


def test_the_gate_computes_exactly_where_links_are_slow(tmp_path: Path) -> None:
    slow = blended(tmp_path, nodes={"gate": "compare"}, network={"link_gbit_s": 1.0})
    assert slow.blended is None
    fast = blended(tmp_path, nodes={"gate": "compare"}, network={"link_gbit_s": 400.0})
    assert fast.blended is not None


def test_loading_overlaps_with_computing(tmp_path: Path) -> None:
    """Where loading takes longer, the first token waits for the last layer alone."""
    result = blended(tmp_path, network={"link_gbit_s": 25.0})
    second = result.ttfts_s[1]
    fetch_s = 5 * result.block_bytes * 8 / 25e9  # the system prompt first, as a prefix
    assert fetch_s < second < 1.09 * fetch_s  # one after the other it would be 1.15


def test_coded_chunks_are_decoded(tmp_path: Path) -> None:
    instant, cpu = (
        blended(tmp_path, model={"codec": "cachegen", "coder": coder}) for coder in ("instant", "cpu")
    )
    assert instant.blended == cpu.blended
    assert cpu.ttfts_s[1] > instant.ttfts_s[1] + 4 * 0.1  # 0.15 s a block


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"nodes": {"gate": "never"}}, "nodes.blend: blends what is fetched"),
        ({"nodes": {"decode": "batched"}}, "nodes.blend: needs nodes.decode"),
        ({"nodes": {"loading": "blocking"}}, "nodes.blend: needs nodes.decode"),
    ],
)
def test_what_cannot_blend_is_refused(tables: dict[str, dict[str, Any]], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=reason):
        blended(tmp_path, None, **tables)


def test_a_trace_without_chunks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="does not say which of its blocks are chunks"):
        blended(tmp_path, trace_of(tmp_path, chunks=False))


def test_chunks_in_blocks_of_another_size() -> None:
    request = Request(0.0, 4 * 512, 1, (0, 1, 2, 3), chunks=(None, 7, 8, 9))
    (halves,) = recut_blocks([request], 512, 256)
    assert halves.chunks == (None, None, 14, 15, 16, 17, 18, 19)
    again = Request(0.0, 4 * 512, 1, (0, 4, 5, 6), chunks=(None, 6, 8, 9))
    doubles = list(recut_blocks([request, again], 512, 1024))
    assert [one.chunks for one in doubles] == [(None, 0), (None, 0)]
