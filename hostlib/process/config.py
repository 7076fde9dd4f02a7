"""Configuration files of host processes: one JSON object, read into a dataclass, errors that say where."""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, dataclass, fields
from ipaddress import IPv4Address
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from hostlib.process.observe import OBSERVE_S
from hostlib.protocol.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ProcessConfig:
    """Configuration that every process has."""

    result: str
    """File for the result."""
    observe_s: float = OBSERVE_S
    """Seconds between two measurements of how late the process's timers are."""

    def __post_init__(self) -> None:
        """Subclasses check their fields here."""
        check_positive(observe_s=self.observe_s)


@dataclass(frozen=True, kw_only=True)
class HostConfig(ProcessConfig):
    """Configuration that every host has."""

    address: str
    """IPv4 address to bind to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_address("address", self.address)


Config = TypeVar("Config", bound=ProcessConfig)


def load_config(kind: type[Config], path: Path) -> Config:
    """Read a JSON object into `kind`; ConfigError says what is wrong with which field."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON ({error})") from None
    if not isinstance(given, dict):
        raise ConfigError(f"{path}: expected a JSON object, found {type(given).__name__}")
    try:
        _check_fields(kind, given)
        return kind(**given)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def check_address(name: str, address: str) -> None:
    """Raise ConfigError if `address` is no IPv4 address."""
    try:
        IPv4Address(address)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def check_each_once(name: str, values: list[str]) -> None:
    """Raise ConfigError if there are no values, or two alike; `name` is that of all."""
    if not values or len(set(values)) < len(values):
        raise ConfigError(f"{name} must name at least one {name.removesuffix('s')}, and each once")


def check_positive(**values: float) -> None:
    """Raise ConfigError that names the first value that is not above 0."""
    for name, value in values.items():
        if not value > 0:
            raise ConfigError(f"{name} must be above 0, not {value!r}")


def _check_fields(kind: type[ProcessConfig], given: dict[str, Any]) -> None:
    known = {entry.name: entry for entry in fields(kind)}
    for name in given:
        if name not in known:
            raise ConfigError(f"no field {name!r} exists; there are {', '.join(known)}")
    types = get_type_hints(kind)
    for name, entry in known.items():
        if name not in given:
            if _is_required(entry):
                raise ConfigError(f"field {name!r} is missing")
        elif not _fits(given[name], types[name]):
            raise ConfigError(f"{name} must be {entry.type}, not {given[name]!r}")


def _is_required(entry: Field[Any]) -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_fits(item, get_args(kind)[0]) for item in value)
    if kind is float:
        return type(value) in (int, float)
    return type(value) is (NoneType if kind is None else kind)
