"""Published figures: the arithmetic exactly, the end-to-end scenarios with one set of parameters."""

from dataclasses import asdict
from pathlib import Path

import pytest

from experiments.validate.kvswitch import kvswitch, other_settings, percentile
from experiments.validate.kvswitch_workload import (
    ANSWERS,
    PROMPTS,
    RETRY_S,
    Setting,
    Way,
    quantile,
    write_trace,
)
from experiments.validate.literature import (
    BELUGA,
    SCENARIOS,
    netkv,
    shadowserve,
)
from experiments.validate.mooncake import (
    arithmetic,
    global_cache,
    long_prompt,
    mooncake_rule,
    one_request,
    scheduling,
    splits,
)
from scenario import Scenario, load_scenario
from simulator.simulation import simulate
from workload.generate import generate, to_line
from workload.trace_files import load_trace


def scenario(name: str) -> Scenario:
    return load_scenario(SCENARIOS / f"{name}.toml")[0]


def test_mooncakes_arithmetic_is_exact() -> None:
    rows = list(arithmetic())
    assert all(row.agrees for row in rows)
    assert mooncake_rule(8 * 312e12) == pytest.approx(5.86e9, rel=1e-3)


def test_rows_differ_only_in_what_they_vary() -> None:
    """One set of parameters: a row's file may name hits, blocks or the way of the data, no more."""
    base, mooncake = scenario("beluga"), scenario("mooncake")
    for name in BELUGA:
        mine = asdict(scenario(name))
        reference = asdict(mooncake if name.startswith("mooncake") else base)
        for table, values in mine.items():
            if table in ("name", "source"):
                continue
            for field, value in values.items():
                if value != reference[table][field]:
                    assert (table, field) in {
                        ("workload", "hit_share"),
                        ("model", "block_tokens"),
                        ("nodes", "gate"),
                        ("direct", "interleaved"),
                        ("direct", "read_gbyte_s"),
                    }, (name, table, field)


def test_the_common_parameters_are_those_of_one_testbed() -> None:
    base, mooncake = asdict(scenario("beluga")), asdict(scenario("mooncake"))
    for table in ("workload", "nodes", "prices"):
        assert base[table] == mooncake[table]


def test_all_scenario_files_can_be_read() -> None:
    for path in SCENARIOS.glob("*.toml"):
        load_scenario(path)


@pytest.mark.timeout(120)
def test_computing_everything_is_as_fast_as_published() -> None:
    """vLLM alone: no pool is involved, so this is the cost model's own test."""
    result = simulate(scenario("vllm").changed(workload={"requests": 120}, model={"block_tokens": 256}))
    assert result.ttft_s.mean == pytest.approx(18.76, rel=0.25)
    assert result.requests_per_s == pytest.approx(0.96, rel=0.25)


@pytest.mark.slow
def test_decoders_chosen_by_the_network_save_time(tmp_path: Path) -> None:
    trace = tmp_path / "chat.jsonl"
    requests = generate("chat", 1, 700, 3.3).requests
    trace.write_text("".join(to_line(request) + "\n" for request in requests))
    rows = list(netkv(trace))
    assert [row.reference for row in rows] == [0.212, 0.176]
    assert all(row.simulated > 0 for row in rows)


@pytest.mark.slow
def test_decoding_on_the_adapter_slows_no_token_down_and_serves_more() -> None:
    rows = list(shadowserve())
    assert [row.reference for row in rows] == pytest.approx([1.25, 2.2, 1 / 0.84, 1.38, 1.18, 1.35])
    tokens, first_token, seconds = rows[0::2]
    assert 1.05 < tokens.simulated <= 1.3
    assert 1.05 < seconds.simulated <= 1.3
    assert first_token.simulated == pytest.approx(1.0, abs=0.1)  # nothing is there that it could hold up
    assert not any(row.fitted for row in rows)


def test_a_long_prefix_saves_what_is_published() -> None:
    prefill, ttft = long_prompt()
    assert prefill.deviation == pytest.approx(0.0, abs=0.01)
    assert ttft.agrees


@pytest.mark.slow
def test_a_shared_cache_finds_more_than_local_ones_and_traces_beside_are_played_too(tmp_path: Path) -> None:
    trace = tmp_path / "conversation_trace.jsonl"
    requests = generate("chat", 1, 700, 3.3).requests
    trace.write_text("".join(to_line(request) + "\n" for request in requests))
    (tmp_path / "synthetic_trace.jsonl").write_text(trace.read_text())
    rows = list(global_cache(trace))
    assert [row.what.rsplit(", ", 1)[1] for row in rows] == 6 * ["conversation"] + 6 * ["synthetic"]
    ratio, saved, held, prefill_s, alone_s, of_most = rows[:6]
    assert [row.reference for row in rows[::6]] == [2.22, 2.36]
    assert ratio.simulated == rows[6].simulated > 1.0
    assert saved.simulated > 0.0
    assert 0.0 < held.simulated < 1.0
    assert alone_s.simulated > prefill_s.simulated  # what is found need not be computed
    assert 0.0 < of_most.simulated <= 1.0
    assert [row.fitted for row in rows] == [True, True, *10 * [False]]
    ttfts_s = [row.simulated for row in scheduling(trace)]
    assert ttfts_s[0] > ttfts_s[1]
    by_split_s = [row.simulated for row in splits(trace)]
    assert len(by_split_s) == 7
    assert by_split_s[0] > by_split_s[-1]


def test_without_the_synthetic_trace_splits_are_left_out(tmp_path: Path) -> None:
    assert not list(splits(tmp_path / "conversation_trace.jsonl"))


def test_parts_of_one_request_grow_with_it_and_shrink_with_its_prefix() -> None:
    rows = {(row.what, row.figure): row for row in one_request()}
    assert len(rows) == 14
    for thousands in (8, 16, 32, 64):
        what = f"Mooncake, {thousands} k tokens by themselves"
        computed, fetched = rows[what, "prefill, s"], rows[what, "prefill with 95 % cached, s"]
        assert fetched.simulated < 0.1 * computed.simulated
        longer = rows[f"Mooncake, {2 * thousands} k tokens by themselves", "prefill, s"]
        assert longer.simulated > 2 * computed.simulated  # attention grows with the square


@pytest.mark.slow
def test_routing_by_prefix_holds_most_and_has_a_longer_tail_than_blind_routing() -> None:
    rows = {(row.what.split(",")[0], row.figure): row for row in kvswitch(seeds=range(1, 7))}
    tail, held = "TTFT p95, s", "share of blocks held"
    for other in ("L4-ECMP", "L7-RR"):
        assert rows["L7-PA", tail].simulated > rows[other, tail].simulated
        assert rows["KVSwitch", held].simulated > rows[other, held].simulated
    for other in ("L4-ECMP", "L7-RR", "KVSwitch"):
        assert rows["L7-PA", held].simulated > 1.2 * rows[other, held].simulated
    for name in ("L4-ECMP", "L7-RR", "L7-PA", "KVSwitch"):
        assert abs(rows[name, held].deviation) < 0.2
    assert len(rows) == 9


@pytest.mark.slow
def test_everything_that_the_notebook_prints_is_a_row() -> None:
    rows = list(other_settings(seeds=(1,)))
    assert len(rows) == len({(row.what, row.figure) for row in rows}) == 188
    held = {row.what: row.simulated for row in rows if row.figure == "share of blocks held"}
    for name in ("L4-ECMP", "L7-RR", "KVSwitch"):
        assert held[f"{name}, everything held"] > 1.15 * held[f"{name}, 50 requests/s"]
        shares = [held[f"{name}, {share}% shared, 10 requests/s, cold"] for share in (20, 40, 60, 80)]
        assert shares == sorted(shares)


def test_arrivals_and_system_prompts_are_the_published_ones_whatever_the_lengths(tmp_path: Path) -> None:
    traces = []
    for seed in (1, 2):
        path = tmp_path / f"{seed}.jsonl"
        write_trace(path, Setting(warm_per_group=0), seed)
        traces.append(load_trace(path).requests)
    first, second = ([request.arrival_s for request in trace] for trace in traces)
    assert first == pytest.approx(second)
    assert first[-1] == pytest.approx(500 / 200, rel=0.1)
    assert [request.input_tokens for request in traces[0]] != [request.input_tokens for request in traces[1]]


def test_percentiles_lie_between_the_two_next_to_them() -> None:
    assert percentile([1.0, 2.0, 4.0], 0.5) == 2.0
    assert percentile([1.0, 2.0, 4.0], 0.75) == pytest.approx(3.0)
    assert percentile([1.0], 0.95) == 1.0


def test_lengths_have_the_published_quantiles_and_packets_are_not_too_long(tmp_path: Path) -> None:
    assert quantile(PROMPTS, 0.5, logarithmic=True) == pytest.approx(24)
    assert quantile(ANSWERS, 0.75) == pytest.approx(419)
    assert quantile(PROMPTS, 1.0) == pytest.approx(161_272)
    path = tmp_path / "trace.jsonl"
    warm, prompts = write_trace(path, Setting(), 1)
    requests = load_trace(path).requests
    assert len(requests) == 500 + warm
    assert [request.input_tokens for request in requests[warm:]] == prompts
    assert warm <= 16 * 20
    assert {request.output_tokens for request in requests[:warm]} == {1}
    assert max(request.input_tokens for request in requests) <= (8900 - 90) / 5.9
    assert {request.blocks for request in requests[:warm]} <= {request.blocks for request in requests[warm:]}


def test_first_requests_that_found_no_room_come_again_later_or_never(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    everything, _ = write_trace(path, Setting(), 1)
    warm, _ = write_trace(path, Setting(), 1, Way(through=((28, 23, 62),), in_order=True))
    assert warm == pytest.approx(everything * (28 + 23 + 62) / 317, abs=2)
    arrivals = [request.arrival_s for request in load_trace(path).requests[: warm + 1]]
    tries = [sum(at_s == arrival for arrival in arrivals) for at_s in (0.0, RETRY_S, 2 * RETRY_S)]
    assert tries == pytest.approx([28, 23, 62], abs=2)
    assert arrivals[-1] > 2 * RETRY_S  # the measured ones come when these are through
