"""A connector without defects passes every case; one with a defect fails the case that is about it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from engines.conformance import bench as bench_module
from engines.conformance import cases  # noqa: F401 # registers them
from engines.conformance.case import CASES
from engines.conformance.cases import failures, isolation
from engines.conformance.engine import Engine, StartError
from engines.conformance.models import LLAMA, LONGROPE, MLA, OTHER_LLAMA, SLIDING
from engines.conformance.outcome import FAILED, LEFT_OUT, PASSED, REFUSED, Outcome
from engines.conformance.run import run_case
from tests.engines.conformance.pretend import Defects, PretendedBench, PretendedConnector

EDITED = "model.layers.0.post_attention_layernorm.weight"

NOT_ABOUT_FINDING = ("races", "prompt-embeddings")
"""What these ask for is right without a store, too."""

Run = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a case with a connector of some defects."""
    monkeypatch.setattr(bench_module, "FOUND_LIMIT_S", 0.0)
    monkeypatch.setattr(failures, "SETTLE_S", 0.0)
    monkeypatch.setattr(isolation, "write_adapter", _write_adapter)
    models = tmp_path / "models"
    for number, name in enumerate((LLAMA, OTHER_LLAMA, MLA, SLIDING, LONGROPE)):
        _write_model(models / name, number)

    def run_it(name: str, **defects: Any) -> Outcome:
        connector = PretendedConnector(tmp_path, Defects(**defects))
        bench = PretendedBench(connector, models, tmp_path, cast("Any", None), seed=1)
        return run_case(bench, CASES[name])

    return run_it


@pytest.mark.parametrize("name", CASES)
def test_a_connector_without_defects_passes(run: Run, name: str) -> None:
    outcome = run(name)
    assert (outcome.result, outcome.message) == (PASSED, "")
    assert outcome.measured


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("weights", "weights"),
        ("weights-one-tensor", "weights"),
        ("adapter", "adapter"),
        ("adapter-rewritten", "adapter"),
        ("adapter-loaded-again", "adapter"),
        ("cache-salt", "salt"),
        ("prompt-embeddings", "embeds"),
        ("dtype", "dtype"),
        ("kv-cache-dtype", "kv_dtype"),
        ("rope-overridden", "rope"),
        ("longrope-max-model-len", "weights"),
        ("new-weights-reset", "generation"),
        ("new-weights-pause", "generation"),
    ],
)
def test_keys_that_lack_something_are_noticed(run: Run, name: str, lacks: str) -> None:
    outcome = run(name, key_lacks=frozenset((lacks,)))
    assert outcome.result == FAILED
    assert outcome.measured["hit_tokens"] > 0


@pytest.mark.parametrize("name", [name for name in CASES if name not in NOT_ABOUT_FINDING])
def test_a_connector_that_stores_nothing_fails(run: Run, name: str) -> None:
    assert run(name, stores_nothing=True).result == FAILED


def test_a_connector_that_says_why_it_stores_nothing_refuses(run: Run) -> None:
    outcome = run("same-configuration", stores_nothing=True, warns=True)
    assert outcome.result == REFUSED
    assert "prompts like this are not stored" in outcome.message


@pytest.mark.parametrize(
    ("name", "refuses"),
    [
        ("block-size", ("block_size", 64)),
        ("tensor-parallel", ("tensor_parallel_size", 2)),
        ("dtype", ("dtype", "bfloat16")),
    ],
)
def test_an_engine_that_the_connector_does_not_let_start_is_a_refusal(
    run: Run, name: str, refuses: tuple[str, Any]
) -> None:
    outcome = run(name, refuses=refuses)
    assert outcome.result == REFUSED
    assert "is not possible" in outcome.message


@pytest.mark.parametrize(
    "name", ["same-configuration", "chunked-prefill", "races", "store-silent", "model-mla", "hash-seed"]
)
def test_damaged_kv_is_noticed(run: Run, name: str) -> None:
    outcome = run(name, damages=True)
    assert outcome.result == FAILED
    assert "differ from recomputing" in outcome.message


def test_an_engine_that_ends_is_a_failure(run: Run) -> None:
    outcome = run("speculation-ngram", ends_engine_with="speculative_config")
    assert outcome.result == FAILED
    assert "the engine ended" in outcome.message
    assert run("speculation-ngram").result == PASSED


def test_a_lost_block_that_ends_the_engine_is_a_failure(run: Run) -> None:
    assert run("lost-objects", fails_without_half=True).result == FAILED


def test_storing_what_a_failed_step_did_not_compute_is_a_failure(run: Run) -> None:
    outcome = run("step-raises", stores_failed_steps=True)
    assert outcome.result == FAILED
    assert "stored of the failed step" in outcome.message


@pytest.mark.parametrize("name", ["new-weights-reset", "new-weights-pause", "reset-then-stores"])
def test_saying_that_a_reset_is_not_possible_is_a_refusal(run: Run, name: str) -> None:
    assert run(name, reset_answers=False).result == REFUSED


def test_a_reset_that_does_nothing_and_says_nothing_is_a_failure(run: Run) -> None:
    assert run("new-weights-reset", reset_answers=None).result == FAILED


@pytest.mark.parametrize("name", ["kv-consumer", "kv-producer"])
def test_an_ignored_role_is_a_failure(run: Run, name: str) -> None:
    assert run(name, ignores_role=True).result == FAILED


def test_offering_a_prefix_again_is_a_failure(run: Run) -> None:
    assert run("turns-store-what-is-new", offers_all_again=True).result == FAILED


def test_keeping_everything_in_memory_is_a_failure(run: Run) -> None:
    assert run("memory-bound", keeps_all_in_memory=True).result == FAILED


def test_what_vllm_can_not_do_alone_is_left_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = PretendedBench._launch

    def without_fp8(self: PretendedBench, *arguments: Any, **changes: Any) -> Engine:
        if "kv_cache_dtype" in changes:
            raise StartError("fp8 needs a GPU")
        return launch(self, *arguments, **changes)

    monkeypatch.setattr(PretendedBench, "_launch", without_fp8)
    outcome = run("kv-cache-dtype")
    assert outcome.result == LEFT_OUT
    assert "without a connector either" in outcome.message


def test_a_change_that_changes_nothing_is_left_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "edit_tensor", lambda folder, name: None)
    assert run("weights-one-tensor").result == LEFT_OUT


def test_every_case_says_what_it_stands_for() -> None:
    for case in CASES.values():
        assert case.about.endswith(".")
        assert case.sources
        assert all("/" in source and "#" in source for source in case.sources)


def _write_model(folder: Path, number: int) -> None:
    """A file of weights with one tensor, in the format of safetensors."""
    folder.mkdir(parents=True)
    header = json.dumps({EDITED: {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    content = struct.pack("<Q", len(header)) + header + struct.pack("<4f", *range(number, number + 4))
    (folder / "model.safetensors").write_bytes(content)


def _write_adapter(folder: Path, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_model.safetensors").write_bytes(bytes([seed]))
