"""`--use-files`: packets from pcap files into pcap files."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import pytest

from tests.v1model.test_cli import ANY_PORT, GROWS, run, running_switch, wait_for
from v1model.compile import compile_p4
from v1model.dataplane import DataPlaneError
from v1model.packet_files import PacketFiles
from v1model.switch import Switch
from v1model.trace.pcap import PcapFile, read_pcap

SECOND_NS = 1_000_000_000
# Writes the time that it sees in front of a packet.
STAMPS = """
#include <core.p4>
#include <v1model.p4>
header stamp_t { bit<48> at; }
struct headers_t { stamp_t stamp; }
struct none_t { }
parser P(packet_in p, out headers_t h, inout none_t m, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control C(inout headers_t h, inout none_t m) { apply { } }
control I(inout headers_t h, inout none_t m, inout standard_metadata_t sm) {
    apply {
        h.stamp = { sm.ingress_global_timestamp };
        sm.egress_spec = sm.ingress_port;
    }
}
control E(inout headers_t h, inout none_t m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def write(path: Path, *packets: tuple[int, bytes]) -> None:
    file = PcapFile(path)
    for time_ns, frame in packets:
        file.write(frame, time_ns)
    file.close()


def test_packets_come_from_files_and_go_to_files(tmp_path: Path) -> None:
    """In the order of their times, whichever port they come by; none of it needs an interface or root."""
    program = tmp_path / "grows.p4"
    program.write_text(GROWS.replace("sm.ingress_port;", "3;"))
    write(tmp_path / "a_in.pcap", (SECOND_NS, b"first"), (3 * SECOND_NS, b"third" * 4000))
    write(tmp_path / "b_in.pcap", (2 * SECOND_NS, b"second"))
    ports = [
        word for number, name in enumerate("abc", start=1) for word in ("-i", f"{number}@{tmp_path / name}")
    ]
    with running_switch("--use-files", "0", *ports, program, *ANY_PORT):
        wait_for(lambda: len(readable(tmp_path / "c_out.pcap")) == 3)
    zeros = bytes(256)
    assert read_pcap(tmp_path / "c_out.pcap") == [
        (SECOND_NS, zeros + b"first"),
        (2 * SECOND_NS, zeros + b"second"),
        (3 * SECOND_NS, zeros + b"third" * 4000),
    ]
    assert read_pcap(tmp_path / "a_out.pcap") == []


def test_a_packet_comes_in_by_the_port_of_its_file(tmp_path: Path) -> None:
    program = tmp_path / "grows.p4"
    program.write_text(GROWS)  # sends back by the port that a packet came in by
    ports = {1: str(tmp_path / "a"), 2: str(tmp_path / "b")}
    write(tmp_path / "a_in.pcap", (SECOND_NS, b"to a"))
    write(tmp_path / "b_in.pcap", (SECOND_NS, b"to b"))
    files, stopped = PacketFiles(ports), threading.Event()
    with Switch(compile_p4(program)) as switch:
        taking = threading.Thread(target=files.run, args=(lambda: switch, stopped, 0.0))
        taking.start()
        try:
            wait_for(lambda: all(readable(Path(f"{name}_out.pcap")) for name in ports.values()))
        finally:
            stopped.set()
            taking.join()
            files.close()
    for name in "ab":
        ((_, frame),) = read_pcap(tmp_path / f"{name}_out.pcap")
        assert frame.endswith(f"to {name}".encode())


def test_time_does_not_go_back(tmp_path: Path) -> None:
    """A file that scapy wrote may begin at the time 0, and have its packets in any order."""
    program = tmp_path / "stamps.p4"
    program.write_text(STAMPS)
    name = tmp_path / "a"
    write(tmp_path / "a_in.pcap", (0, b"a"), (5 * SECOND_NS, b"b"), (3 * SECOND_NS, b"c"))
    files, stopped = PacketFiles({1: str(name)}), threading.Event()
    with Switch(compile_p4(program, quick=True)) as switch:
        taking = threading.Thread(target=files.run, args=(lambda: switch, stopped, 0.0))
        taking.start()
        try:
            wait_for(lambda: len(readable(tmp_path / "a_out.pcap")) == 3)
        finally:
            stopped.set()
            taking.join()
            files.close()
        with pytest.raises(DataPlaneError, match="is no time since the switch's start"):
            switch.inject(1, b"", timestamp_us=-1)
    stamps = [int.from_bytes(frame[:6], "big") for _, frame in read_pcap(tmp_path / "a_out.pcap")]
    assert stamps == [0, 5_000_000, 5_000_000]


def readable(path: Path) -> list[tuple[int, bytes]]:
    """What is there of a file that is being written."""
    try:
        return read_pcap(path)
    except ValueError:
        return []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is no pcap file"),
        (bytes.fromhex("0a0d0d0a") + bytes(40), "editcap -F pcap"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101), "link type 101"),
        (struct.pack("<IHHiIIIIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1, 0, 0, 9, 9), "ends within a packet"),
        (
            struct.pack("<IHHiIIIIIIIB", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1, 0, 0, 1, 9, 7),
            "only 1 of a packet's 9",
        ),
    ],
    ids=["empty", "pcapng", "link type", "cut off", "snapped"],
)
def test_files_that_are_not_understood_are_said(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "a_in.pcap").write_bytes(data)
    done = run("switch", "--no-p4", "--use-files", "0", "-i", f"1@{tmp_path / 'a'}")
    assert done.returncode == 1
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("order", "magic", "unit_ns"), [(">", 0xA1B2C3D4, 1000), ("<", 0xA1B23C4D, 1)])
def test_byte_orders_and_nanoseconds(tmp_path: Path, order: str, magic: int, unit_ns: int) -> None:
    header = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    (tmp_path / "x").write_bytes(header + struct.pack(f"{order}IIII", 7, 5, 3, 3) + b"abc")
    assert read_pcap(tmp_path / "x") == [(7 * SECOND_NS + 5 * unit_ns, b"abc")]
