"""Which addresses only this machine reaches."""

from __future__ import annotations

import pytest

from v1model.options import DEFAULT_ADDRESS
from v1model.p4runtime.address import is_local


@pytest.mark.parametrize(
    "address",
    [DEFAULT_ADDRESS, "127.0.0.1:0", "127.8.9.10:1", "[::1]:9559", "localhost:9559", "unix:/run/switch.sock"],
)
def test_local(address: str) -> None:
    assert is_local(address)


@pytest.mark.parametrize(
    "address", ["0.0.0.0:9559", "[::]:9559", "10.0.0.1:9559", "switch.example:9559", "[2001:db8::1]:1"]
)
def test_reached_from_elsewhere(address: str) -> None:
    assert not is_local(address)
