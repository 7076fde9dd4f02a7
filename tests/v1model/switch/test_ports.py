"""Ports on real interfaces (veth pairs)."""

from __future__ import annotations

import itertools
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from v1model.backend import Tracing
from v1model.binding.ports import PortStatistics
from v1model.compile import compile_p4
from v1model.dataplane import DataPlaneError, Group, Member, Replica, TableEntry
from v1model.ir import ActionCall, KeyMatch
from v1model.switch import Switch
from v1model.trace.events import TraceEvent, TraceFilter
from v1model.trace.formats import as_text

Make = Callable[..., Switch]
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network interfaces need root"),
]
PACKET_AUXDATA, SOL_PACKET, PACKET_IGNORE_OUTGOING = 8, 263, 23
DEADLINE_S = 60
PROMPT_S = 20
"""It takes milliseconds on an idle machine; waiting for a time to pass would take longer than this."""
numbers = itertools.count()
FORWARD = {"ingress": "std.egress_spec = std.ingress_port ^ 1;"}
FRAME = bytes(range(12)) + b"\x88\xb5" + bytes(50)


class Peer:
    """The far end of a port: sends and receives frames."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.open()

    def open(self) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind((self.name, 0))

    def send(self, frame: bytes) -> None:
        self.socket.send(frame)

    def receive(self) -> bytes:
        ready, _, _ = select.select([self.socket], [], [], DEADLINE_S)
        assert ready, f"nothing arrived at {self.name}"
        return self.socket.recv(65536)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def pair() -> Iterator[Callable[[], tuple[str, Peer]]]:
    """pair(): the name of a new interface for the switch, and its peer."""
    peers: list[Peer] = []
    names: list[str] = []

    def new_pair() -> tuple[str, Peer]:
        name = f"wt{os.getpid() % 100000}a{next(numbers)}"
        ip("link", "add", name, "mtu", "9000", "type", "veth", "peer", "name", f"{name}p", "mtu", "9000")
        names.append(name)
        for end in (name, f"{name}p"):
            subprocess.run(["sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1"], check=True)
            ip("link", "set", end, "up")
        peers.append(Peer(f"{name}p"))
        return name, peers[-1]

    yield new_pair
    for peer in peers:
        peer.socket.close()
    for name in names:
        subprocess.run(["ip", "link", "del", name], check=False, capture_output=True)


def eventually(condition: Callable[[], object]) -> None:
    until = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.005)


def ports(switch: Switch, port: int) -> PortStatistics:
    return switch.statistics()["ports"][port]


def test_queues_pace_what_leaves_by_an_interface(make: Make, pair: Callable[[], tuple[str, Peer]]) -> None:
    """In the machine's time: no faster than the rate, and nothing is left behind."""
    switch = make(parser="state start { transition accept; }", **FORWARD)
    (one, left), (two, right) = pair(), pair()
    switch.attach(2, one)
    switch.attach(3, two)
    switch.limit_queues({"packets_per_s": 200}, 3)
    switch.start()
    for number in range(20):
        left.send(FRAME + bytes((number,)))
    assert right.receive()[-1] == 0
    begun = time.monotonic()
    assert [right.receive()[-1] for _ in range(19)] == list(range(1, 20))
    assert time.monotonic() - begun > 18 / 200
    eventually(lambda: switch.queue_state(3, 0).sent == 20)
    switch.limit_queues({"packets_per_s": 0}, 3)
    left.send(FRAME)
    assert right.receive() == FRAME


def test_frames_pass_both_ways_and_are_counted(make: Make, pair: Callable[[], tuple[str, Peer]]) -> None:
    switch = make(parser="state start { transition accept; }", **FORWARD)
    (one, left), (two, right) = pair(), pair()
    switch.attach(2, one)
    switch.attach(3, two)
    switch.start()
    left.send(FRAME)
    assert right.receive() == FRAME
    right.send(FRAME + b"back")
    assert left.receive() == FRAME + b"back"
    eventually(lambda: ports(switch, 2)["sent_bytes"] == 68)  # counted when the kernel has taken it
    assert ports(switch, 2)["received_packets"] == 1
    assert ports(switch, 3)["interface"] == two
    switch.stop()
    switch.start()
    left.send(FRAME)
    assert right.receive() == FRAME


def test_vlan_tags_survive(make: Make, pair: Callable[[], tuple[str, Peer]]) -> None:
    switch = make(parser="state start { transition accept; }", egress="hdr.t.setValid();", **FORWARD)
    (one, left), (two, right) = pair(), pair()
    switch.attach(0, one)
    switch.attach(1, two)
    switch.start()
    tagged = FRAME[:12] + b"\x81\x00\x20\x05" + FRAME[12:]
    left.send(tagged)
    right.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    assert len(right.receive()) == len(tagged) + 1
    assert ports(switch, 0)["received_bytes"] == len(tagged)


def test_multicast_and_packet_out_while_forwarding(make: Make, pair: Callable[[], tuple[str, Peer]]) -> None:
    switch = make(parser="state start { transition accept; }", ingress="std.mcast_grp = 1;")
    peers = []
    for port in range(4):
        name, peer = pair()
        switch.attach(port, name)
        peers.append(peer)
    switch.set_multicast_group(1, [Replica(port) for port in range(4)])
    switch.start()
    switch.packet_out(FRAME)
    assert [peer.receive() for peer in peers] == [FRAME] * 4
    peers[2].send(FRAME[::-1])
    assert [peer.receive() for peer in peers] == [FRAME[::-1]] * 4
    assert switch.take_outputs() == []


def test_frames_of_all_lengths_keep_their_order(make: Make, pair: Callable[[], tuple[str, Peer]]) -> None:
    """Those longer than a slot of the receive ring take another way."""
    switch = make(parser="state start { transition accept; }", **FORWARD)
    (one, left), (two, right) = pair(), pair()
    switch.attach(0, one)
    switch.attach(1, two)
    switch.start()
    frames = [
        FRAME + bytes([number]) * length for number, length in enumerate((0, 8000, 10, 1900, 2048, 5000, 1))
    ]
    for frame in frames:
        left.send(frame)
    assert [right.receive() for _ in frames] == frames
    assert ports(switch, 0)["received_bytes"] == sum(map(len, frames))


def test_jumbo_frames_keep_their_order_as_the_ring_goes_round(
    make: Make, pair: Callable[[], tuple[str, Peer]]
) -> None:
    """A slot has room for a frame of the interface's MTU; these fill the ring several times."""
    switch = make(parser="state start { transition accept; }", **FORWARD)
    (one, left), (two, right) = pair(), pair()
    for interface in (one, two):
        ip("link", "set", interface, "mtu", "9000")
        ip("link", "set", f"{interface}p", "mtu", "9000")
    switch.attach(0, one)
    switch.attach(1, two)
    switch.start()
    lengths = (9000, 0, 8314, 1500, 60)
    for number in range(1500):
        sent = FRAME[:14] + number.to_bytes(4, "big") + bytes(lengths[number % 5])[4:]
        left.send(sent)
        right.socket.settimeout(DEADLINE_S)
        assert right.socket.recv(10000) == sent, number
    assert ports(switch, 0)["received_packets"] == 1500


def test_frames_pass_to_the_largest_mtu(make: Make, pair: Callable[[], tuple[str, Peer]]) -> None:
    """65,535 bytes behind the Ethernet header, and a VLAN tag that counts for no MTU."""
    switch = make(parser="state start { transition accept; }", **FORWARD)
    (one, left), (two, right) = pair(), pair()
    for interface in (one, two):
        ip("link", "set", interface, "mtu", "65535")
        ip("link", "set", f"{interface}p", "mtu", "65535")
    switch.attach(0, one)
    switch.attach(1, two)
    switch.start()
    longest = FRAME[:14] + bytes(65535)
    for frame in (longest, FRAME + bytes(20000), FRAME[:12] + b"\x81\x00\x00\x05" + longest[12:]):
        left.send(frame)
        right.socket.settimeout(DEADLINE_S)
        assert len(right.socket.recv(70000)) >= len(frame) - 4  # the tag comes beside the frame
    assert switch.statistics()["drops"]["oversize"] == 0


def test_frames_that_do_not_fit_are_dropped(make: Make, pair: Callable[[], tuple[str, Peer]]) -> None:
    switch = make(parser="state start { transition accept; }", **FORWARD)
    small = Switch(switch.compiled, max_frame_bytes=1000)
    (one, left), (two, right) = pair(), pair()
    with small:
        small.attach(0, one)
        small.attach(1, two)
        small.start()
        left.send(FRAME + bytes(1000))
        left.send(FRAME)
        assert right.receive() == FRAME
        assert ports(small, 0)["oversize_drops"] == 1


def test_frames_beyond_the_mtu_are_counted_and_traced_as_dropped(
    make: Make, pair: Callable[[], tuple[str, Peer]]
) -> None:
    """A frame that could not leave is not traced as sent, nor is one that could not come in lost silently."""
    switch = make(parser="state start { transition accept; }", **FORWARD)
    traced = compile_p4(Path(switch.compiled.program.name), tracing=Tracing.STEPS)
    (one, left), (two, right) = pair(), pair()
    ip("link", "set", two, "mtu", "1400")
    events: list[TraceEvent] = []
    with Switch(traced, max_frame_bytes=4000) as small:
        small.trace(TraceFilter(), events.append)
        small.attach(0, one)
        small.attach(1, two)
        small.start()
        for length in (4000, 2000, 10):
            left.send(FRAME + bytes(length))
        assert right.receive() == FRAME + bytes(10)
        eventually(lambda: small.statistics()["drops"]["beyond_mtu"])  # counted once the burst is over
        statistics = small.statistics()
        eventually(lambda: small.wait_events(0) or any(event.kind == "sent" for event in events))
    assert statistics["ports"][0]["oversize_drops"] == statistics["drops"]["oversize"] == 1
    assert statistics["ports"][1]["beyond_mtu_drops"] == statistics["drops"]["beyond_mtu"] == 1
    ends = [as_text(event).split("  ")[-1] for event in events if event.kind in ("sent", "dropped")]
    assert ends[:2] == ["dropped: oversize (port 0)", "dropped: beyond_mtu (port 1)"]
    assert [event.kind for event in events if event.kind == "sent"] == ["sent"]


def test_an_interface_that_vanishes_takes_only_its_port_down(
    make: Make, pair: Callable[[], tuple[str, Peer]], caplog: pytest.LogCaptureFixture
) -> None:
    switch = make(parser="state start { transition accept; }", **FORWARD)
    (one, left), (two, _), (three, up), (four, down) = (pair() for _ in range(4))
    for port, name in enumerate((one, two, three, four)):
        switch.attach(port, name)
    switch.start()
    ip("link", "del", two)
    eventually(lambda: ports(switch, 1)["error"] == "No such device")
    left.send(FRAME)
    eventually(lambda: switch.statistics()["drops"]["no_port"] == 1)
    up.send(FRAME)
    assert down.receive() == FRAME
    switch.wait_events(0)
    assert any("port 1" in message for message in caplog.messages)


def test_an_interface_that_went_down_before_it_vanishes_is_given_up(
    make: Make, pair: Callable[[], tuple[str, Peer]], caplog: pytest.LogCaptureFixture
) -> None:
    """The kernel says nothing the second time; and an interface that is deleted goes down first."""
    switch = make(parser="state start { transition accept; }", **FORWARD)
    (one, left), (two, _) = pair(), pair()
    switch.attach(0, one)
    switch.attach(1, two)
    switch.start()
    ip("link", "set", two, "down")
    eventually(lambda: ports(switch, 1)["error"] == "Network is down")
    ip("link", "del", two)
    eventually(lambda: ports(switch, 1)["error"] == "No such device")
    left.send(FRAME)
    eventually(lambda: switch.statistics()["drops"]["no_port"] == 1)
    switch.wait_events(0)
    assert [message for message in caplog.messages if "No such device" in message]


def test_an_interface_whose_name_another_one_took_is_given_up(
    make: Make, pair: Callable[[], tuple[str, Peer]]
) -> None:
    switch = make(parser="state start { transition accept; }", **FORWARD)
    (one, left), (two, _) = pair(), pair()
    switch.attach(0, one)
    switch.attach(1, two)
    switch.start()
    ip("link", "set", two, "down")
    eventually(lambda: ports(switch, 1)["error"] == "Network is down")
    time.sleep(0.3)  # it looks less often the longer it waits, and so does not see the moment between
    successor = f"link del {two}\nlink add {two} up mtu 9000 type veth peer name {two}p\nlink set {two}p up\n"
    subprocess.run(["ip", "-batch", "-"], input=successor.encode(), check=True)
    eventually(lambda: ports(switch, 1)["error"] == "No such device")
    switch.detach(1)
    switch.attach(1, two)
    right = Peer(f"{two}p")
    eventually(lambda: _arrives(left, right))
    right.socket.close()


def test_an_interface_that_goes_down_comes_back(make: Make, pair: Callable[[], tuple[str, Peer]]) -> None:
    switch = make(parser="state start { transition accept; }", **FORWARD)
    (one, left), (two, right) = pair(), pair()
    switch.attach(0, one)
    switch.attach(1, two)
    switch.start()
    ip("link", "set", one, "down")
    eventually(lambda: ports(switch, 0)["error"])
    assert ports(switch, 0)["error"] == "Network is down"
    ip("link", "set", one, "up")
    left.socket.close()
    left.open()
    eventually(lambda: _arrives(left, right))


def _arrives(left: Peer, right: Peer) -> bool:
    left.send(FRAME)
    return bool(select.select([right.socket], [], [], 0.05)[0])


def test_a_member_whose_watched_link_is_down_is_not_chosen(
    make: Make, pair: Callable[[], tuple[str, Peer]]
) -> None:
    switch = make(
        parser="state start { packet.extract(hdr.h); transition accept; }",
        ingress_declarations="""
        action_selector(HashAlgorithm.crc16, 16, 16) sel;
        action to(bit<9> port) { std.egress_spec = port; }
        table t {
            key = { std.ingress_port: exact; hdr.h.d: selector; }
            actions = { to; NoAction; }
            implementation = sel;
        }""",
        ingress="t.apply();",
    )
    names = []
    for port in (1, 2):
        name, _ = pair()
        names.append(name)
        switch.attach(port, name)
        switch.insert_member("MyIngress.sel", Member(port, ActionCall("MyIngress.to", (port + 100,))))
    switch.insert_group("MyIngress.sel", Group(1, ((1, 1), (2, 1)), watched=((1, 1), (2, 2))))
    switch.insert(TableEntry("MyIngress.t", (KeyMatch(5),), None, group=1))

    def chosen() -> set[int]:
        switch.wait_events(0)
        return {
            output.port for d in range(64) for output in switch.inject(5, bytes(4) + d.to_bytes(4, "big"))
        }

    assert chosen() == {101, 102}
    ip("link", "set", f"{names[0]}p", "down")  # the far end: no carrier
    eventually(lambda: chosen() == {102})
    ip("link", "set", names[1], "down")
    eventually(lambda: chosen() == {0})
    ip("link", "set", f"{names[0]}p", "up")
    eventually(lambda: chosen() == {101})


def test_wrong_interfaces_are_refused(make: Make, pair: Callable[[], tuple[str, Peer]]) -> None:
    switch = make()
    name, _ = pair()
    switch.attach(1, name)
    for port, interface, reason in (
        (2, "no-such-if", "no such interface"),
        (2, "a-name-that-is-too-long", "15 characters"),
        (1, name, "already"),
        (511, name, "can't be an interface"),
        (510, name, "can't be an interface"),
    ):
        with pytest.raises(DataPlaneError, match=reason):
            switch.attach(port, interface)
    with pytest.raises(DataPlaneError, match="another switch"):
        make().attach(1, name)
    switch.detach(1)
    make().attach(2, name)


def test_the_control_plane_is_not_starved_by_packets(
    make: Make, pair: Callable[[], tuple[str, Peer]]
) -> None:
    switch = make(
        parser="state start { transition accept; }",
        ingress_declarations="""
        action send(bit<9> port) { std.egress_spec = port; }
        table t {
            key = { std.ingress_port: exact; std.packet_length: exact; }
            actions = { send; NoAction; }
        }""",
        ingress="t.apply();",
    )
    (one, left), (two, _) = pair(), pair()
    switch.attach(0, one)
    switch.attach(1, two)
    switch.start()
    done = threading.Event()

    def flood() -> None:
        while not done.is_set():
            left.send(FRAME)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        entry = TableEntry(
            "MyIngress.t", (KeyMatch(0), KeyMatch(len(FRAME))), ActionCall("MyIngress.send", (1,))
        )
        started = time.monotonic()
        for _ in range(500):
            switch.insert(entry)
            switch.delete(entry)
        assert time.monotonic() - started < DEADLINE_S
    finally:
        done.set()
        thread.join()
    assert ports(switch, 0)["received_packets"] > 0


def test_stop_is_quick_and_close_is_final(make: Make, pair: Callable[[], tuple[str, Peer]]) -> None:
    switch = make(**FORWARD)
    switch.attach(0, pair()[0])
    switch.start()
    started = time.monotonic()
    switch.close()
    assert time.monotonic() - started < PROMPT_S
    switch.close()
