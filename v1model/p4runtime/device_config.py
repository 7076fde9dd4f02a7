"""`p4_device_config` of the embedded switch, written by `python -m v1model compile`.

It is a JSON object: the preprocessed P4 source, with line markers, under a format name. The switch compiles
it when it is set, and caches the result. So a config is small, portable between machines and never has
machine code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = "weir-v1model/1"
# p4.tmp.P4DeviceConfig on the wire
_VARINT, _LENGTH_DELIMITED, _DEVICE_DATA, _MAX_VARINT_BITS = 0, 2, 3, 63
MAX_SOURCE_BYTES = 4 << 20


@dataclass(frozen=True)
class DeviceConfig:
    """Device config; `name` is the program's path as the compiler saw it, `source` its preprocessed text."""

    name: str
    source: str

    def encode(self, description: Mapping[str, object] | None = None) -> bytes:
        """Return the config's bytes.

        `description` is for tools that read p4c's JSON; the switch ignores it.
        """
        content = {"format": FORMAT, "name": self.name, "source": self.source, **(description or {})}
        return (json.dumps(content, indent=1) + "\n").encode()

    @classmethod
    def decode(cls, data: bytes) -> DeviceConfig:
        """Return the config of `data`; raises INVALID_ARGUMENT, with advice, for anything else."""
        data = _unwrapped(data)
        if not data:
            raise _invalid("p4_device_config is empty")
        if len(data) > MAX_SOURCE_BYTES:
            raise _invalid(f"p4_device_config has {len(data)} bytes, more than {MAX_SOURCE_BYTES}")
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            raise _invalid("p4_device_config is not JSON") from None
        if not isinstance(content, dict):
            raise _invalid("p4_device_config is not a JSON object")
        if "format" not in content and ("__meta__" in content or "pipelines" in content):
            raise _invalid("p4_device_config is p4c's JSON for BMv2, which the embedded switch does not read")
        name, source = content.get("name"), content.get("source")
        if content.get("format") != FORMAT or not isinstance(name, str) or not isinstance(source, str):
            raise _invalid(f"p4_device_config is not of the format {FORMAT}")
        if any("\ud800" <= character <= "\udfff" for character in name + source):
            raise _invalid("p4_device_config has characters that are not Unicode's")
        return cls(name, source)


def _unwrapped(data: bytes) -> bytes:
    """Return the `device_data` of a p4.tmp.P4DeviceConfig; anything else as it is.

    p4lang/tutorials and others wrap a config for BMv2 in that message.
    """
    if not data or data.lstrip()[:1] == b"{":
        return data
    at, found = 0, data
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == _LENGTH_DELIMITED:
            if value > len(data) - at:
                return data
            found = data[at : at + value] if tag >> 3 == _DEVICE_DATA else found
            at += value
        elif tag & 7 != _VARINT:
            return data
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return protobuf's number at `at` and the position after it; an unterminated one ends at the end."""
    value = shift = 0
    while at < len(data) and shift < _MAX_VARINT_BITS:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at
    return value, len(data)


def _invalid(reason: str) -> DataPlaneError:
    return DataPlaneError(
        "INVALID_ARGUMENT", f"{reason}; make one with: python -m v1model compile PROGRAM.p4 --config FILE"
    )
