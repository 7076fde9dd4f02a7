"""A host whose interface can't carry its values says so when it starts."""

from __future__ import annotations

import socket

import pytest

from hostlib.protocol.errors import ConfigError
from hostlib.transport import mtu

LOOPBACK_MTU_BYTES = 65_536


def test_an_interface_whose_packets_are_too_short_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mtu, "VALUE_PACKET_BYTES", LOOPBACK_MTU_BYTES + 1)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
        pytest.raises(ConfigError, match=r"^lo \(127\.0\.0\.1\) has an MTU of 65536 bytes; .* need 65537"),
    ):
        mtu.check_mtu(sock, "127.0.0.1")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.3.2.1", "192.0.2.1"])
def test_one_that_carries_them_or_is_not_known_is_taken(address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        mtu.check_mtu(sock, address)
