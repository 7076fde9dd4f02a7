"""The types of the IR."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bits:
    """bit<width> or int<width>; width 0 is allowed and holds only 0."""

    width: int
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Bool:
    pass


@dataclass(frozen=True, slots=True)
class String:
    """Only in the arguments of log_msg and friends."""


@dataclass(frozen=True, slots=True)
class Varbit:
    max_width: int


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct or (with fields f0, f1 ...) a tuple. Names are unique per distinct type in a program."""

    name: str
    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Header:
    """Fields are Bits, Bool, Varbit or Struct of those; validity is implicit."""

    name: str
    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Union:
    """A header union: at most one member is valid."""

    name: str
    fields: tuple[tuple[str, Header], ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """`size` headers or unions and the implicit nextIndex."""

    element: Header | Union
    size: int


Type = Bits | Bool | String | Varbit | Struct | Header | Union | Stack
