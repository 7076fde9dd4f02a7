"""How interfaces send: what is asked of tc, and in which order frames leave. The latter needs root."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hostlib.protocol import wire
from hostlib.protocol.wire import (
    FRAME_HEADER_BYTES,
    HEADER_FRAME_BYTES,
    KV_HEADER_BYTES,
    OP_GET,
    OP_NOT_FOUND,
    OP_PUT,
    OP_PUT_ACK,
    OP_VALUE,
    VALUE_FRAME_BYTES,
)
from tests.topologies.traffic import BATCH, message
from topologies import shaping
from topologies.engines import make_engine
from topologies.errors import TopologyError
from topologies.network import Network
from topologies.queues import Queues
from topologies.registry import make_topology
from topologies.shaping import Shape, burst_bytes, require

RATE_BIT_S = 100_000.0
"""A frame with a value takes a twentieth of a second."""
ROOT = Path(__file__).parents[2]
needs_root = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


def test_what_goes_first_are_the_hosts_messages_without_a_value() -> None:
    ops = [op for name, op in vars(wire).items() if name.startswith("OP_") and op < wire.OP_RECLAIM]
    assert {op for op in ops if len(message(op)) == KV_HEADER_BYTES} == set(shaping.FIRST_OPS)
    assert wire.KV_PORT == shaping.KV_PORT
    assert message(OP_PUT)[shaping.OP_AT - (FRAME_HEADER_BYTES - 14)] == OP_PUT


def test_one_queue_is_one_class_of_the_links_rate() -> None:
    commands = list(Shape(1e7).commands("s1-eth1"))
    assert [command.split()[1:3] for command in commands] == [["qdisc", "add"], ["class", "add"]]
    assert "rate 10000000bit" in commands[1]


def test_what_is_not_the_protocols_waits_with_the_blocks() -> None:
    commands = list(Shape(1e7, requests_first=True).commands("s1-eth1"))
    first, last = (command for command in commands if " parent 5:1 " in command)
    assert ("classid 5:10 htb" in first, "prio 0" in first) == (True, True)
    assert ("classid 5:11 htb" in last, "prio 1" in last) == (True, True)
    assert commands[0].endswith("htb default 11")
    filters = [command for command in commands if " filter " in command]
    assert len(filters) == len(shaping.FIRST_OPS)
    assert all(f"match ip dport {wire.KV_PORT} 0xffff" in one and "flowid 5:10" in one for one in filters)


def test_each_of_two_queues_has_the_delay_and_the_bound() -> None:
    commands = list(Shape(1e7, delay_ms=2.5, queue_packets=7, requests_first=True).commands("s1-eth1"))
    assert commands[-4:] == [
        "tc qdisc add dev s1-eth1 parent 5:10 handle 10: netem delay 2.5ms",
        "tc qdisc add dev s1-eth1 parent 10:1 pfifo limit 7",
        "tc qdisc add dev s1-eth1 parent 5:11 handle 11: netem delay 2.5ms",
        "tc qdisc add dev s1-eth1 parent 11:1 pfifo limit 7",
    ]


@contextmanager
def slow_network(requests_first: bool, queue_packets: int | None = None) -> Iterator[Network]:
    fabric = make_topology("star", RATE_BIT_S, 2, 1).with_queues(requests_first)
    with Network(fabric, make_engine("embedded"), queue_packets=queue_packets) as network:
        yield network


def traffic(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.topologies.traffic", *arguments]


def send(network: Network, role: str, *numbers: str) -> None:
    """Out of one end of the link between node1 and the switch."""
    name, interface = ("node1", "node1-eth0") if role == "host" else ("s1", "s1-eth1")
    assert network.popen(name, traffic(role, interface, *numbers), cwd=ROOT).wait() == 0


@contextmanager
def arriving(network: Network, role: str) -> Iterator[Iterator[tuple[int, float]]]:
    """(op, seconds) of the frames at the other end of that link."""
    name, interface = ("s1", "s1-eth1") if role == "host" else ("node1", "node1-eth0")
    watcher = network.popen(name, traffic("watch", interface), cwd=ROOT, stdout=subprocess.PIPE)
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == b"ready\n"
    try:
        yield ((int(op), float(at_s)) for op, at_s in map(bytes.split, watcher.stdout))
    finally:
        watcher.kill()
        watcher.wait()


def several(arrivals: Iterator[tuple[int, float]], count: int) -> list[tuple[int, float]]:
    return [next(arrivals) for _ in range(count)]


@pytest.fixture(scope="module")
def one_queue() -> Iterator[Network]:
    with slow_network(requests_first=False) as network:
        yield network


@pytest.fixture(scope="module")
def two_queues() -> Iterator[Network]:
    with slow_network(requests_first=True) as network:
        yield network


class TestNetwork:
    pytestmark = needs_root

    @pytest.mark.parametrize(
        ("role", "block", "requests"),
        [("host", OP_PUT, (OP_GET, OP_PUT_ACK)), ("switch", OP_VALUE, (OP_GET, OP_NOT_FOUND))],
    )
    def test_requests_overtake_the_blocks_that_wait_and_nothing_else_changes(
        self, two_queues: Network, role: str, block: int, requests: tuple[int, int]
    ) -> None:
        sent = [block] * 30 + [requests[0]] * 10 + [requests[1]] * 5
        given = [f"{op},{count}" for op, count in Counter(sent).items()]
        with arriving(two_queues, role) as arrivals:
            send(two_queues, role, *given)
            came = several(arrivals, len(sent))
        ops = [op for op, _ in came]
        assert [op for op in ops if op != block] == sent[30:]
        assert ops[-10:] == [block] * 10
        # The link is no faster than it was, but for bursts and what each queue begins with.
        sent_bytes = 30 * VALUE_FRAME_BYTES + 15 * HEADER_FRAME_BYTES
        at_once = burst_bytes(RATE_BIT_S) + 3 * BATCH * VALUE_FRAME_BYTES
        assert (came[-1][1] - came[0][1]) * RATE_BIT_S / 8 > sent_bytes - at_once

    @pytest.mark.parametrize("role", ["host", "switch"])
    def test_without_it_requests_wait_for_their_turn(self, one_queue: Network, role: str) -> None:
        with arriving(one_queue, role) as arrivals:
            send(one_queue, role, f"{OP_PUT},15", f"{OP_GET},5", f"{OP_PUT},5")
            ops = [op for op, _ in several(arrivals, 25)]
        assert ops == [OP_PUT] * 15 + [OP_GET] * 5 + [OP_PUT] * 5

    def test_each_queue_is_bounded_and_drops_are_counted(self) -> None:
        network_of_ten = slow_network(requests_first=True, queue_packets=10)
        with network_of_ten as network, arriving(network, "switch") as arrivals:
            send(network, "switch", f"{OP_VALUE},60", f"{OP_GET},40")
            dropped = network.link_drops()
            came = Counter(op for op, _ in several(arrivals, 100 - dropped))
        assert came[OP_VALUE] < 60
        assert 10 <= came[OP_GET] < 40
        assert came.total() == 100 - dropped

    def test_what_waits_in_both_queues_is_counted(self, two_queues: Network) -> None:
        """The last one of this network: it leaves the queues full."""
        send(two_queues, "switch", f"{OP_VALUE},20", f"{OP_GET},300")
        with Queues({"s1": two_queues.mininet["s1"].pid}) as queues:
            waiting = queues.waiting_bytes()["s1-eth1"]
        assert 20 * VALUE_FRAME_BYTES < waiting < 20 * VALUE_FRAME_BYTES + 300 * HEADER_FRAME_BYTES

    def test_what_the_kernel_lacks_is_refused_in_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        require(0.0, requests_first=True)
        monkeypatch.setattr(shaping, "FIRST_OPS", (300,))  # a filter that tc refuses
        with pytest.raises(
            TopologyError, match=r"HTB and u32 filters, which are not here \(tc: .+\)"
        ) as error:
            require(0.0, requests_first=True)
        assert "\n" not in str(error.value)
