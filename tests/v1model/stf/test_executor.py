"""Statements on a real switch: what is fulfilled, and what is said when it is not."""

from pathlib import Path

import pytest

from v1model.stf.executor import Executor
from v1model.stf.parser import parse
from v1model.stf.statements import StfError
from v1model.stf.target import EmbeddedTarget

ECHO = Path(__file__).with_name("echo.p4")


def run(text: str) -> None:
    with EmbeddedTarget(ECHO) as target:
        Executor(target).run(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "packet 1 0102\nexpect 2 0102$",
        "packet 1 0102\nexpect 2 0102 $\nexpect 2\npacket 1 ff",
        "expect 2 01\npacket 1 0102",  # longer packets match; expectations may come first
        "expect 2 *1*2\npacket 1 0102",
        "packet 1 0102",  # port 2 is never named: what goes out there does not count
        "add bytes value:0x01 set(value:7)\npacket 1 01\nexpect 2 07",
        "add bytes 1 value:0x0* set(value:7)\nadd bytes 2 value:0x01 set(value:8)\npacket 1 01\nexpect 2 08",
        "add bytes value:0x01 set(value:7)\nremove all\npacket 1 01\nexpect 2 01",
        "setdefault bytes set(value:9)\npacket 1 01\nexpect 2 09",
        "packet 1 01\npacket 1 0102\ncheck_counter seen(1) packets == 2\ncheck_counter seen(1) bytes <= 3",
        "register_write cells 1 0xaa\npacket 1 ce\nexpect 2 aa",
        "register_write cells 1 0xaa\nregister_reset cells\npacket 1 ce\nexpect 2 00",
        "counter_write seen 1 5 50\npacket 1 01\ncheck_counter seen(1) packets == 6",
        "add bytes value:1 set(value:7) = A\npacket 1 01\npacket 1 02\ncheck_counter hits($A) packets == 1",
        "wait\nregister_read cells 0\ncounter_read seen 0",
    ],
)
def test_fulfilled(text: str) -> None:
    run(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("expect 2 03\npacket 1 01", r"line 1: port 2, packet 1: differs at hex digit 1"),
        ("expect 2 01$\npacket 1 0102", r"line 1: port 2, packet 1: 4 hex digits, expected 2: 0102"),
        ("expect 2 0102\npacket 1 01", r"2 hex digits, expected 4"),
        ("packet 1 01\nexpect 2 01\nexpect 2 02", r"line 3: port 2: 1 of 2 packets came out"),
        ("packet 1 01\npacket 1 02\nexpect 2 01", r"port 2: 1 packets expected, 2 came out: 02"),
        ("packet 1 01\nno_packet", r"port 2: 0 packets expected, 1 came out"),
        ("add words a:1 set(value:1)", r"line 1: no table words; there are: EchoIngress\.bytes"),
        ("add bytes b:1 set(value:1)", r"no key b; there are: hdr\.byte\.value"),
        ("add bytes value:1 get(value:1)", r"no action get"),
        ("add bytes value:1 set(number:1)", r"arguments of EchoIngress\.set: value"),
        ("add bytes value:1 set(value:0x100)", r"value:0x100 does not fit 8 bits"),
        ("add bytes value:1 NoAction()\nadd bytes value:1 NoAction()", r"line 2: .*exists"),
        ("check_counter seen(1) packets == 2", r"seen\(1\) has 0 packets, expected == 2"),
        ("check_counter seen(4) packets == 2", r"line 1: .*4"),
        ("check_counter hits($B) packets == 2", r"line 1: no entry has the label B"),
        ("register_write nothing 1 2", r"no register nothing"),
        ("register_write cells 1", r"takes other arguments: register_write REGISTER INDEX VALUE"),
        ("mc_node_associate 1 0", r"no multicast group 1"),
        ("mc_mgrp_create 1\nmc_node_associate 1 0", r"no multicast node 0"),
    ],
)
def test_not_fulfilled(text: str, reason: str) -> None:
    with pytest.raises(StfError, match=reason):
        run(text)
