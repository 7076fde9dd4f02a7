"""The same wire format as a Scapy layer, for tests and captures; `hostlib.protocol.wire` is what hosts run.

from hostlib.tools.scapy_layer import KV
packet = Ether() / IP(dst=home) / UDP() / KV(op="GET", key=key, fragments=32)
packet.show()
"""

from __future__ import annotations

import struct
from typing import ClassVar
from zlib import crc32

from scapy.fields import (
    AnyField,
    ByteEnumField,
    ByteField,
    FlagsField,
    IntField,
    ShortField,
    StrFixedLenField,
    XIntField,
    XLongField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from hostlib.protocol import wire

OPS = {value: name.removeprefix("OP_") for name, value in vars(wire).items() if name.startswith("OP_")}
FLAGS = {value: name.removeprefix("FLAG_") for name, value in vars(wire).items() if name.startswith("FLAG_")}
VALUE_OPS = (wire.OP_VALUE, wire.OP_PUT, wire.OP_HELLO, wire.OP_KEYS, wire.OP_EXPECT, wire.OP_MEMBERS)
_CHECKSUM_AT = 28
_CHECKED_FROM = 32
_VALUE_BYTES_AT = 38


class KV(Packet):  # type: ignore[misc]  # Scapy ships no types
    """`kv_t`, with the value as payload.

    `fragment` is called `frag` here and `parent` `parent_key`: Scapy's packets have attributes of the other
    names. Unset, `value_bytes` is the payload's length without the padding, and `checksum` is computed.
    """

    name = "KV"
    fields_desc: ClassVar[list[AnyField]] = [
        ByteField("version", wire.KV_VERSION),
        ByteEnumField("op", wire.OP_GET, OPS),
        FlagsField("flags", 0, 16, [FLAGS.get(1 << bit, f"bit{bit}") for bit in range(16)]),
        ShortField("backlog_ms", 0),
        ShortField("recompute_ms", 0),
        IntField("sequence", 0),
        IntField("generation", 0),
        ShortField("depth", 0),
        ShortField("chain_blocks", 0),
        XIntField("parent_key", 0),
        ByteField("home_1", 0),
        ByteField("home_2", 0),
        ByteField("home_3", 0),
        ByteField("epoch", 0),
        XIntField("checksum", None),
        ShortField("tenant", wire.TENANT_PUBLIC),
        ShortField("frag", 0),
        ShortField("fragments", 1),
        ShortField("value_bytes", None),
        XLongField("content", 0),
        StrFixedLenField("key", bytes(wire.KEY_BYTES), length=wire.KEY_BYTES),
        StrFixedLenField("tag", bytes(wire.TAG_BYTES), length=wire.TAG_BYTES),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Pad the value and fill in what was left unset."""
        header = bytearray(pkt)
        if self.op not in VALUE_OPS:
            return bytes(header) + pay
        if self.value_bytes is None:
            struct.pack_into(">H", header, _VALUE_BYTES_AT, len(pay))
        value = pay.ljust(wire.VALUE_BYTES, b"\0")
        if self.checksum is None:
            struct.pack_into(">I", header, _CHECKSUM_AT, crc32(bytes(header[_CHECKED_FROM:]) + value))
        return bytes(header) + value


bind_layers(UDP, KV, dport=wire.KV_PORT, sport=wire.KV_PORT)
