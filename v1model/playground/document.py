"""Document of a playground, as one file: the program, entries, registers, other commands and packets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FORMAT = "weir-playground 1"
MAX_DOCUMENT_BYTES = 2 << 20
MAX_PROGRAM_CHARACTERS = 1 << 20
MAX_COMMANDS = 4096  # entries, registers and others
MAX_PACKETS = 64
MAX_TEXT_CHARACTERS = 140_000  # in a command or a packet: 64 KiB in hex
MAX_TIME_US = 1 << 47


class DocumentError(Exception):
    """A file is no playground, or too large to run."""


@dataclass(frozen=True)
class PacketText:
    """Packet as text (packet_text.py), with the port by which it comes in and the time."""

    text: str
    port: int
    time_us: int


@dataclass(frozen=True)
class Document:
    """Document; `commands` are simple_switch_CLI's, one in each text."""

    program: str
    commands: tuple[str, ...] = ()
    packets: tuple[PacketText, ...] = field(default_factory=tuple)


def decode(given: Any) -> Document:
    """Return the document of a parsed JSON value; raises DocumentError."""
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise DocumentError(f"this is no playground: its format must be {FORMAT!r}")
    program = _text(given.get("program"), "the program", MAX_PROGRAM_CHARACTERS)
    commands = _list(given.get("commands", []), "commands", MAX_COMMANDS)
    packets = _list(given.get("packets", []), "packets", MAX_PACKETS)
    return Document(
        program,
        tuple(_text(command, "a command", MAX_TEXT_CHARACTERS) for command in commands),
        tuple(_packet(packet) for packet in packets),
    )


def _packet(given: Any) -> PacketText:
    if not isinstance(given, dict):
        raise DocumentError("a packet has a text, a port and a time")
    text = _text(given.get("text"), "a packet", MAX_TEXT_CHARACTERS)
    port, time_us = given.get("port", 0), given.get("time_us", 0)
    if not _is_within(port, 510):
        raise DocumentError("a packet's port is a number from 0 to 510")
    if not _is_within(time_us, MAX_TIME_US):
        raise DocumentError("a packet's time is a number of microseconds from 0 on")
    return PacketText(text, port, time_us)


def _is_within(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _text(value: Any, what: str, most: int) -> str:
    if not isinstance(value, str):
        raise DocumentError(f"{what} must be text")
    if len(value) > most:
        raise DocumentError(f"{what} has {len(value)} characters; at most {most} are taken")
    return value


def _list(value: Any, what: str, most: int) -> list[Any]:
    if not isinstance(value, list):
        raise DocumentError(f"{what} must be a list")
    if len(value) > most:
        raise DocumentError(f"there are {len(value)} {what}; at most {most} are taken")
    return value
