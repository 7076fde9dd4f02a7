"""The scenarios in simulator/examples: each runs, and does what it is there to show."""

from pathlib import Path
from typing import Any

import pytest

import simulator
from scenario import Scenario, load_scenario
from simulator.result import SimResult
from simulator.simulation import simulate

FOLDER = Path(simulator.__file__).parent / "examples"


def example(name: str, requests: int = 150) -> Scenario:
    scenario, _ = load_scenario(FOLDER / f"{name}.toml")
    return scenario.changed(workload={"requests": requests})


def run(name: str, **tables: dict[str, Any]) -> SimResult:
    return simulate(example(name).changed(**tables))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_runs(path: Path) -> None:
    result = simulate(example(path.stem, 60))
    assert result.completed == 60
    assert result.end_to_end_s.mean > result.ttft_s.mean > 0


def test_merging_alone_admits_nothing_and_caching_alone_merges_nothing() -> None:
    merging, caching = run("merging"), run("caching")
    assert merging.merged > 0 == merging.admitted == merging.blocks["pool"]
    assert caching.blocks["pool"] > 0 == caching.merged


def test_blocks_decoded_on_the_gpu_hold_tokens_up_and_on_the_adapter_they_do_not() -> None:
    adapter, gpu = (
        run("smartnic", model={"decoding": place, "decode_gbyte_s": 4.0}) for place in ("smartnic", "gpu")
    )
    assert adapter.blocks["remote"] > 50
    assert gpu.between_tokens_s.mean > 1.02 * adapter.between_tokens_s.mean
    assert gpu.ttft_s.mean > adapter.ttft_s.mean


def test_coded_blocks_take_their_share_of_the_links() -> None:
    coded, plain = run("smartnic"), run("smartnic", model={"coded_share": None, "decode_gbyte_s": 0.0})
    assert coded.storage_egress_bytes < 0.4 * plain.storage_egress_bytes
    assert coded.ttft_s.mean < plain.ttft_s.mean


def test_placing_by_the_network_avoids_the_uplinks() -> None:
    slow = {"uplink_gbit_s": 40.0}
    blind = run("netkv", decoders=slow | {"placing": "load"})
    aware = run("netkv", decoders=slow)
    assert aware.ttft_s.mean < 0.95 * blind.ttft_s.mean
    uplinks = [
        sum(sent for name, sent in result.link_bytes.items() if name.endswith(" up"))
        for result in (blind, aware)
    ]
    assert uplinks[1] < 0.7 * uplinks[0]


def test_a_first_token_waits_for_the_kv_at_its_decoder() -> None:
    near = run("netkv", decoders={"racks": 1}, network={"link_gbit_s": 100_000.0})
    far = run("netkv", decoders={"racks": 1}, network={"link_gbit_s": 100.0})
    alone = run("netkv", decoders={"count": 0}, network={"link_gbit_s": 100.0})
    assert near.ttft_s.mean < far.ttft_s.mean
    assert alone.ttft_s.mean < far.ttft_s.mean


def test_kv_that_comes_to_a_decoders_dram_is_loaded_before_the_first_token() -> None:
    there, loaded, slowly = (run("netkv", decoders={"load_gbyte_s": rate}) for rate in (0.0, 100.0, 50.0))
    loading_s = loaded.ttft_s.mean - there.ttft_s.mean
    assert loading_s > 0
    assert slowly.ttft_s.mean - there.ttft_s.mean >= 1.9 * loading_s


def test_who_finds_no_room_at_the_decoders_waits() -> None:
    roomy, full = run("netkv"), run("netkv", decoders={"count": 1, "racks": 1, "running_gb": 4.0})
    assert full.ttft_s.p99 > 2 * roomy.ttft_s.p99
    assert full.completed == roomy.completed


def test_decoders_are_billed_as_nodes_and_adapters_that_decode_as_cache() -> None:
    plain, decoding = (
        run("smartnic", model={"decoding": place}).cache_dollars_per_hour for place in ("beside", "smartnic")
    )
    assert decoding == pytest.approx(plain + 8 * (3490 - 1745) / (4 * 8760))
    both, one = run("netkv"), run("netkv", decoders={"count": 0})
    assert both.dollars_per_hour == pytest.approx(one.dollars_per_hour + 8 * 32.77)
