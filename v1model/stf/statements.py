"""Statements of an STF file, and the error that names a line of it."""

from __future__ import annotations

from dataclasses import dataclass


class StfError(Exception):
    """A line of an STF file can't be parsed or done; `str()` has the line number."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")


@dataclass(frozen=True, slots=True)
class Invocation:
    """Action and its arguments by name, as text."""

    action: str
    arguments: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """Statement of an STF file; `line` counts from 1."""

    line: int


@dataclass(frozen=True, slots=True)
class Packet(Statement):
    """packet PORT DATA: a packet that goes into a port."""

    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Expect(Statement):
    """expect PORT [DATA [$]]: a packet that comes out.

    `digits` are upper-case hex digits, with `*` for any digit; None stands for any packet. Longer packets
    match too, unless `exact` ($).
    """

    port: int
    digits: str | None
    exact: bool


@dataclass(frozen=True, slots=True)
class NoPacket(Statement):
    """no_packet: only expected packets come out, on any port."""


@dataclass(frozen=True, slots=True)
class Add(Statement):
    """add TABLE [PRIORITY] KEY:VALUE... ACTION(NAME:VALUE, ...) [= LABEL]. A larger priority wins."""

    table: str
    priority: int | None
    matches: tuple[tuple[str, str], ...]
    action: Invocation
    label: str = ""


@dataclass(frozen=True, slots=True)
class SetDefault(Statement):
    """setdefault TABLE ACTION(...)."""

    table: str
    action: Invocation


@dataclass(frozen=True, slots=True)
class RemoveAll(Statement):
    """remove all: removal of every entry that is not const."""


@dataclass(frozen=True, slots=True)
class CheckCounter(Statement):
    """check_counter NAME(INDEX) [packets|bytes RELATION NUMBER].

    For a direct counter the index is the label of an entry, as in $A.
    """

    counter: str
    index: str
    unit: str
    relation: str
    value: int


@dataclass(frozen=True, slots=True)
class Command(Statement):
    """Command of simple_switch_CLI: mirroring_add, mc_mgrp_create, register_write and so on."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait(Statement):
    """wait: a pause until the packets so far have been processed."""
