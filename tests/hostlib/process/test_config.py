from __future__ import annotations

import json
from pathlib import Path

import pytest

from hostlib.node.worker import WorkerConfig
from hostlib.process.config import load_config
from hostlib.protocol.errors import ConfigError
from hostlib.storage.storage import StorageConfig


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "expected a JSON object, found list"),
        ('{"adress": ""}', "no field 'adress' exists; there are result, observe_s, address, "),
        ('{"address": "127.0.0.1"}', "field 'result' is missing"),
    ],
)
def test_files_that_are_no_configuration_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "storage.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(StorageConfig, path)
    assert str(caught.value).startswith(f"{path}: {reason}")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"address": "localhost"}, "address: "),
        ({"block_bytes": "x"}, "block_bytes must be int, not 'x'"),
        ({"block_bytes": True}, "block_bytes must be int, not True"),
        ({"preload": "some", "block_bytes": 0}, "block_bytes must be above 0"),
        ({"ssd_dir": "somewhere"}, "ssd_bytes must be above 0"),
        ({"link_bit_s": None}, "link_bit_s must be float, not None"),
        ({"homes": ["127.0.0.9"]}, "homes must name this node, 127.0.0.1, too"),
        ({"homes": ["127.0.0.1", "h2"]}, "homes: "),
        ({"replicas": 4}, "homes: a block has 1 to 3 homes, not 4"),
        ({"controller": "c"}, "controller: "),
        ({"tenant": 5}, "tenant 5 needs a secret"),
        ({"tenant_bytes": -1}, "tenant_bytes must be 0 or more"),
    ],
)
def test_values_that_make_no_sense_are_refused(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    good = {"address": "127.0.0.1", "result": "r", "block_bytes": 512, "dram_bytes": 512, "preload": None}
    path = tmp_path / "storage.json"
    path.write_text(json.dumps(good))
    assert load_config(StorageConfig, path).block_bytes == 512
    path.write_text(json.dumps(good | change))
    with pytest.raises(ConfigError) as caught:
        load_config(StorageConfig, path)
    assert str(caught.value).startswith(f"{path}: {reason}")


WORKER = {
    "address": "127.0.0.1",
    "result": "r",
    "homes": ["127.0.0.2"],
    "trace": "t",
    "gpu_blocks": 1,
    "dram_blocks": 0,
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"homes": []}, "homes must name at least one storage node"),
        ({"homes": ["127.0.0.2", "h2"]}, "homes: "),
        ({"homes": "127.0.0.2"}, "homes must be list[str]"),
        ({"gpu_blocks": -1}, "gpu_blocks and dram_blocks must be 0 or more"),
        ({"tiers": "x"}, "no rule for tiers 'x': choose one of exclusive, inclusive, by-value"),
        ({"gate": True}, "link_bit_s must be above 0 for the gate"),
        ({"link_bit_s": -1.0}, "link_bit_s must be 0 or more, not -1.0"),
        ({"model": "gpt"}, "no model 'gpt': choose one of llama3-70b"),
        ({"gpu": "abacus"}, "no GPU 'abacus': choose one of a800"),
        ({"sigma": 0}, "scale must be 1 or more"),
        ({"speed": -1}, "speed must be above 0"),
        ({"block_tokens": 0}, "block_tokens must be above 0"),
    ],
)
def test_a_worker_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    path = tmp_path / "worker.json"
    path.write_text(json.dumps(WORKER | {"sigma": 5000}))  # a whole number will do for a float
    assert load_config(WorkerConfig, path).sigma == 5000
    path.write_text(json.dumps(WORKER | change))
    with pytest.raises(ConfigError) as caught:
        load_config(WorkerConfig, path)
    assert str(caught.value).startswith(f"{path}: {reason}")


def test_a_trace_of_another_block_size_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 10, "output_length": 1, "hash_ids": [1]}\n')
    path = tmp_path / "worker.json"
    path.write_text(json.dumps(WORKER | {"trace": str(trace), "block_tokens": 16}))
    with pytest.raises(ConfigError, match="blocks of 512 tokens, but block_tokens is 16"):
        load_config(WorkerConfig, path).load_trace()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ttft_slo_s": None}, "ttft_slo_s must be above 0 with level 'adaptive', not None"),
        ({"ttft_slo_s": 0.0}, "ttft_slo_s must be above 0"),
        ({"link_bit_s": 0.0}, "link_bit_s must be above 0 with level 'adaptive'"),
        ({"gate": True}, "level 'adaptive' goes with fetch, with no gate"),
        ({"fetch": False}, "level 'adaptive' goes with fetch"),
        ({"codec": "fp8"}, "codec fp8 does not have"),
        ({"level": "good"}, "a level is a whole number or adaptive, not 'good'"),
    ],
)
def test_streams_that_cannot_be_are_refused(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    path = tmp_path / "worker.json"
    given = WORKER | {"model": "llama3-70b", "codec": "cachegen", "level": "adaptive"}
    path.write_text(json.dumps(given | {"ttft_slo_s": 2.0, "link_bit_s": 1e6}))
    assert load_config(WorkerConfig, path).rungs
    path.write_text(json.dumps(given | {"ttft_slo_s": 2.0, "link_bit_s": 1e6} | change))
    with pytest.raises(ConfigError, match=reason):
        load_config(WorkerConfig, path)
