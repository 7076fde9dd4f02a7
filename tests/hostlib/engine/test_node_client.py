"""One client a node: other processes use the first one's, and take over when it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hostlib.engine import (
    BlockingPool,
    Item,
    KvSpace,
    PoolConfig,
    large,
    node_client,
    objects,
    open_pool,
)
from hostlib.protocol.errors import ConfigError, KeySpaceError
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import KV_PORT
from tests.hostlib.engine.neighbour import LONGEST_BLOCK, PART, content
from tests.hostlib.engine.test_blocking import SPACE, config

__all__ = ["config"]

ROOT = Path(__file__).resolve().parents[3]
BLOCKS = 8
SIZE = SPACE.block_bytes
LARGE = 150_000


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


class Neighbour:
    """Another process of the node, with the same pool."""

    def __init__(self, config: PoolConfig, **changes: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostlib.engine.neighbour"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        self.opened = self.ask({"config": asdict(config) | changes, "space": asdict(SPACE)})

    def ask(self, command: dict[str, Any]) -> Any:
        self.say(command)
        return self.answer()

    def say(self, command: dict[str, Any]) -> None:
        """Ask and don't wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def stop(self) -> None:
        """It does nothing any more, and has not ended."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def neighbour(config: PoolConfig) -> Iterator[Callable[..., Neighbour]]:
    started: list[Neighbour] = []

    def start(**changes: Any) -> Neighbour:
        started.append(Neighbour(config, **changes))
        return started[-1]

    try:
        yield start
    finally:
        for one in started:
            with suppress(ProcessLookupError):
                one.kill()


def test_processes_of_a_node_share_its_client(
    config: PoolConfig, neighbour: Callable[..., Neighbour]
) -> None:
    pool = open_pool(config, SPACE)
    try:
        other = neighbour()
        assert other.opened == {"host": False}
        assert pool.join()
        keys = list(SPACE.block_keys(pool.seal, range(4 * BLOCKS)))
        items = [
            Item(block, content(number, SIZE)) for number, block in enumerate(pool.blocks.references(keys, 0))
        ]
        assert all(pool.store(items[:6]))

        assert other.ask({"exists": BLOCKS}) == 6
        loaded = other.ask({"load": BLOCKS, "size": SIZE})
        assert loaded == [content(number, SIZE).hex() for number in range(6)] + [None, None]
        stats = other.ask({"stats": True})
        assert stats["loaded_bytes"] == stats["store_bytes"] == 6 * SIZE
        assert stats["failed"] == {"BlockNotFoundError": 2}
        assert stats["endpoint"] == {}
        assert other.ask({"load": 1, "size": SIZE - 1}) == [None]
        assert other.ask({"stats": True})["failed"]["BlockTooLongError"] == 1

        assert other.ask({"store": LARGE}) == [True]
        block = pool.blocks.references(list(SPACE.block_keys(pool.seal, [7] * 4)), 0)[0]
        room = bytearray(LARGE)
        assert pool.load([Item(block, room)]) == [True]
        assert room == content(7, LARGE)
        assert other.ask({"store": 0}) == [False]  # a block has a byte at least
    finally:
        pool.close()


def test_who_has_other_settings_or_parameters_is_refused(
    config: PoolConfig, neighbour: Callable[..., Neighbour]
) -> None:
    pool = open_pool(config, SPACE)
    try:
        assert pool.join()
        wrong = neighbour(homes=["127.9.9.9"]).opened
        assert "other settings: homes is ['127.9.9.9'] here" in wrong["error"]
        secret = neighbour(secret="ab" * 16).opened["error"]
        assert "secret is" in secret
        assert "abab" not in secret
        assert neighbour(transfer_timeout_s=3.0).opened == {"host": False}  # each waits as long as it likes
    finally:
        pool.close()
    first = neighbour()
    assert first.opened == {"host": True}
    with pytest.raises(ConfigError, match="open with other settings: tenant is 5 here and 0 there"):
        open_pool(replace(config, tenant=5), SPACE)
    other = open_pool(config, replace(SPACE, dtype="bfloat16"))
    try:
        with pytest.raises(KeySpaceError, match="dtype is 'bfloat16' here and 'float32' there"):
            other.join()
    finally:
        other.close()


def test_another_takes_over_when_the_first_ends(
    config: PoolConfig, neighbour: Callable[..., Neighbour], caplog: pytest.LogCaptureFixture
) -> None:
    first = neighbour()
    assert first.opened == {"host": True}
    assert first.ask({"store": SIZE}) == [True]
    pool = open_pool(replace(config, retry_s=0.05), SPACE)
    last = neighbour(retry_s=0.05)
    try:
        keys = list(KvSpace(**asdict(SPACE)).block_keys(pool.seal, [7] * 4))
        assert pool.exists(keys) == 1
        first.kill()
        until(lambda: pool.exists(keys) == 1)  # what was asked of the one that ended counts as silence, once
        assert caplog.text.count("The pool does not answer") <= 1
        until(lambda: last.ask({"exists_stored": True}) == 1)
        room = bytearray(SIZE)
        assert pool.load([Item(pool.blocks.references(keys, 0)[0], room)]) == [True]
        assert room == content(7, SIZE)
    finally:
        pool.close()
    until(lambda: last.ask({"exists_stored": True}) == 1)  # the last one goes on by itself


@pytest.mark.parametrize("answer", [b"", struct.pack("<II", 1, 0) + b"?", struct.pack("<II", 2, 0) + b"[]"])
def test_a_process_that_has_the_client_and_does_not_greet_is_not_waited_for(
    config: PoolConfig, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    """As where it is stopped: the kernel takes connections for it."""
    monkeypatch.setattr(node_client, "ENTER_S", 0.2)
    monkeypatch.setattr(node_client, "ATTEMPTS", 20)
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(f"\0weir {config.address} {KV_PORT}")
        stopped.listen(64)
        stopped.settimeout(20)

        def greet() -> None:
            with suppress(OSError):
                while answer:
                    connection, _ = stopped.accept()
                    connection.sendall(answer)
                    connection.recv(1 << 16)
                    connection.close()

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        with pytest.raises(ConfigError, match="does not answer"):
            open_pool(config, SPACE)
        stopped.shutdown(socket.SHUT_RDWR)
    thread.join(5)


@pytest.fixture
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As neighbours have them."""
    monkeypatch.setattr(objects, "MAX_BLOCK_BYTES", LONGEST_BLOCK)
    monkeypatch.setattr(large, "PART_BYTES", PART)


def stored_block(pool: BlockingPool) -> BlockRef:
    """What neighbours store and load."""
    (block,) = pool.blocks.references(list(SPACE.block_keys(pool.seal, [7] * 4)), 0)
    return block


@pytest.mark.usefixtures("short_blocks")
def test_objects_longer_than_a_block_go_through_the_process_that_has_the_client(
    config: PoolConfig, neighbour: Callable[..., Neighbour]
) -> None:
    length = 2_000_000
    pool = open_pool(config, SPACE)
    try:
        guest = neighbour(transfer_timeout_s=60.0)
        assert guest.opened == {"host": False}
        assert guest.ask({"store": length}) == [True]
        room = bytearray(length)
        assert pool.load([Item(stored_block(pool), room)]) == [True]
        assert room == content(7, length)
        assert guest.ask({"load_stored": length}) is True
    finally:
        pool.close()


@pytest.mark.parametrize("doing", ["store", "load_stored"])
def test_a_transfer_through_a_process_that_is_killed_ends_at_once_and_the_next_one_works(
    config: PoolConfig, neighbour: Callable[..., Neighbour], doing: str
) -> None:
    length = 2_000_000
    first = neighbour(transfer_timeout_s=60.0)
    guest = neighbour(transfer_timeout_s=600.0, lookup_timeout_s=600.0)
    assert (first.opened, guest.opened) == ({"host": True}, {"host": False})
    if doing == "load_stored":
        assert first.ask({"store": length}) == [True]
    assert guest.ask({"exists": 1}) == 0  # it has joined
    moved = guest.ask({"stats": True})
    guest.say({doing: length})
    time.sleep(0.02)  # in the middle of it, on most machines; any other moment has to be right, too
    first.kill()
    ended = guest.answer()
    assert ended in ([False], [True], False, True)
    assert guest.ask({"store": length}) == [True]  # it has the client now
    assert guest.ask({"load_stored": length}) is True
    assert guest.ask({"stats": True})["stored_objects"] >= moved["stored_objects"] + 1


def test_a_process_that_is_stopped_costs_the_others_one_look_up_and_is_used_again(
    config: PoolConfig, neighbour: Callable[..., Neighbour], caplog: pytest.LogCaptureFixture
) -> None:
    first = neighbour()
    assert first.ask({"store": SIZE}) == [True]
    quick = replace(config, lookup_timeout_s=1.0, silence_s=0.5, transfer_timeout_s=1.0, retry_s=0.3)
    pool = open_pool(quick, SPACE)
    try:
        until(lambda: pool.exists(list(SPACE.block_keys(pool.seal, [7] * 4))) == 1)
        first.stop()
        began_s, asked = time.monotonic(), 0
        while pool.is_answering:
            pool.exists(list(SPACE.block_keys(pool.seal, [7] * 4)))
            asked += 1
        assert asked <= 3
        assert pool.load([Item(stored_block(pool), bytearray(SIZE))]) == [False]
        first.go_on()
        until(lambda: pool.exists(list(SPACE.block_keys(pool.seal, [7] * 4))) == 1)
        assert time.monotonic() - began_s < 60
        assert pool.load([Item(stored_block(pool), bytearray(SIZE))]) == [True]
    finally:
        first.go_on()
        pool.close()
    assert caplog.text.count("The pool does not answer") == 1
