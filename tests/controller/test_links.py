"""Links that go down and come back, packet by packet: who waits behind them holds up nobody."""

from __future__ import annotations

import select
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from controller.block_id import block_id, key_of
from controller.process import ControllerProcess
from hostlib.protocol import wire
from tests.controller.live import (
    NODE,
    OTHER_NODE,
    STORE,
    TENANT,
    TIMEOUT_S,
    LiveSwitch,
    config,
    host,
    value,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.root

KEY = block_id(TENANT, bytes(range(16)))
RETRY_S = 0.2


@pytest.fixture
def merging(switch: LiveSwitch) -> Iterator[LiveSwitch]:
    """A switch with its program and routes; nothing is admitted."""
    (worker,) = ControllerProcess(config(switch, report_count=0)).workers
    worker.start()
    try:
        wait_until(lambda: worker.connected, "the controller to be ready")
        yield switch
    finally:
        worker.stop()
        worker.join(10)
    assert worker.failure is None


@contextmanager
def down(switch: LiveSwitch, port: int) -> Iterator[None]:
    """The link of a host is down for a while."""
    interface = switch.sockets[port].getsockname()[0]
    subprocess.run(["ip", "link", "set", interface, "down"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "set", interface, "up"], check=True)
        # "Network is down", which the socket keeps for whoever uses it next.
        switch.sockets[port].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def forwarded(switch: LiveSwitch, source: int) -> None:
    """A request sent again and again, as nodes do, passes the switch, whatever has been claimed in it."""
    store = switch.sockets[STORE]
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s:
        switch.ask(KEY, source=source, flags=wire.FLAG_RETRY)
        if select.select([store], [], [], RETRY_S)[0]:
            assert switch.receive(STORE, wire.OP_GET).key == key_of(KEY)
            return
    raise AssertionError("no request passed the switch")


def answered(switch: LiveSwitch, *nodes: int) -> None:
    switch.reply(KEY, 0, to=host(nodes[0]).ipv4)
    for node in nodes:
        assert bytes(switch.receive(node, wire.OP_VALUE).value) == value(KEY, 0)


def test_requests_lost_on_the_stores_link_are_served_when_it_is_back(merging: LiveSwitch) -> None:
    with down(merging, STORE):
        merging.ask(KEY, source=NODE)
        merging.ask(KEY, source=OTHER_NODE)
    forwarded(merging, NODE)
    answered(merging, NODE, OTHER_NODE)


def test_a_waiter_whose_link_is_down_holds_up_nobody_and_is_served_when_it_is_back(
    merging: LiveSwitch,
) -> None:
    forwarded(merging, NODE)
    forwarded(merging, OTHER_NODE)
    with down(merging, OTHER_NODE):
        answered(merging, NODE)
    forwarded(merging, OTHER_NODE)
    answered(merging, OTHER_NODE)
