"""Engines: command lines, and what is said where one is missing."""

import pytest

from topologies.engines import CPU_PORT, Embedded, make_engine
from topologies.errors import EngineError


def test_an_engine_takes_the_command_line_of_simple_switch_grpc() -> None:
    command = Embedded().command(7, [(1, "s1-eth1"), (2, "s1-eth2")], "unix:/run/s1.sock")
    own, *arguments = command[command.index("switch") + 1 :]
    assert own == "--log-json"
    assert arguments == [
        "--no-p4", "--device-id", "7", "-i", "1@s1-eth1", "-i", "2@s1-eth2",
        "--", "--grpc-server-addr", "unix:/run/s1.sock", "--cpu-port", str(CPU_PORT),
    ]  # fmt: skip


def test_an_unknown_engine_is_answered_with_those_that_exist() -> None:
    with pytest.raises(EngineError, match="no engine 'ovs': choose one of embedded, bmv2"):
        make_engine("ovs")


def test_a_missing_bmv2_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(EngineError, match=r"not on PATH: p4c-bm2-ss, simple_switch_grpc\. Install p4c"):
        make_engine("bmv2")
