"""Ports across pipelines, on real interfaces."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

from tests.v1model.p4runtime.engines import Artifacts
from v1model.dataplane import DataPlaneError
from v1model.ir import ActionCall
from v1model.p4runtime.engine import EmbeddedEngine

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="interfaces need root")
ETH_P_ALL = 3
TIMEOUT_S = 60.0


@pytest.fixture
def veth() -> Iterator[tuple[str, str]]:
    """(the port's end, the other one), both up."""
    ends = f"weire{os.getpid()}", f"weirp{os.getpid()}"
    subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
    try:
        for end in ends:
            subprocess.run(["ip", "link", "set", end, "up"], check=True)
        yield ends
    finally:
        subprocess.run(["ip", "link", "del", ends[0]], check=False, capture_output=True)


def is_answered(interface: str) -> bool:
    """Whether a frame that the program sends back out of port 1 comes back."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as raw:
        raw.bind((interface, ETH_P_ALL))
        raw.settimeout(TIMEOUT_S)
        frame = b"\0" + bytes(22) + b"there and back"
        raw.send(frame)
        while True:
            data, address = raw.recvfrom(2048)
            if data == frame and address[2] != socket.PACKET_OUTGOING:
                return True


def test_without_a_cpu_port_there_is_no_packet_out(embedded_artifacts: Artifacts) -> None:
    engine = EmbeddedEngine({}, None)
    switch = engine.load(embedded_artifacts.device_config)
    with pytest.raises(DataPlaneError, match="no CPU port"):
        switch.packet_out(bytes(30))
    engine.discard(switch)


@needs_root
def test_ports_go_from_one_switch_to_the_next(embedded_artifacts: Artifacts, veth: tuple[str, str]) -> None:
    engine = EmbeddedEngine({1: veth[0]}, None)
    with pytest.raises(DataPlaneError, match="another switch has this interface"):
        EmbeddedEngine({1: veth[0]}, None)
    first, second = (engine.load(embedded_artifacts.device_config) for _ in range(2))
    for switch in (first, second):
        switch.set_default("FlowIngress.keyless", ActionCall("FlowIngress.forward", (1,)))
        engine.connect(switch)
        assert is_answered(veth[1])
    engine.discard(first)
    assert is_answered(veth[1])
    engine.discard(second)
    engine.close()


@needs_root
def test_an_interface_that_is_gone_does_not_stop_a_new_pipeline(
    embedded_artifacts: Artifacts, veth: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    engine = EmbeddedEngine({1: veth[0]}, None)
    switch = engine.load(embedded_artifacts.device_config)
    subprocess.run(["ip", "link", "del", veth[0]], check=True)
    with caplog.at_level(logging.WARNING):
        engine.connect(switch)
    assert f"port 1 on {veth[0]}: there is no such interface" in caplog.text
    engine.discard(switch)
    engine.close()
