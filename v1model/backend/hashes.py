"""v1model's hash algorithms over lists of fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.backend import fieldlist
from v1model.backend.layout import is_wide, value_width
from v1model.errors import UnsupportedError

if TYPE_CHECKING:
    from v1model import ir
    from v1model.backend.writer import Writer

# Algorithms over plain bytes: the C call up to the bytes; for custom CRCs with default parameters.
HASHES = {
    "crc32": "hash_crc32(&sw->crc32, ",
    "crc32_custom": "hash_crc32(&sw->crc32, ",
    "crc16": "hash_crc16(",
    "crc16_custom": "hash_crc16(",
    "identity": "hash_identity(",
    "xor16": "hash_xor16(",
}
CUSTOM_CRC_BITS = {"crc16_custom": 16, "crc32_custom": 32}


def hash_of(writer: Writer, algorithm: str, value: ir.Expr, *, with_payload: bool = False) -> str:
    """Emit the field list and return a C expression for its hash, a uint64_t."""
    function = writer.function
    if algorithm == "random":
        return "next_random(sw)"
    payload = ("job->data + job->payload_offset", "job->length - job->payload_offset")
    if algorithm == "csum16":
        summed = function.name("summed")
        function.emit(f"uint64_t {summed} = 0;")
        fields = fieldlist.serialize(function, writer.expressions, value, "fields", summed)
        rest = ", ".join(payload) if with_payload else "NULL, 0"
        return f"hash_csum16({summed}, {fields.data}, {fields.length}, {rest})"
    fields = fieldlist.serialize(function, writer.expressions, value, "fields")
    if algorithm not in HASHES:
        raise UnsupportedError(f"hash algorithm {algorithm}; there are csum16, random, {', '.join(HASHES)}")
    if not with_payload:
        return _call(writer, algorithm, fields.data, fields.length)
    length = function.name("length")
    function.emit(f"uint32_t {length} = {fields.length};", f"memcpy(sw->scratch, {fields.data}, {length});")
    function.emit(f"memcpy(sw->scratch + {length}, {payload[0]}, {payload[1]});")
    return _call(writer, algorithm, "sw->scratch", f"{length} + {payload[1]}")


def _call(writer: Writer, algorithm: str, data: str, length: str) -> str:
    """Return the call over plain bytes.

    A custom CRC uses the control plane's parameters once they are set.
    """
    usual = f"{HASHES[algorithm]}{data}, {length})"
    if algorithm not in CUSTOM_CRC_BITS:
        return usual
    crc = f"sw->custom_crcs[{writer.unit.custom_crc(CUSTOM_CRC_BITS[algorithm])}]"
    return f"({crc}.is_set ? hash_custom_crc(&{crc}, {data}, {length}) : {usual})"


def integer(writer: Writer, value: ir.Expr) -> str:
    """Return C for the low 64 bits of any Bits."""
    code = writer.expressions.value(value)
    if is_wide(value.type):
        code = f"wide_low128({code}, {value_width(value.type)})"
    return f"(uint64_t){code}"
