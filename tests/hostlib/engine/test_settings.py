"""Each setting of the pool that is accepted has an effect. Real sockets on the loopback interface."""

from __future__ import annotations

import errno
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hostlib.engine import BlockingObjects, Item, KvSpace, PoolConfig, open_objects, open_pool
from hostlib.engine.pool import BlockReader
from hostlib.protocol import wire
from hostlib.protocol.members import Member, Members
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import KV_PORT
from tests.hostlib.engine import test_listed
from tests.hostlib.engine.loopback_homes import storage_nodes
from tests.hostlib.loopback import own_address

SIZE = 2000
SECRET = bytes(range(32)).hex()
WAIT_LIMIT_S = 60.0
Folder = Path


@contextmanager
def opened(**settings: Any) -> Iterator[BlockingObjects]:
    pool = open_objects(PoolConfig.from_mapping({"address": own_address()} | settings))
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def mute(address: str | None = None) -> Iterator[socket.socket]:
    """A host that takes datagrams and says nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind((address or own_address(), KV_PORT))
        bound.settimeout(WAIT_LIMIT_S)
        yield bound


def address_of(bound: socket.socket) -> str:
    return str(bound.getsockname()[0])


def item(number: int) -> Item:
    return Item(BlockRef(bytes([number]) * 16), bytes([number]) * SIZE)


def room(number: int) -> Item:
    return Item(item(number).block, bytearray(SIZE))


def of_address(_: Folder) -> None:
    own = own_address()
    with storage_nodes(1) as (home,), opened(address=own, homes=[home.address]):
        with pytest.raises(OSError, match=r".") as used, mute(own):
            pass
        assert used.value.errno == errno.EADDRINUSE


def of_homes(_: Folder) -> None:
    with storage_nodes(2) as (home, other), opened(homes=[other.address]) as pool:
        assert pool.store([item(1)]) == [True]
        assert (len(home.store.places()), len(other.store.places())) == (0, 1)


def of_replicas(_: Folder) -> None:
    for replicas in (1, 2, 3):
        with storage_nodes(3) as homes:
            addresses = [home.address for home in homes]
            with opened(homes=addresses, replicas=replicas) as pool:
                assert all(pool.store([item(number) for number in range(10)]))
            assert sum(len(home.store.places()) for home in homes) == 10 * replicas


def of_controller(_: Folder) -> None:
    """It says that another storage node than the one in the settings is the one that lives."""
    with (
        storage_nodes(2) as (home, other),
        mute() as controller,
        opened(homes=[home.address], controller=address_of(controller)) as pool,
    ):
        hello, (node, port) = controller.recvfrom(1 << 16)
        assert wire.decode(hello).op == wire.OP_HELLO
        members = Members(7, 1, (Member(1, other.address),))
        told = wire.Message(wire.OP_MEMBERS, bytes(16), 0, 0, value=members.encode())
        controller.sendto(wire.encode(told), (node, port))
        deadline_s, number = time.monotonic() + WAIT_LIMIT_S, 0
        while not other.store.places():
            assert time.monotonic() < deadline_s
            number += 1
            pool.store([item(number)])


def of_tenant(_: Folder) -> None:
    with storage_nodes(1) as (home,):
        with opened(homes=[home.address], tenant=5) as pool:
            assert pool.store([item(1)]) == [True]
        assert home.holds(5, item(1).block.key)
        with opened(homes=[home.address], tenant=6) as pool:
            assert pool.prefix([item(1).block]) == 0


def of_secret(_: Folder) -> None:
    with storage_nodes(1) as (home,):
        with opened(homes=[home.address], secret=SECRET) as pool:
            mine = pool.seal.key(b"a prompt")
            assert pool.store([item(1)]) == [True]
            assert pool.load([room(1)]) == [True]
        with opened(homes=[home.address]) as pool:
            assert pool.seal.key(b"a prompt") != mine
            assert pool.load([room(1)]) == [False]


def of_silence_s(_: Folder) -> None:
    """A silent storage node is noticed after that, long before the time for a look-up is up."""
    with mute() as home:
        with opened(homes=[address_of(home)], silence_s=0.2, lookup_timeout_s=10 * WAIT_LIMIT_S) as pool:
            assert pool.prefix([item(1).block]) == 0
            assert not pool.is_answering
        with opened(homes=[address_of(home)], silence_s=10 * WAIT_LIMIT_S, lookup_timeout_s=0.2) as pool:
            assert pool.prefix([item(1).block]) == 0
            assert pool.is_answering


def of_lookup_timeout_s(_: Folder) -> None:
    with mute() as home:
        patient = {"silence_s": 10 * WAIT_LIMIT_S, "transfer_timeout_s": 10 * WAIT_LIMIT_S}
        with opened(homes=[address_of(home)], lookup_timeout_s=0.2, **patient) as pool:
            assert pool.prefix([item(1).block]) == 0
            assert pool.stats()["slow_lookups"] == 1


def of_transfer_timeout_s(_: Folder) -> None:
    with mute() as home:
        patient = {"silence_s": 10 * WAIT_LIMIT_S, "lookup_timeout_s": 10 * WAIT_LIMIT_S}
        with opened(homes=[address_of(home)], transfer_timeout_s=0.2, **patient) as pool:
            assert pool.load([room(1)]) == [False]
            assert pool.store([item(1)]) == [False]
            assert pool.stats()["failed"] == {"TimeoutError": 2}


def of_retry_s(_: Folder) -> None:
    """A silent storage node is asked for a sign of life so often; twenty times with 5 s would take long."""
    with mute() as home, opened(homes=[address_of(home)], silence_s=0.1, retry_s=0.02) as pool:
        assert pool.prefix([item(1).block]) == 0
        began_s = time.monotonic()
        signs = 0
        while signs < 20:
            signs += not any(wire.decode(home.recv(1 << 16)).key)
        assert time.monotonic() - began_s < WAIT_LIMIT_S


def of_report(folder: Folder) -> None:
    report = folder / "report.json"
    with storage_nodes(1) as (home,), opened(homes=[home.address], report=str(report)) as pool:
        assert pool.store([item(1)]) == [True]
    assert json.loads(report.read_text())["stored_bytes"] == SIZE


def of_waiting_bytes(_: Folder) -> None:
    """So much is copied out of the engine while the pool takes nothing."""
    space = KvSpace(name="m", model="w", layout="l", dtype="f", block_tokens=1, object_bytes=(SIZE,))
    for most in (3, 50):
        copied: list[int] = []

        def reader(number: int, copied: list[int] = copied) -> BlockReader:
            def read() -> list[Item]:
                copied.append(number)
                return [item(number)]

            return read

        settings = {"address": own_address(), "waiting_bytes": most * SIZE, "silence_s": 10 * WAIT_LIMIT_S}
        with mute() as home:
            pool = open_pool(PoolConfig.from_mapping(settings | {"homes": [address_of(home)]}), space)
            pool.begin_store_blocks([reader(number) for number in range(50)])
            assert copied == list(range(most))
            pool.close()


def of_listed(_: Folder) -> None:
    """What is stored is written down with it, and not without it."""
    test_listed.test_what_two_engines_store_is_listed_under_its_names()
    test_listed.test_without_the_setting_nothing_is_written_down()


def of_lifetime_s(_: Folder) -> None:
    with storage_nodes(1) as (home,), opened(homes=[home.address], lifetime_s=1) as pool:
        assert pool.store([item(1)]) == [True]
        limit_s = time.monotonic() + WAIT_LIMIT_S
        while pool.prefix([item(1).block]):
            assert time.monotonic() < limit_s
            time.sleep(0.05)


EFFECTS: dict[str, Callable[[Folder], None]] = {
    "address": of_address,
    "homes": of_homes,
    "replicas": of_replicas,
    "controller": of_controller,
    "tenant": of_tenant,
    "secret": of_secret,
    "silence_s": of_silence_s,
    "lookup_timeout_s": of_lookup_timeout_s,
    "transfer_timeout_s": of_transfer_timeout_s,
    "retry_s": of_retry_s,
    "report": of_report,
    "waiting_bytes": of_waiting_bytes,
    "listed": of_listed,
    "lifetime_s": of_lifetime_s,
}


@pytest.mark.parametrize("setting", [field.name for field in fields(PoolConfig)])
def test_the_setting_has_its_effect(setting: str, tmp_path: Path) -> None:
    EFFECTS[setting](tmp_path)
