"""Hints about programs for something else: P4_14, other architectures, and words of other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.frontend.lexer import IDENTIFIER, INTEGER

if TYPE_CHECKING:
    from v1model.frontend.lexer import Token

# Words that begin a declaration of P4_14, followed by a name and a brace.
_P4_14_ONLY = frozenset({"header_type", "field_list", "field_list_calculation", "calculated_field"})
# Tokens after these keywords in P4_14 that no P4_16 has.
_P4_14_SHAPES = {
    "header": [[IDENTIFIER, IDENTIFIER, ";"]],
    "control": [[IDENTIFIER, "{", "apply"], [IDENTIFIER, "{", "if"], [IDENTIFIER, "{", "}"]],
    "parser": [[IDENTIFIER, "{", "return"], [IDENTIFIER, "{", IDENTIFIER]],
}
_OTHER_ARCHITECTURES = {
    "psa.p4": "PSA", "bmv2/psa.p4": "PSA", "pna.p4": "PNA", "dpdk/psa.p4": "PSA", "dpdk/pna.p4": "PNA",
    "tna.p4": "TNA", "t2na.p4": "T2NA", "ebpf_model.p4": "eBPF", "ubpf_model.p4": "uBPF",
    "xdp_model.p4": "XDP",
}  # fmt: skip

_INCLUDE_CORE = "it is declared in core.p4: #include <core.p4>"
_INCLUDE_V1MODEL = "it is declared in v1model.p4: #include <v1model.p4>"
HINTS = {
    "V1Switch": _INCLUDE_V1MODEL,
    "standard_metadata_t": _INCLUDE_V1MODEL,
    "mark_to_drop": _INCLUDE_V1MODEL,
    "packet_in": _INCLUDE_CORE,
    "packet_out": _INCLUDE_CORE,
    "printf": 'log_msg("...", {value}) writes to the log',
    "print": 'log_msg("...", {value}) writes to the log',
    "drop": "v1model's is mark_to_drop(standard_metadata)",
    "modify_field": "that is P4_14; here it is an assignment: field = value;",
    "add_header": "that is P4_14; here it is header.setValid();",
    "remove_header": "that is P4_14; here it is header.setInvalid();",
    "True": "P4 writes true",
    "False": "P4 writes false",
    **dict.fromkeys(("null", "NULL", "None"), "P4 has none: a header is left out with header.setInvalid();"),
    **{f"uint{bits}_t": f"P4's is bit<{bits}>" for bits in (8, 16, 32, 64)},
    **dict.fromkeys(
        ("unsigned", "long", "short", "char"), "numbers have a width: bit<32>, or int<32> with a sign"
    ),
    **{name: f"write HashAlgorithm.{name}" for name in ("crc16", "crc32", "csum16", "xor16", "identity")},
    **dict.fromkeys(("elif", "elsif", "elseif"), "P4 writes else if (...)"),
    **dict.fromkeys(
        ("while", "loop", "repeat"), "a loop is 'for', as in for (bit<8> i in 8w1 .. 8w4) { ... }"
    ),
}
"""Hints about undeclared names that are known from elsewhere."""


_OPERATORS = {"and": "&&", "or": "||", "not": "!"}
_INCREMENT = "P4 has no ++ and no --: write x = x + 1"


def word_hint(before: Token, token: Token) -> str:
    """Return what to write instead of a refused token or the one before it; "" if they give no hint."""
    for word in (token.text, before.text):
        if word in _OPERATORS:
            return f"P4 writes {_OPERATORS[word]} for {word!r}"
    if before.kind == INTEGER and token.kind == ":":
        return "an address is one number, as in 48w0x001122334455"
    if before.kind == "." and token.kind == INTEGER:
        return "an address is one number, as in 32w0x0a000001"
    return "a string stands in double quotes" if token.text == "'" else ""


def statement_hint(token: Token, following: Token) -> str:
    """Return what is wrong where an assignment or a call ends in a token; "" if it gives no hint."""
    if token.kind == "++" or (token.kind, following.kind) == ("-", "-"):
        return _INCREMENT
    return "a call has parentheses: f();" if token.kind == ";" else ""


def p4_14_error(tokens: list[Token]) -> CompileError | None:
    """Return the error for a text that is P4_14, None for any other."""
    for position, token in enumerate(tokens[:-3]):
        following = [other.kind for other in tokens[position + 1 : position + 4]]
        if token.kind == IDENTIFIER and token.text in _P4_14_ONLY and following[:2] == [IDENTIFIER, "{"]:
            break
        if following in _P4_14_SHAPES.get(token.kind, ()):
            break
    else:
        return None
    hint = "translate it to P4_16 first: p4test --std p4-14 --pp translated.p4 program.p4"
    return CompileError("this is P4_14, and only P4_16 is read", token.span, hint)


def architecture_hint(include: str) -> str:
    """Return a hint about a missing include file of another architecture; "" for any other."""
    name = _OTHER_ARCHITECTURES.get(include)
    return (
        f"that is {name}; this compiler is for v1model: #include <v1model.p4> and V1Switch(...) main;"
        if name
        else ""
    )
