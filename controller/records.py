"""Frozen dataclasses from JSON and back, with errors that name the field."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from controller.addressing import Mac
from controller.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

Record = TypeVar("Record")

_FROM_TEXT: Final[dict[type, Callable[[str], object]]] = {
    str: str,
    Path: Path,
    Mac: Mac.parse,
    IPv4Address: IPv4Address,
    IPv4Network: IPv4Network,
}


class _FieldError(ValueError):
    """A value that does not fit; carries the path of its field."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}" if place else reason)


def read_json(kind: type[Record], path: Path) -> Record:
    """Return the JSON object in a file as a dataclass; raises ConfigError that names file and field."""
    try:
        record: Record = decode(kind, json.loads(path.read_text()))
        return record
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def decode(kind: Any, value: Any, place: str = "") -> Any:
    """Return a parsed JSON value as `kind`, a dataclass or a field's type; raises ValueError that names the
    field."""
    if get_origin(kind) is UnionType:
        (inner,) = (arm for arm in get_args(kind) if arm is not NoneType)
        return None if value is None else decode(inner, value, place)
    if is_dataclass(kind):
        return _object(kind, _expect(value, dict, "an object", place), place)
    if get_origin(kind) is tuple:
        items = enumerate(_expect(value, list, "a list", place))
        return tuple(decode(get_args(kind)[0], item, f"{place}[{index}]") for index, item in items)
    if kind is bool:
        if not isinstance(value, bool):
            raise _FieldError(place, f"must be true or false, not {json.dumps(value)[:60]}")
        return value
    if kind is int:
        return _expect(value, int, "a whole number", place)
    if kind is float:
        return float(_expect(value, (int, float), "a number", place))
    return _text(kind, value, place)


def to_record(value: object) -> Any:
    """Return what `decode` reads back: a dataclass as an object, addresses and paths as text."""
    if is_dataclass(value):
        return {member.name: to_record(getattr(value, member.name)) for member in fields(value)}
    if isinstance(value, tuple):
        return [to_record(item) for item in value]
    if value is None or (isinstance(value, (int, float, str)) and not isinstance(value, Mac)):
        return value
    return str(value)


def _object(kind: Any, value: dict[str, Any], place: str) -> object:
    hints = get_type_hints(kind)
    known = {member.name: member for member in fields(kind)}
    for name in value:
        if name not in known:
            raise _FieldError(place, f"no field {name!r}: there are {', '.join(known)}")
    for name, member in known.items():
        if name not in value and member.default is MISSING and member.default_factory is MISSING:
            raise _FieldError(place, f"field {name!r} is missing")
    prefix = f"{place}." if place else ""
    return kind(**{name: decode(hints[name], value[name], prefix + name) for name in value})


def _text(kind: Any, value: Any, place: str) -> object:
    parse = _FROM_TEXT[kind]
    text = _expect(value, str, "text", place)
    try:
        return parse(text)
    except ValueError as error:
        raise _FieldError(place, str(error)) from None


def _expect(value: Any, kinds: type | tuple[type, ...], name: str, place: str) -> Any:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise _FieldError(place, f"must be {name}, not {json.dumps(value)[:60]}")
    return value
