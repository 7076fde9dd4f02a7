"""Drops in the log: each port and reason by name, seldom when they go on."""

from __future__ import annotations

import pytest

from v1model.binding.ports import PortStatistics, Statistics
from v1model.drop_log import DropLog
from v1model.switch import DROP_CAUSES


def counted(beyond_mtu: int = 0, **drops: int) -> Statistics:
    """What a switch with port 3 says after so many drops."""
    port: PortStatistics = {
        "interface": "s1-eth3",
        "received_packets": 9,
        "received_bytes": 900,
        "sent_packets": 9,
        "sent_bytes": 900,
        "oversize_drops": 0,
        "beyond_mtu_drops": beyond_mtu,
        "transmit_drops": 0,
        "kernel_drops": 0,
        "unfinished_checksums": 0,
        "error": "",
    }
    return {"drops": {**dict.fromkeys(DROP_CAUSES, 0), **drops}, "ports": {3: port}, "queues": {}}


def test_a_drop_names_port_count_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    log = DropLog()
    log.report(counted())
    log.report(counted(beyond_mtu=2, no_port=1, ingress=5))
    log.report(counted(beyond_mtu=2, no_port=1, ingress=9))
    assert caplog.messages == [
        "port 3 (s1-eth3): dropped 2 packets: to be sent, but longer than the interface's MTU",
        "dropped 1 packet: for ports that are not attached or gone",
    ]


def test_drops_that_go_on_take_few_lines_and_none_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    log = DropLog(lambda: now_s)
    for second in range(3600):
        now_s = float(second)
        log.report(counted(beyond_mtu=1000 * (second + 1)))
    lines = len(caplog.messages)
    assert lines < 80
    now_s += 60
    log.report(counted(beyond_mtu=3_600_000))
    words = [message.split() for message in caplog.messages]
    assert sum(int(line[line.index("dropped") + 1]) for line in words) == 3_600_000


def test_a_new_program_counts_anew(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    log = DropLog(lambda: now_s)
    log.report(counted(beyond_mtu=5))
    now_s = 100.0
    log.report(counted(beyond_mtu=1))
    assert "dropped 1 packet" in caplog.messages[-1]
