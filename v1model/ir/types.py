"""Types of the IR."""

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
    """String; only in the arguments of log_msg and similar functions."""


@dataclass(frozen=True, slots=True)
class Varbit:
    max_width: int


@dataclass(frozen=True, slots=True)
class Struct:
    """Struct, or a tuple (with fields f0, f1 ...). Names are unique per distinct type in a program."""

    name: str
    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Header:
    """Header; fields are Bits, Bool, Varbit or Struct of those; validity is implicit."""

    name: str
    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Union:
    """Header union: at most one member is valid."""

    name: str
    fields: tuple[tuple[str, Header], ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """Stack of `size` headers or unions, with the implicit nextIndex."""

    element: Header | Union
    size: int


Type = Bits | Bool | String | Varbit | Struct | Header | Union | Stack
