"""KV events in Mooncake's schema, read as strictly as Mooncake's conductor reads them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make test-engines")

import msgspec
import zmq
from vllm.distributed.kv_events import BlockRemoved, BlockStored

from engines.vllm.mooncake_events import MooncakeEvents
from hostlib.protocol.errors import ConfigError

NUMBER, TEXT, NUMBERS = (int,), (str,), (list,)
MAYBE_NUMBER, MAYBE_TEXT = (int, type(None)), (str, type(None))
COMMON: dict[str, tuple[type, ...]] = {
    "event_id": NUMBER, "timestamp": NUMBER, "event_type": TEXT, "type": TEXT, "model_name": MAYBE_TEXT,
    "block_size": MAYBE_NUMBER, "additional_salt": MAYBE_TEXT, "lora_name": MAYBE_TEXT, "tenant_id": TEXT,
    "backend_id": TEXT, "medium": MAYBE_TEXT, "dp_rank": NUMBER, "group_id": MAYBE_TEXT,
    "seq_hashes": NUMBERS, "block_hashes": NUMBERS, "base_block_idx": MAYBE_NUMBER,
}  # fmt: skip
STORED = {**COMMON, "parent_hash": MAYBE_NUMBER, "parent_block_hash": MAYBE_NUMBER, "token_ids": NUMBERS}
"""Fields of the conductor's decoder, with their types; it takes no others."""
HASHES = [bytes([number]) * 32 for number in (1, 2, 3)]


def config(rank: int) -> Any:
    model = SimpleNamespace(served_model_name=["served", "alias"], model="/models/one")
    return SimpleNamespace(
        parallel_config=SimpleNamespace(data_parallel_rank=0, data_parallel_index=rank), model_config=model
    )


@pytest.fixture
def endpoint(tmp_path: Path) -> str:
    return f"ipc://{tmp_path}/events"


@pytest.fixture
def publisher(endpoint: str) -> Iterator[MooncakeEvents]:
    made = MooncakeEvents(endpoint, config(0), 0)
    yield made
    made.close()


def stored(hashes: list[Any], parent: Any, lora: str | None = None) -> BlockStored:
    return BlockStored(
        block_hashes=hashes, parent_block_hash=parent, token_ids=list(range(32 * len(hashes))), block_size=32,
        lora_id=None, medium="STORAGE", lora_name=lora, locality="REMOTE",
    )  # fmt: skip


def heard(publisher: MooncakeEvents, address: str, events: list[Any], count: int = 1) -> list[list[bytes]]:
    """What a listener hears of the same events, published so many times after it is there."""
    socket = zmq.Context.instance().socket(zmq.SUB)
    try:
        socket.connect(address)
        socket.subscribe(b"")
        while not socket.poll(10):  # until the publisher knows it
            publisher.publish(events[:1])
        while socket.poll(50):
            socket.recv_multipart()
        for _ in range(count):
            publisher.publish(events)
        return [socket.recv_multipart() for _ in range(count)]
    finally:
        socket.close(linger=0)


def test_a_conductor_can_read_every_field(publisher: MooncakeEvents, endpoint: str) -> None:
    removed = BlockRemoved(block_hashes=HASHES[:1], medium="STORAGE", locality="REMOTE")
    events = [stored(HASHES[:2], None, "sql"), stored(HASHES[2:], HASHES[1]), removed]
    ((topic, _, content),) = heard(publisher, endpoint, events)
    assert topic == b""
    now_ms, said, rank = msgspec.msgpack.decode(content)
    assert isinstance(now_ms, int)
    assert rank == 0
    for one, fields in zip(said, (STORED, STORED, COMMON), strict=True):
        assert one.keys() == fields.keys()
        assert all(type(value) in fields[name] for name, value in one.items())
        assert one["timestamp"] == now_ms
        assert one["block_hashes"] == one["seq_hashes"]
    first, second, gone = said
    numbers = [int.from_bytes(one[-8:], "big") for one in HASHES]
    assert first["seq_hashes"] + second["seq_hashes"] == numbers
    assert (first["parent_hash"], second["parent_hash"]) == (None, numbers[1])
    assert first["token_ids"] == list(range(64))
    assert (first["lora_name"], first["model_name"], first["tenant_id"]) == ("sql", "served", "default")
    assert (gone["event_type"], gone["type"], gone["seq_hashes"]) == ("removed", "BlockRemoved", numbers[:1])
    assert len({one["event_id"] for one in said}) == 3


def test_messages_are_numbered_so_that_a_gap_is_noticed(publisher: MooncakeEvents, endpoint: str) -> None:
    messages = heard(publisher, endpoint, [stored([7], None)], count=3)
    first, *rest = [int.from_bytes(number, "big") for _, number, _ in messages]
    assert rest == [first + 1, first + 2]


def test_engines_of_a_data_parallel_group_publish_at_ports_of_their_own() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    engines = [MooncakeEvents(f"tcp://127.0.0.1:{port}", config(rank), 0) for rank in range(2)]
    for rank, engine in enumerate(engines):
        ((_, _, content),) = heard(engine, f"tcp://127.0.0.1:{port + rank}", [stored([7], None)])
        assert msgspec.msgpack.decode(content)[2] == rank
        engine.close()


def test_nobody_listening_holds_up_nothing_and_an_endpoint_in_use_is_refused(
    publisher: MooncakeEvents,
) -> None:
    for _ in range(100):
        publisher.publish([stored(HASHES, None)])
    with pytest.raises(ConfigError, match="can't be bound"):
        MooncakeEvents("nonsense://", config(0), 0)
