"""What clients send as `p4_device_config`: ours, as it is or wrapped as for BMv2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from v1model.dataplane import DataPlaneError
from v1model.p4runtime.device_config import DeviceConfig

CONFIG = DeviceConfig("a.p4", "const bit<8> x = 1;" * 20)


def wrapped(data: bytes) -> bytes:
    """A P4DeviceConfig with `reassign` and `device_data`, as p4lang/tutorials make it."""
    length = bytes((len(data) & 0x7F | 0x80, len(data) >> 7))
    return b"\x08\x01\x1a" + length + data


def test_a_wrapped_config_is_unwrapped() -> None:
    assert DeviceConfig.decode(CONFIG.encode()) == CONFIG
    assert 0x80 <= len(CONFIG.encode()) < 0x4000
    assert DeviceConfig.decode(wrapped(CONFIG.encode())) == CONFIG
    assert DeviceConfig.decode(wrapped(CONFIG.encode()) + b"\x12\x01x") == CONFIG


def test_a_wrapped_bmv2_config_is_named() -> None:
    with pytest.raises(DataPlaneError, match="p4c's JSON for BMv2"):
        DeviceConfig.decode(wrapped(b'{"__meta__": {}}' + b" " * 200))


@given(st.binary(max_size=60))
def test_any_other_bytes_are_refused(data: bytes) -> None:
    for given_data in (data, b"\x1a" + data, b"\x08\x01\x1a" + data):
        with pytest.raises(DataPlaneError):
            DeviceConfig.decode(given_data)
