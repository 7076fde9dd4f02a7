"""The `p4_device_config` of the embedded switch: what `python -m v1model compile` writes.

A JSON object: the preprocessed P4 source, with line markers, under a format name. The switch compiles
it when it is set (and keeps what it compiled), so a config is small, portable between machines and
never carries machine code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from v1model.dataplane import DataPlaneError

FORMAT = "weir-v1model/1"
MAX_SOURCE_BYTES = 4 << 20


@dataclass(frozen=True)
class DeviceConfig:
    """`name` is the program's path as the compiler saw it, `source` its preprocessed text."""

    name: str
    source: str

    def encode(self) -> bytes:
        content = {"format": FORMAT, "name": self.name, "source": self.source}
        return (json.dumps(content, indent=1) + "\n").encode()

    @classmethod
    def decode(cls, data: bytes) -> DeviceConfig:
        """INVALID_ARGUMENT, with what to do, for anything else."""
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
        if "__meta__" in content or "pipelines" in content:
            raise _invalid("p4_device_config is p4c's JSON for BMv2, which the embedded switch does not read")
        name, source = content.get("name"), content.get("source")
        if content.get("format") != FORMAT or not isinstance(name, str) or not isinstance(source, str):
            raise _invalid(f"p4_device_config is not of the format {FORMAT}")
        if any("\ud800" <= character <= "\udfff" for character in name + source):
            raise _invalid("p4_device_config has characters that are not Unicode's")
        return cls(name, source)


def _invalid(reason: str) -> DataPlaneError:
    return DataPlaneError(
        "INVALID_ARGUMENT", f"{reason}; make one with: python -m v1model compile PROGRAM.p4 --config FILE"
    )
