"""The same wire format as a Scapy layer, for tests and captures; `hostlib.wire` is what hosts run.

from hostlib.scapy_layer import KV
packet = Ether() / IP(dst=home) / UDP() / KV(op="GET", key=key, fragments=32)
packet.show()
"""

from __future__ import annotations

import struct
from typing import ClassVar

from scapy.fields import (
    AnyField,
    ByteEnumField,
    ByteField,
    FlagsField,
    IntField,
    ShortField,
    StrFixedLenField,
    XIntField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from hostlib import wire

OPS = {value: name.removeprefix("OP_") for name, value in vars(wire).items() if name.startswith("OP_")}
FLAGS = {value: name.removeprefix("FLAG_") for name, value in vars(wire).items() if name.startswith("FLAG_")}
_VALUE_OPS = (wire.OP_VALUE, wire.OP_PUT)


class KV(Packet):  # type: ignore[misc]  # Scapy ships no types
    """`kv_t`, with the value as payload.

    `fragment` is called `frag` here and `parent` `parent_key`: Scapy's packets have attributes of
    the other names. Unset,
    `value_bytes` is the payload's length without the padding, and `checksum` is computed.
    """

    name = "KV"
    fields_desc: ClassVar[list[AnyField]] = [
        ByteField("version", wire.KV_VERSION),
        ByteEnumField("op", wire.OP_GET, OPS),
        FlagsField("flags", 0, 16, [FLAGS.get(1 << bit, f"bit{bit}") for bit in range(16)]),
        StrFixedLenField("key", bytes(wire.KEY_BYTES), length=wire.KEY_BYTES),
        ShortField("frag", 0),
        ShortField("fragments", 1),
        IntField("generation", 0),
        IntField("sequence", 0),
        ShortField("depth", 0),
        ShortField("chain_blocks", 0),
        XIntField("parent_key", 0),
        ShortField("value_bytes", None),
        ShortField("hint_ms", 0),
        XIntField("checksum", None),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Pad the value and fill in what was left unset."""
        carries_value = self.op in _VALUE_OPS
        value = pay.ljust(wire.VALUE_BYTES, b"\0") if carries_value else pay
        value_bytes = self.value_bytes
        if value_bytes is None:
            value_bytes = len(pay) if carries_value else 0
        checksum = self.checksum
        if checksum is None:
            place = (self.key, self.frag, self.fragments, value_bytes)
            checksum = wire.checksum(*place, value) if carries_value else 0
        header = pkt[:40] + struct.pack(">HHI", value_bytes, self.hint_ms, checksum)
        return header + value


bind_layers(UDP, KV, dport=wire.KV_PORT, sport=wire.KV_PORT)
