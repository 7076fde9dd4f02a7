"""Packets as text: hex digits, or Scapy's notation; only layers and constants are evaluated.

Ether(dst="02:00:00:00:00:01") / IP(dst="10.0.0.2", ttl=3) / UDP(dport=7) / "payload" / (b"x" * 20)
"""

from __future__ import annotations

import ast

from v1model.playground.layers import LAYERS, Layer, LayerError, build

MAX_BYTES = 65_550  # a little more than the switch's longest frame
MAX_LAYERS = 32


class PacketTextError(Exception):
    """A text is no packet."""


def packet_bytes(text: str) -> bytes:
    """Return the frame of a text; raises PacketTextError."""
    digits = "".join(text.split()).removeprefix("0x").replace(":", "")
    try:
        frame = bytes.fromhex(digits)
    except ValueError:
        frame = _from_expression(text)
    if len(frame) > MAX_BYTES:
        raise PacketTextError(f"a packet of {len(frame)} bytes; at most {MAX_BYTES} are possible")
    return frame


def _from_expression(text: str) -> bytes:
    try:
        tree = ast.parse(text.strip(), mode="eval")
        parts = _parts(tree.body)
        if len(parts) > MAX_LAYERS:
            raise PacketTextError(f"at most {MAX_LAYERS} layers are possible")
        return build(parts)
    except SyntaxError as error:
        message = f"neither hex digits nor layers: {error.msg} at column {error.offset}"
        raise PacketTextError(message) from None
    except (RecursionError, MemoryError):
        raise PacketTextError("this is nested too deeply") from None
    except LayerError as error:
        raise PacketTextError(str(error)) from None


def _parts(node: ast.expr) -> list[Layer | bytes]:
    """Return the layers and payloads between slashes."""
    parts: list[Layer | bytes] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        parts.append(_part(node.right))
        node = node.left
    parts.append(_part(node))
    return parts[::-1]


def _part(node: ast.expr) -> Layer | bytes:
    if isinstance(node, ast.Call):
        return _layer(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _repeated(node)
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise PacketTextError("between slashes stand layers, as in IP(ttl=3), and payloads in quotes")


def _repeated(node: ast.BinOp) -> bytes:
    part, times = _part(node.left), _constant(node.right)
    if not isinstance(part, bytes) or not isinstance(times, int) or isinstance(times, bool):
        raise PacketTextError("only a payload can be repeated, as in 'x' * 20")
    if times < 0 or len(part) * times > MAX_BYTES:
        raise PacketTextError(f"a payload of at most {MAX_BYTES} bytes is possible")
    return part * times


def _layer(node: ast.Call) -> Layer:
    if not isinstance(node.func, ast.Name) or node.func.id not in LAYERS:
        raise PacketTextError(f"there are these layers: {', '.join(LAYERS)}")
    name = node.func.id
    if node.args and (name != "Raw" or len(node.args) > 1):
        raise PacketTextError(f"the fields of {name} are named, as in {name}({LAYERS[name][0].name}=...)")
    values = {"load": _constant(node.args[0])} if node.args else {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise PacketTextError("** is not possible here")
        values[keyword.arg] = _constant(keyword.value)
    return Layer(name, values)


def _constant(node: ast.expr) -> str | bytes | int:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        raise PacketTextError("fields are not negative")
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes | int):
        return node.value
    raise PacketTextError("a field's value is a number or a text in quotes; nothing else is evaluated")
