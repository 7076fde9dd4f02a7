"""vLLM's own engine with the connector: whatever happens to the pool, it says what it says without one."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make test-engines")

from engines.identity import model_identity
from experiments.engines import model
from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.health import HealthOptions
from hostlib.engine import KvSpace, PoolConfig, open_pool
from hostlib.protocol.block import Place
from hostlib.protocol.members import Members
from hostlib.protocol.seal import PUBLIC_SECRET, Seal
from hostlib.protocol.transfer import BlockRef
from hostlib.transport.endpoint import UdpEndpoint
from tests.engines.live.conftest import Home
from tests.hostlib.loopback import own_address

ROOT = Path(__file__).resolve().parents[3]
BLOCK_TOKENS = 32
LONG = 7 * BLOCK_TOKENS + 5
TOLERANCE = 1e-4


def until(condition: Callable[[], bool]) -> None:
    """What an engine has computed is on its way for a while."""
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


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
        self.heard = ""
        """What it wrote to stdout: vLLM's own log is among it."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "experiments.engines.vllm_node", str(path)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
            )  # fmt: skip

    def expect(self, event: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.heard += line
            if line.startswith("{"):
                said: dict[str, Any] = json.loads(line)
                if said["event"] == event:
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

    def settings(self) -> str:
        """The digest of its configuration, as it says at the start."""
        said = self.heard + self.log.read_text(errors="replace")
        (digest,) = set(re.findall("settings ([0-9a-f]{32}): KV is shared with the engines", said))
        return str(digest)

    def forget(self) -> None:
        self.say("forget", "forgot")

    def close(self) -> None:
        """End it, with the processes that vLLM started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
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
        patient = {**settings, "lookup_timeout_s": 20.0, "retry_s": 0.5, "silence_s": 10.0}
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


def lose_of_rank(home: Home, engine: Vllm, model: Path, tokens: list[int], rank: int, block: int) -> None:
    """Have the storage node lose a block's first object for one rank, and for all ranks what is behind."""
    seal = Seal(0, PUBLIC_SECRET)
    identity = model_identity(str(model))
    parameters = KvSpace(
        name=model.name, model=identity, layout="?", dtype="?", block_tokens=1, object_bytes=(1,)
    )

    async def descriptor() -> dict[str, Any]:
        endpoint = UdpEndpoint(own_address())
        patient = ClientOptions(health=HealthOptions(silence_s=20.0))
        client = Client(endpoint, Members.of([home.address]), seal, patient)
        try:
            return dict(
                json.loads(bytes((await client.get(BlockRef(parameters.descriptor_key(seal)))).content))
            )
        finally:
            client.close()
            endpoint.close()

    shared = asyncio.run(descriptor())
    shared["object_bytes"] = tuple(shared["object_bytes"])
    lost = []
    for one in range(shared["tensor_parallel"]):
        space = KvSpace(**shared, model=identity, settings=engine.settings())
        for number, key in enumerate(space.block_keys(seal, tokens)):
            if number > block or (number, one) == (block, rank):
                objects = range(1 if number == block else len(space.object_bytes))
                lost += [Place(0, space.object_key(seal, key, index, one)) for index in objects]
    until(lambda: set(lost) <= set(home.store.places()))
    for place in lost:
        del home.store._dram[place]


def test_it_says_the_same_whatever_happens(engines: Engines, tiny: Path, home: Home) -> None:
    """One start of three engines for all of it: that takes most of the time."""
    alone, layerwise, background = engines.all

    # Several prompts at once, each longer than a chunk: computed by one, continued by the other.
    several = prompts(3, seed=1)
    right = alone.serve(*several)
    assert_same(background.serve(*several), right)
    until(lambda: len(home.store.places()) == 3 * 7 * 2 + 1)  # prompts, blocks, objects; handshake
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

    # A block of which the home has lost a part: found, not loaded, computed.
    (torn,) = prompts(1, seed=3)
    right = alone.serve(torn)
    assert_same(background.serve(torn), right)
    for engine in (background, layerwise):
        engine.forget()
        lose_of_rank(home, engine, tiny, torn, rank=0, block=2)
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


@pytest.fixture
def split(tmp_path: Path, tiny: Path, pool_settings: dict[str, object]) -> Iterator[tuple[Vllm, ...]]:
    """One engine without a pool, and two with one whose model is split over two workers. Scheduler and
    workers are processes of their own, and share one address."""
    patient = {**pool_settings, "lookup_timeout_s": 5.0, "retry_s": 0.5, "silence_s": 3.0}
    both: dict[str, Any] = {"tensor_parallel": 2, "processes": True, "threads": 1}
    started = (
        Vllm(tmp_path, "whole", tiny, 200),
        Vllm(tmp_path, "layerwise", tiny, 40, transfer=transfer(patient), **both),
        Vllm(tmp_path, "background", tiny, 40, transfer=transfer(patient, loading="background"), **both),
    )
    try:
        for engine in started:
            engine.expect("ready")
        yield started
    finally:
        for engine in started:
            engine.close()


def test_an_engine_of_several_processes_says_the_same(
    split: tuple[Vllm, ...], tiny: Path, home: Home
) -> None:
    whole, layerwise, background = split

    # Each rank stores its own part, and the other engine's ranks load theirs.
    several = prompts(2, seed=11)
    right = whole.serve(*several)
    assert_same(background.serve(*several), right)
    until(lambda: len(home.store.places()) == 2 * 7 * 2 * 2 + 1)  # prompts, blocks, ranks, objects; handshake
    said = layerwise.serve(*several)
    assert_same(said, right)
    assert said["hit_tokens"] == 2 * 7 * BLOCK_TOKENS

    # One rank lacks a block that the other has: neither stores what was computed on it.
    (torn,) = prompts(1, seed=12)
    right = whole.serve(torn)
    assert_same(layerwise.serve(torn), right)
    for engine in (layerwise, background):
        engine.forget()
        lose_of_rank(home, engine, tiny, torn, rank=1, block=2)
        assert_same(engine.serve(torn), right)
        assert engine.heard.count("Recovered from KV load failure") == 1
        engine.forget()
        assert_same(engine.serve(torn), right)

    # Aborted while it loads.
    (aborted,) = prompts(1, seed=13)
    right = whole.serve(aborted)
    assert_same(layerwise.serve(aborted), right)
    said = background.say("abort " + json.dumps({"tokens": aborted}), "aborted")
    assert said["unfinished"] == 0
    assert_same(background.serve(aborted), right)

    # The pool falls silent: everything is computed, and one of the processes says so, once.
    home.silence()
    last = prompts(2, seed=14)
    right = whole.serve(*last)
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


def test_other_parameters_under_the_same_name_are_refused_at_the_start(
    tmp_path: Path, tiny: Path, pool_settings: dict[str, object]
) -> None:
    """As after an upgrade: blocks of another version of vLLM, of other weights, of another dtype."""
    there = KvSpace(
        name="tiny", model="weights:others", layout="vllm 0.31, cpu", dtype="bfloat16",
        block_tokens=BLOCK_TOKENS, object_bytes=(1024, 1024),
    )  # fmt: skip
    pool = open_pool(PoolConfig.from_mapping(pool_settings), there)
    try:
        assert pool.join()
    finally:
        pool.close()
    engine = Vllm(tmp_path, "other", tiny, 40, transfer=transfer(pool_settings))
    try:
        with pytest.raises(AssertionError, match="the engine ended"):
            engine.expect("ready")
        log = engine.log.read_text(errors="replace") + engine.heard
        assert "key space 'tiny' is in use with other parameters" in log
        assert "dtype is 'float32' here and 'bfloat16' there" in log
        assert "and 'vllm 0.31, cpu' there" in log
        assert "Give this engine another key space name, or the same parameters" in log
    finally:
        engine.close()


def test_an_engine_starts_without_a_pool_to_reach_and_says_so_once(tmp_path: Path, tiny: Path) -> None:
    nowhere = {"homes": [own_address()], "lookup_timeout_s": 1.0, "retry_s": 0.2}
    engine = Vllm(tmp_path, "alone", tiny, 40, transfer=transfer(nowhere))
    try:
        engine.expect("ready")
        for number in range(3):
            (prompt,) = prompts(1, seed=20 + number)
            said = engine.serve(prompt)
            assert len(said["replies"][0]["tokens"]) == 4
        assert said["hit_tokens"] == 0
        assert said["pool"]["failed"]
        assert engine.log.read_text(errors="replace").count("The pool does not answer") == 1
    finally:
        engine.close()
