"""Bytes of well-known layers; types, lengths and checksums are filled in."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Value = str | bytes | int


class LayerError(Exception):
    """A layer or field does not exist, or a value does not fit."""


@dataclass(frozen=True)
class Field:
    """Field of `bits` bits. `kind` is the form of its text: number, mac, ipv4, ipv6.

    A `default` of None means that it follows from the layers behind this one.
    """

    name: str
    bits: int
    default: int | None = 0
    kind: str = "number"


@dataclass(frozen=True)
class Layer:
    """Name of a layer and its given fields."""

    name: str
    values: dict[str, Value]


_MAC_A, _MAC_B = 0x02_00_00_00_00_01, 0x02_00_00_00_00_02
_IP_A, _IP_B = 0x0A000001, 0x0A000002
LAYERS: dict[str, tuple[Field, ...]] = {
    "Ether": (Field("dst", 48, _MAC_B, "mac"), Field("src", 48, _MAC_A, "mac"), Field("type", 16, None)),
    "Dot1Q": (Field("prio", 3), Field("dei", 1), Field("vlan", 12, 1), Field("type", 16, None)),
    "ARP": (
        Field("hwtype", 16, 1), Field("ptype", 16, 0x0800), Field("hwlen", 8, 6), Field("plen", 8, 4),
        Field("op", 16, 1), Field("hwsrc", 48, _MAC_A, "mac"), Field("psrc", 32, _IP_A, "ipv4"),
        Field("hwdst", 48, 0, "mac"), Field("pdst", 32, _IP_B, "ipv4"),
    ),
    "IP": (
        Field("version", 4, 4), Field("ihl", 4, 5), Field("tos", 8), Field("len", 16, None),
        Field("id", 16, 1),
        Field("flags", 3), Field("frag", 13), Field("ttl", 8, 64), Field("proto", 8, None),
        Field("chksum", 16, None), Field("src", 32, _IP_A, "ipv4"), Field("dst", 32, _IP_B, "ipv4"),
    ),
    "IPv6": (
        Field("version", 4, 6), Field("tc", 8), Field("fl", 20), Field("plen", 16, None),
        Field("nh", 8, None), Field("hlim", 8, 64), Field("src", 128, 0xFD << 120 | 1, "ipv6"),
        Field("dst", 128, 0xFD << 120 | 2, "ipv6"),
    ),
    "UDP": (
        Field("sport", 16, 53), Field("dport", 16, 53), Field("len", 16, None), Field("chksum", 16, None),
    ),
    "TCP": (
        Field("sport", 16, 20), Field("dport", 16, 80), Field("seq", 32), Field("ack", 32),
        Field("dataofs", 4, 5), Field("reserved", 4), Field("flags", 8, 2), Field("window", 16, 8192),
        Field("chksum", 16, None), Field("urgptr", 16),
    ),
    "ICMP": (
        Field("type", 8, 8), Field("code", 8), Field("chksum", 16, None), Field("id", 16), Field("seq", 16),
    ),
    "Raw": (Field("load", 0, 0, "bytes"),),
}  # fmt: skip
_ETHERTYPES = {"IP": 0x0800, "ARP": 0x0806, "Dot1Q": 0x8100, "IPv6": 0x86DD}
_PROTOCOLS = {"ICMP": 1, "IP": 4, "TCP": 6, "UDP": 17, "IPv6": 41}


def build(parts: Sequence[Layer | bytes]) -> bytes:
    """Return the bytes of nested layers and payloads; raises LayerError."""
    inside, above = b"", ""
    for position in range(len(parts) - 1, -1, -1):
        part = parts[position]
        if isinstance(part, bytes):
            inside, above = part + inside, ""
            continue
        outer = next((other for other in reversed(parts[:position]) if isinstance(other, Layer)), None)
        inside, above = _build_layer(part, above, inside, outer), part.name
    return inside


def _build_layer(layer: Layer, above: str, inside: bytes, outer: Layer | None) -> bytes:
    fields = LAYERS[layer.name]
    if unknown := layer.values.keys() - {field.name for field in fields}:
        names = ", ".join(field.name for field in fields)
        raise LayerError(f"{layer.name} has no {min(unknown)}; it has {names}")
    if layer.name == "Raw":
        load = layer.values.get("load", b"")
        if isinstance(load, int):
            raise LayerError("the load of Raw is a text in quotes")
        return (load.encode() if isinstance(load, str) else load) + inside
    numbers = {field.name: _number(layer, field) for field in fields}
    _fill_in(layer.name, numbers, above, len(inside))
    header = _pack(fields, numbers)
    if "chksum" in numbers and "chksum" not in layer.values:
        numbers["chksum"] = _checksum_of(layer.name, header, inside, outer)
        header = _pack(fields, numbers)
    return header + inside


def _fill_in(name: str, numbers: dict[str, int], above: str, inside_bytes: int) -> None:
    """Fill in fields that follow from the layers behind, which are marked by -1."""
    header_bytes = sum(field.bits for field in LAYERS[name]) // 8
    follows = {
        "type": _ETHERTYPES.get(above, 0x9000),
        "proto": _PROTOCOLS.get(above, 0),
        "nh": _PROTOCOLS.get(above, 59),
        "len": header_bytes + inside_bytes,
        "plen": inside_bytes,
        "chksum": 0,
    }
    for field, value in numbers.items():
        if value < 0:
            numbers[field] = follows[field] & 0xFFFF


def _pack(fields: tuple[Field, ...], numbers: dict[str, int]) -> bytes:
    total = 0
    for field in fields:
        total = total << field.bits | numbers[field.name]
    return total.to_bytes(sum(field.bits for field in fields) // 8, "big")


def _number(layer: Layer, field: Field) -> int:
    if field.name not in layer.values:
        return -1 if field.default is None else field.default
    value = layer.values[field.name]
    try:
        found = value if isinstance(value, int) else _parsed(value, field.kind)
    except ValueError as error:
        raise LayerError(f"{layer.name}.{field.name}: {error}") from None
    if not 0 <= found < 1 << field.bits:
        raise LayerError(f"{layer.name}.{field.name}: {value!r} does not fit {field.bits} bits")
    return found


def _parsed(value: str | bytes, kind: str) -> int:
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    match kind:
        case "mac":
            parts = text.split(":")
            if len(parts) != 6 or any(len(part) > 2 for part in parts):
                raise ValueError(f"{text!r} is no MAC address")
            return int.from_bytes(bytes(int(part, 16) for part in parts), "big")
        case "ipv4":
            return int(ipaddress.IPv4Address(text))
        case "ipv6":
            return int(ipaddress.IPv6Address(text))
    raise ValueError(f"{text!r} is no number")


def _checksum_of(name: str, header: bytes, inside: bytes, outer: Layer | None) -> int:
    if name in ("IP", "ICMP"):
        return _checksum(header if name == "IP" else header + inside)
    if outer is None or outer.name not in ("IP", "IPv6"):
        return 0
    numbers = {field.name: _number(outer, field) for field in LAYERS[outer.name]}
    bits = 32 if outer.name == "IP" else 128
    addresses = (numbers["src"] << bits | numbers["dst"]).to_bytes(bits // 4, "big")
    length = len(header) + len(inside)
    pseudo = addresses + length.to_bytes(4, "big") + _PROTOCOLS[name].to_bytes(4, "big")
    return _checksum(pseudo + header + inside) or 0xFFFF


def _checksum(data: bytes) -> int:
    padded = data + b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
