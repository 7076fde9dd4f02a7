"""Captures become pcapng with the names of their interfaces, to the nanosecond."""

from pathlib import Path

from scapy.layers.l2 import Ether
from scapy.utils import RawPcapNgReader, RawPcapWriter

from emulator.pcapng import write_pcapng


def capture(path: Path, packets: list[bytes], link_type: int) -> Path:
    with RawPcapWriter(str(path), linktype=link_type, nano=True) as out:
        out.write_header(None)
        for number, packet in enumerate(packets):
            out.write_packet(packet, sec=1_795_000_000, usec=number + 1, wirelen=len(packet) + 5)
    return path


def test_a_capture_of_one_interface(tmp_path: Path) -> None:
    frames = [bytes(Ether() / b"abc"), bytes(Ether() / b"abcdef")]
    written = tmp_path / "deeper" / "out.pcapng"
    assert write_pcapng(written, capture(tmp_path / "in.pcap", frames, 1), "s1-eth1 to node1") == 2
    with RawPcapNgReader(str(written)) as packets:
        read = list(packets)
    assert [data for data, _ in read] == frames
    about = read[1][1]
    assert (about.ifname, about.wirelen, about.tsresol) == (b"s1-eth1 to node1", len(frames[1]) + 5, 10**9)
    assert (about.tshigh << 32) + about.tslow == 1_795_000_000 * 10**9 + 2


def test_a_capture_of_all_ports_names_each_of_them(tmp_path: Path) -> None:
    frames = [bytes(4) + number.to_bytes(4, "big") + bytes(16) for number in (3, 7, 3)]
    written = tmp_path / "out.pcapng"
    write_pcapng(written, capture(tmp_path / "in.pcap", frames, 276), {3: "s1-eth1", 7: "s1-eth2"})
    with RawPcapNgReader(str(written)) as packets:
        assert [about.ifname for _, about in packets] == [b"s1-eth1", b"s1-eth2", b"s1-eth1"]
