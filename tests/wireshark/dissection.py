"""tshark's view of a capture, field by field."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from hostlib.protocol import wire

DISSECTOR = Path(__file__).parents[2] / "wireshark" / "weir.lua"
PLAIN = (
    "version", "op", "flags", "backlog_ms", "recompute_ms", "sequence", "depth", "chain_blocks", "parent",
    "home_1", "home_2", "home_3", "epoch", "checksum", "tenant", "fragment", "fragments", "value_bytes",
    "content",
)  # fmt: skip


def dissect(capture: Path, *options: str) -> list[dict[str, Any]]:
    """The protocol's fields of each packet that has it, by their names in Wireshark; bytes as hexadecimal."""
    command = ["tshark", "-X", f"lua_script:{DISSECTOR}", "-r", str(capture), "-T", "json"]
    command += ["-J", "weir udp", "-Y", "weir", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    return [packet["_source"]["layers"] for packet in json.loads(done.stdout)]


def fields_of(layers: dict[str, Any]) -> dict[str, Any]:
    """Those of the header as the codec has them."""
    said = layers["weir"]
    fields: dict[str, Any] = {name: int(said[f"weir.{name}"], 0) for name in PLAIN}
    fields["generation"] = int(said.get("weir.generation", said.get("weir.reason")), 0)
    for name in ("key", "tag", "value"):
        fields[name] = bytes.fromhex(said.get(f"weir.{name}", "").replace(":", ""))
    tree = said["weir.flags_tree"]
    fields["flag bits"] = {
        name.removeprefix("weir.flags.") for name, on in tree.items() if on in ("1", "True")
    }
    return fields


def expected(message: wire.Message) -> dict[str, Any]:
    """What the dissector should say of a message."""
    datagram = wire.encode(message)
    names = {
        bit: name.removeprefix("FLAG_").lower()
        for name, bit in vars(wire).items()
        if name.startswith("FLAG_")
    }
    fields: dict[str, Any] = {
        "version": wire.KV_VERSION,
        **dict(zip(("home_1", "home_2", "home_3"), message.homes, strict=True)),
        "checksum": int.from_bytes(datagram[28:32], "big"),
        "value_bytes": len(message.value),
        "value": bytes(message.value),
        "flag bits": {name for bit, name in names.items() if message.flags & bit},
    }
    return fields | {
        name: getattr(message, name) for name in message._fields if name not in ("homes", "value")
    }
