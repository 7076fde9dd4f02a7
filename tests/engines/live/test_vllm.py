"""vLLM's own engine with the connector: whatever happens to the pool, it says what it says without one."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make test-engines")

from experiments.engines import model
from hostlib.block import Place
from tests.engines.live.conftest import Home
from tests.hostlib.loopback import own_address

ROOT = Path(__file__).resolve().parents[3]
BLOCK_TOKENS = 32
LONG = 7 * BLOCK_TOKENS + 5
TOLERANCE = 1e-4


class Vllm:
    """One engine's process."""

    def __init__(self, folder: Path, name: str, model: Path, own_blocks: int, **more: Any) -> None:
        config = {
            "model": str(model), "max_tokens": 512, "batched_tokens": 96, "block_tokens": BLOCK_TOKENS,
            "own_blocks": own_blocks, "threads": 2, **more,
        }  # fmt: skip
        path = folder / f"{name}.json"
        path.write_text(json.dumps(config))
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "experiments.engines.vllm_node", str(path)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def expect(self, event: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{") and (said := json.loads(line))["event"] == event:
                return said
        raise AssertionError(f"the engine ended:\n{self.log.read_text(errors='replace')[-3000:]}")

    def say(self, line: str, answer: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self.expect(answer)

    def serve(self, *prompts: list[int], output_tokens: int = 4) -> dict[str, Any]:
        requests = [{"tokens": tokens, "output_tokens": output_tokens} for tokens in prompts]
        return self.say("run " + json.dumps({"requests": requests}), "served")

    def forget(self) -> None:
        self.say("forget", "forgot")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    model.make(folder, hidden=128, layers=4)
    return folder


def transfer(settings: dict[str, object], **more: object) -> dict[str, Any]:
    return {
        "kv_connector": "WeirConnector",
        "kv_connector_module_path": "engines.vllm.connector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {**settings, "address": own_address(), **more},
    }


class Engines:
    """One engine without a pool, and two with one: layer by layer, and in the background."""

    def __init__(self, folder: Path, tiny: Path, settings: dict[str, object]) -> None:
        patient = {**settings, "lookup_timeout_s": 5.0, "retry_s": 0.5, "silence_s": 3.0}
        self.alone = Vllm(folder, "alone", tiny, 200)
        self.layerwise = Vllm(folder, "layerwise", tiny, 20, transfer=transfer(patient))
        self.background = Vllm(
            folder, "background", tiny, 40, transfer=transfer(patient, loading="background")
        )
        self.all = (self.alone, self.layerwise, self.background)


@pytest.fixture
def engines(tmp_path: Path, tiny: Path, pool_settings: dict[str, object]) -> Iterator[Engines]:
    started = Engines(tmp_path, tiny, pool_settings)
    try:
        for engine in started.all:
            engine.expect("ready")
        yield started
    finally:
        for engine in started.all:
            engine.close()


def prompts(count: int, seed: int, length: int = LONG) -> list[list[int]]:
    choice = random.Random(seed)
    return [[choice.randrange(2, model.VOCABULARY) for _ in range(length)] for _ in range(count)]


def assert_same(said: dict[str, Any], expected: dict[str, Any]) -> None:
    for reply, right in zip(said["replies"], expected["replies"], strict=True):
        assert reply["tokens"] == right["tokens"]
        differences = [abs(a - b) for a, b in zip(reply["logprobs"], right["logprobs"], strict=True)]
        assert max(differences) < TOLERANCE


def lose(home: Home, share: int) -> int:
    """Have the storage node lose every so-manieth object, as if it had run out of room."""
    places: list[Place] = home.store.places()
    lost = places[::share]
    for place in lost:
        del home.store._dram[place]
    return len(lost)


def test_it_says_the_same_whatever_happens(engines: Engines, home: Home) -> None:
    """One start of three engines for all of it: that takes most of the time."""
    alone, layerwise, background = engines.all

    # Several prompts at once, each longer than a chunk: computed by one, continued by the other.
    several = prompts(3, seed=1)
    right = alone.serve(*several)
    assert_same(background.serve(*several), right)
    said = layerwise.serve(*several)
    assert_same(said, right)
    assert said["hit_tokens"] > 0
    assert said["pool"]["loaded_bytes"] > 0
    assert said["pool"]["failed"] == {}

    # More than fits: vLLM preempts, and what it resumes is found in the pool.
    crowd = prompts(4, seed=2, length=4 * BLOCK_TOKENS)
    right = alone.serve(*crowd, output_tokens=60)
    said = layerwise.serve(*crowd, output_tokens=60)
    assert_same(said, right)
    assert said["preemptions"] > 0

    # Blocks of which the home has lost a part: found, not loaded, computed.
    (torn,) = prompts(1, seed=3)
    right = alone.serve(torn)
    assert_same(background.serve(torn), right)
    before = len(home.store.places())
    for engine in (background, layerwise):
        engine.forget()
        lost = lose(home, 3)
        assert 0 < lost < before
        said = engine.serve(torn)
        assert_same(said, right)
    assert said["pool"]["failed"].get("BlockNotFoundError", 0) > 0
    background.forget()
    assert_same(background.serve(torn), right)  # what was computed anew is stored, and right

    # Aborted while it loads.
    (aborted,) = prompts(1, seed=4)
    right = alone.serve(aborted)
    assert_same(layerwise.serve(aborted), right)
    said = background.say("abort " + json.dumps({"tokens": aborted}), "aborted")
    assert said["unfinished"] == 0
    assert_same(background.serve(aborted), right)

    # The pool falls silent: everything is computed, and that is said once.
    home.silence()
    last = prompts(2, seed=5)
    right = alone.serve(*last)
    for engine in (layerwise, background):
        for prompt in last:
            reply = engine.serve(prompt)
        assert reply["replies"][0]["tokens"] == right["replies"][1]["tokens"]
        assert engine.log.read_text(errors="replace").count("The pool does not answer") == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kv_load_failure_policy": "fail"}, "set kv_load_failure_policy='recompute'"),
        ({"kv_connector_extra_config": {"adress": "10.0.0.1"}}, "no pool setting 'adress' exists"),
    ],
)
def test_a_configuration_that_can_not_work_is_refused_at_the_start(
    tmp_path: Path, tiny: Path, pool_settings: dict[str, object], change: dict[str, Any], why: str
) -> None:
    engine = Vllm(tmp_path, "wrong", tiny, 40, transfer={**transfer(pool_settings), **change})
    try:
        with pytest.raises(AssertionError, match="the engine ended"):
            engine.expect("ready")
        assert why in engine.log.read_text(errors="replace")
    finally:
        engine.close()
