"""KV events of vLLM's own engine: what its publisher says of the pool, and replays."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make test-engines")

import msgspec
import zmq

from experiments.engines import model
from tests.engines.live.conftest import Home
from tests.engines.live.vllm_process import Engine
from tests.hostlib.loopback import own_address

pytestmark = pytest.mark.timeout(1200)

BLOCK_TOKENS = 32
END = (-1).to_bytes(8, "big", signed=True)


@pytest.fixture
def engine(tmp_path: Path, home: Home) -> Iterator[Engine]:
    folder = tmp_path / "model"
    model.make(folder, hidden=128, layers=4)
    transfer = {
        "kv_connector": "WeirConnector",
        "kv_connector_module_path": "engines.vllm.connector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {
            "address": own_address(), "homes": [home.address], "lookup_timeout_s": 20.0,
            "transfer_timeout_s": 60.0, "silence_s": 5.0,
        },
    }  # fmt: skip
    events = {
        "enable_kv_cache_events": True,
        "endpoint": f"ipc://{tmp_path}/events",
        "replay_endpoint": f"ipc://{tmp_path}/replay",
    }
    started = Engine(tmp_path, folder, transfer=transfer, kv_events_config=events)
    yield started
    started.close()


def replayed(endpoint: str, first: int) -> dict[int, list[dict[str, Any]]]:
    """The events of each numbered batch, from number `first` on, as a router asks for them after a gap."""
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.connect(endpoint)
    socket.send_multipart([b"", first.to_bytes(8, "big")])
    batches: dict[int, list[dict[str, Any]]] = {}
    try:
        while True:
            assert socket.poll(60_000), "the publisher does not answer"
            number, content = socket.recv_multipart()[-2:]
            if number == END:
                return batches
            batches[int.from_bytes(number, "big")] = msgspec.msgpack.decode(content)[1]
    finally:
        socket.close(linger=0)


def until(condition: Callable[[], bool]) -> None:
    """Events are published in a thread of the engine."""
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_a_router_hears_what_comes_into_the_pool_and_what_has_left_it(
    engine: Engine, home: Home, tmp_path: Path
) -> None:
    def events(kind: str, *, of_pool: bool = True) -> list[dict[str, Any]]:
        batches = replayed(f"ipc://{tmp_path}/replay", 0)
        said = [event for number in sorted(batches) for event in batches[number] if event["type"] == kind]
        return [event for event in said if (event["medium"] == "STORAGE") == of_pool]

    def hashes(kind: str, *, of_pool: bool = True) -> list[bytes]:
        return [name for event in events(kind, of_pool=of_pool) for name in event["block_hashes"]]

    choice = random.Random(1)
    prompt = [choice.randrange(3, 200) for _ in range(6 * BLOCK_TOKENS + 5)]
    engine.generate(prompt)
    engine.settle()
    engine.generate(prompt[:BLOCK_TOKENS])  # events leave with a step
    until(lambda: len(hashes("BlockStored")) >= 6)
    stored = events("BlockStored")
    assert [token for event in stored for token in event["token_ids"]] == prompt[: 6 * BLOCK_TOKENS]
    assert {(event["block_size"], event["locality"]) for event in stored} == {(BLOCK_TOKENS, "REMOTE")}
    assert set(hashes("BlockStored")) == set(hashes("BlockStored", of_pool=False))
    assert not events("BlockRemoved")

    for place in home.store.places():
        del home.store._dram[place]
    engine.forget()
    engine.generate(prompt)
    until(lambda: bool(events("BlockRemoved")))
    assert set(hashes("BlockRemoved")) == set(hashes("BlockStored"))
