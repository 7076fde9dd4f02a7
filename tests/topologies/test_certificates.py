"""P4Runtime over TLS: a switch talks to who has a certificate of this run, and to nobody else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from controller.config import ClientTls
from controller.errors import ConfigError
from controller.p4runtime.channel import open_channel
from topologies.certificates import SERVER_NAME, Certificates, make_certificates
from topologies.engines import Embedded
from topologies.process import end_process

READY_S, REFUSED_S = 60, 1.5


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def address(made: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a switch that serves over TLS."""
    address = f"unix:{tmp_path_factory.mktemp('switch')}/s1.sock"
    process = subprocess.Popen(Embedded().command(1, [], address, made))
    try:
        assert ready(address, tls(made), READY_S)
        yield address
    finally:
        end_process(process)


def tls(made: Certificates) -> ClientTls:
    return ClientTls(made.authority, made.client_certificate, made.client_key, SERVER_NAME)


def ready(address: str, client: ClientTls | None, timeout_s: float) -> bool:
    with open_channel(address, client) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=timeout_s)
        except grpc.FutureTimeoutError:
            return False
        return answers(channel)


def answers(channel: grpc.Channel) -> bool:
    """Whether the server lets a request through at all, whatever it thinks of it."""
    call = channel.unary_unary("/p4.v1.P4Runtime/Capabilities", bytes, bytes)
    try:
        call(b"", timeout=READY_S)
    except grpc.RpcError as error:
        return error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    return True


def test_who_has_a_certificate_of_the_run_is_served(address: str, made: Certificates) -> None:
    assert ready(address, tls(made), READY_S)


def test_who_speaks_in_clear_is_not(address: str) -> None:
    assert not ready(address, None, REFUSED_S)


def test_who_has_another_run_s_certificate_is_not(address: str, made: Certificates, tmp_path: Path) -> None:
    other = make_certificates(tmp_path)
    stranger = replace(tls(other), authority=made.authority)
    assert not ready(address, stranger, REFUSED_S)


def test_a_controller_does_not_talk_to_another_run_s_switch(address: str, tmp_path: Path) -> None:
    assert not ready(address, tls(make_certificates(tmp_path)), REFUSED_S)


def test_keys_are_ours_alone_and_the_authority_s_is_gone(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    for key in (made.client_key, made.server_key):
        assert key.stat().st_mode & 0o077 == 0
    assert not (tmp_path / "ca.key").exists()


def test_a_file_that_is_missing_is_named(made: Certificates, tmp_path: Path) -> None:
    missing = replace(tls(made), key=tmp_path / "none.key")
    with pytest.raises(ConfigError, match=r"none\.key"):
        open_channel("unix:/nowhere", missing)
