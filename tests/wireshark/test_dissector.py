"""Wireshark's dissector says of every message what the hosts' codec says."""

from __future__ import annotations

import re
import shutil
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.catalog import make_page
from hostlib.protocol.expected import expectation
from hostlib.protocol.members import Member, Members, State
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.value_size import SIZES
from tests.hostlib.protocol.test_wire import KEY, messages
from tests.wireshark.dissection import DISSECTOR, dissect, expected, fields_of

needs_tshark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tshark") is None, reason="needs Debian's package tshark"),
]


def constants(prefix: str) -> dict[int, str]:
    return {value: name.removeprefix(prefix) for name, value in vars(wire).items() if name.startswith(prefix)}


def table(name: str) -> dict[int, str]:
    (body,) = re.findall(rf"local {name} = {{(.*?)\n}}|local {name} = {{(.*)}}", DISSECTOR.read_text(), re.S)
    return {int(number): word for number, word in re.findall(r'\[(\d+)\] = "(\w+)"', "".join(body))}


def test_its_constants_are_the_protocol_s() -> None:
    text = DISSECTOR.read_text()
    assert f"= {wire.KV_PORT}, {wire.KV_VERSION}, {wire.KV_HEADER_BYTES}, {wire.LIST_BYTES}\n" in text
    (sizes,) = re.findall(r"local SIZES = {(.*)}", text)
    assert tuple(map(int, re.findall(r"\d+", sizes))) == SIZES
    assert table("OPS") == constants("OP_")
    assert table("REASONS") == constants("REFUSED_")
    assert table("STATES") == {int(state): state.name.lower() for state in State}
    flags = {int(bit, 16): name.upper() for bit, name in re.findall(r'{ (0x\d+), "(\w+)" }', text)}
    assert flags == constants("FLAG_")


def capture(path: Path, datagrams: list[bytes]) -> Path:
    frame = Ether() / IP(src="10.0.0.1", dst="10.0.0.9") / UDP(sport=wire.KV_PORT, dport=wire.KV_PORT)
    wrpcap(str(path), [frame / datagram for datagram in datagrams])
    return path


class TestWithTshark:
    pytestmark = needs_tshark

    @settings(max_examples=6)
    @given(st.lists(messages(), min_size=40, max_size=80))
    def test_all_fields_of_all_messages(self, sent: list[wire.Message]) -> None:
        with TemporaryDirectory() as directory:
            found = dissect(capture(Path(directory) / "all.pcap", [wire.encode(one) for one in sent]))
        assert [fields_of(layers) for layers in found] == [expected(message) for message in sent]
        assert not [layers for layers in found if "weir.malformed" in str(layers)]

    def test_every_operation_and_flag_by_itself(self, tmp_path: Path) -> None:
        of_one_fragment = partial(wire.Message, key=KEY, fragment=0, fragments=1)
        sent = [of_one_fragment(op) for op in constants("OP_")]
        sent += [of_one_fragment(wire.OP_GET, flags=flag) for flag in constants("FLAG_")]
        sent += [of_one_fragment(wire.OP_REFUSED, generation=reason) for reason in constants("REFUSED_")]
        found = dissect(capture(tmp_path / "each.pcap", [wire.encode(message) for message in sent]))
        assert [fields_of(layers) for layers in found] == [expected(message) for message in sent]

    def test_what_hosts_drop_is_marked(self, tmp_path: Path) -> None:
        good = wire.encode(wire.Message(wire.OP_GET, KEY, 1, 4))
        bad = [b"", b"\2", good[:-1], good + b"x", b"\3" + good[1:], good[:1] + b"\x63" + good[2:]]
        bad.append(good[:34] + b"\0\4" + good[36:])
        bad.append(good[:38] + b"\0\1" + good[40:])
        found = dissect(capture(tmp_path / "bad.pcap", [good, *bad]))
        marked = ["Hosts drop this message" in str(layers) for layers in found]
        assert marked == [False, *([True] * (len(bad) - 1))]  # a datagram without a byte is not dissected

    def test_lists_of_members_and_pages_of_keys_are_taken_apart(self, tmp_path: Path) -> None:
        members = Members(77, 2, (Member(1, "10.0.0.4", State.UP), Member(5, "10.0.0.5", State.DOWN)))
        page = make_page([Place(3, KEY)], Place(0, bytes(16)), lambda place: (0xABCD, 32))
        sent = [
            wire.Message(wire.OP_MEMBERS, bytes(16), 0, 0, value=members.encode()),
            wire.Message(wire.OP_KEYS, bytes(16), 0, 0, value=page),
        ]
        told = expectation(3, [(BlockRef(KEY, 7, 9, 0xABCD, 50), 32)], 0)
        datagrams = [*(wire.encode(message) for message in sent), *told]
        found = dissect(capture(tmp_path / "lists.pcap", datagrams))
        said = str(found[0])
        for words in (
            "'weir.members.epoch': '77'",
            "'weir.member.address': '10.0.0.5'",
            "'weir.member.state': '2'",
        ):
            assert words in said
        said = str(found[1])
        for words in (
            "'weir.keys.tenant': '3'",
            "'weir.keys.fragments': '32'",
            "'weir.keys.next_tenant': '65535'",
        ):
            assert words in said
        said = str(found[2])
        for words in (
            "'weir.expect.fragments': '32'",
            "'weir.expect.depth': '7'",
            "'weir.expect.recompute_ms': '50'",
        ):
            assert words in said
