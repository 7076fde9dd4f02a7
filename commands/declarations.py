"""Declarations of a command's keys: a dataclass, each field with its bounds, default and help.

    @dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)     # pydantic.dataclasses
    class FaultsOptions:
        seconds: Annotated[float, Within(3, 600)] = 8.0
        '''Duration of the load of a case.'''
        topologies: Annotated[tuple[Annotated[str, OneOf(TOPOLOGIES)], ...], Variable("TOPOS")] = TOPOLOGIES
        '''Topologies to run on.'''

pydantic checks values and makes the JSON schema. `keys_of` reads the fields once for everything else: reading
variables and command lines (`commands.options`), help, the reference page and the table that make checks. A
field whose type is such a dataclass is a table of keys, as in TOML.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, GroupedMetadata, Le
from pydantic import ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema

DECLARED: Final = ConfigDict(use_attribute_docstrings=True, extra="forbid")
"""Configuration of a dataclass of declarations: the text below a field is its help."""
PREFIX: Final = "WEIR_"
"""Prefix of variables in the environment."""
UNITS: Final = {
    "_mbit_s": "Mbit/s",
    "_gbit_s": "Gbit/s",
    "_gbyte_s": "GB/s",
    "_per_s": "1/s",
    "_per_gb": "$/GB",
    "_per_hour": "$/h",
    "_gb": "GB",
    "_bytes": "bytes",
    "_tokens": "tokens",
    "_blocks": "blocks",
    "_ms": "ms",
    "_us": "µs",
    "_s": "s",
    "minutes": "min",
    "hours": "h",
    "seconds": "s",
    "years": "years",
}
"""Units by the ends of names."""


@dataclass(frozen=True, slots=True)
class Within(GroupedMetadata):
    """Bounds of a number, both included."""

    least: float
    most: float

    def __iter__(self) -> Iterator[Ge | Le]:
        """Yield the bounds as pydantic's annotations."""
        yield Ge(self.least)
        yield Le(self.most)


@dataclass(frozen=True, slots=True, init=False)
class OneOf:
    """Names of which a text must be one."""

    names: tuple[str, ...]

    def __init__(self, names: Sequence[str] | dict[str, Any]) -> None:
        object.__setattr__(self, "names", tuple(names))

    def check(self, name: str) -> str:
        """Return the name; raises ValueError if it is none of them."""
        if name not in self.names:
            raise ValueError(f"there is no {name!r}: {self.advice(name)}")
        return name

    def advice(self, name: str) -> str:
        """Return a hint what to write instead."""
        near = get_close_matches(name.lower(), self.names, 1)
        meant = f"did you mean {near[0]}? " if near and len(self.names) > 2 else ""
        return f"{meant}choose one of {', '.join(self.names)}"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the type's schema with this check after it."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the type's JSON schema with the names."""
        return {**handler(schema), "enum": list(self.names)}


@dataclass(frozen=True, slots=True)
class Variable:
    """Name of a key's variable if it does not follow from the key's own name."""

    name: str


@dataclass(frozen=True, slots=True)
class Unit:
    """Unit of a value if the key's name does not end with it."""

    name: str


@dataclass(frozen=True, slots=True)
class Each:
    """Mark of a tuple with one value for each of several things: equal values are kept."""


@dataclass(frozen=True, slots=True)
class Unnamed:
    """Mark of a key that stands on the command line without its name."""


@dataclass(frozen=True, slots=True)
class InsteadOf:
    """Mark of a key that gives the same value as another key of its table in another unit; the later one
    counts.
    """

    other: str


@dataclass(frozen=True, slots=True, init=False)
class Known:
    """Names that a text may be; any other text is the path of something that exists."""

    names: tuple[str, ...]

    def __init__(self, names: Iterable[str]) -> None:
        object.__setattr__(self, "names", tuple(names))


@dataclass(frozen=True, slots=True)
class Existing:
    """Mark of a path at which a file or folder has to exist."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Values that a key takes; for a key with several values, those of each."""

    name: Literal["whole", "number", "yes_or_no", "name", "text", "path", "file", "name_or_file"]
    """Type of the value; `file` is the path of something that exists."""
    least: float | None = None
    most: float | None = None
    words: tuple[str, ...] = ()
    """Names that may be given; for a number the words that may replace it."""
    many: bool = False
    """Whether it takes several values, separated by commas."""

    @property
    def range(self) -> str:
        """Return the bounds or the names as text."""
        parts = [f"{bound(self.least)} to {bound(self.most)}"] if self.least is not None else []
        if self.name == "yes_or_no":
            parts.append("yes, no")
        return "; ".join((*parts, *([", ".join(self.words)] if self.words else [])))


def bound(value: float | None) -> str:
    """Return a bound as people write it: whole numbers in full up to ten digits."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) and abs(value) < 1e10 else f"{value:g}"


@dataclass(frozen=True, slots=True)
class Key:
    """A declared key."""

    path: tuple[str, ...]
    """Names of its tables, then its own."""
    variable: str
    annotation: Any
    default: Any
    help: str
    kind: Kind
    unit: str
    marks: tuple[Any, ...]
    """Metadata of its annotation."""

    @property
    def name(self) -> str:
        """Return its name in a TOML file, such as pool.blocks."""
        return ".".join(self.path)

    @property
    def flag(self) -> str:
        """Return its name on the command line, such as --pool-blocks."""
        return "--" + self.variable.lower().replace("_", "-")

    @property
    def own_variable(self) -> bool:
        """Return whether the variable's name was declared and does not follow from the key's."""
        return self.marked(Variable)

    @property
    def instead(self) -> tuple[str, ...] | None:
        """Return the path of the key that gives the same value in another unit, or None."""
        others = [mark.other for mark in self.marks if isinstance(mark, InsteadOf)]
        return (*self.path[:-1], others[0]) if others else None

    def marked(self, mark: type) -> bool:
        """Return whether the annotation carries a mark of this type."""
        return any(isinstance(one, mark) for one in self.marks)

    def from_text(self, text: str) -> Any:
        """Return the value of a variable's or argument's text; raises ValueError with a sentence."""
        parts = tuple(part.strip() for part in text.split(",")) if self.kind.many else (text.strip(),)
        for part in parts:
            if self.kind.name == "file" and not Path(part).exists():
                raise ValueError(f"there is no file {part}")
        if not self.kind.many:
            return self._checked(parts[0])
        return self._checked(parts if self.marked(Each) else tuple(dict.fromkeys(parts)))

    def from_toml(self, value: Any) -> Any:
        """Return the value of a TOML file, whose type must be right; raises ValueError with a sentence."""
        return self._checked(tuple(value) if isinstance(value, list) else value, strict=True)

    def _checked(self, value: Any, strict: bool = False) -> Any:
        adapter = _adapter(self.annotation)
        if strict and self.kind.name in ("path", "file") and isinstance(value, str):
            strict = False  # a path is text in TOML
        try:
            return adapter.validate_python(value, strict=strict)
        except ValidationError as error:
            raise ValueError(sentence(self.kind, error, strict)) from None


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def sentence(kind: Kind, invalid: ValidationError, strict: bool = False) -> str:
    """Return what is wrong with a value, by the first error; `strict` asks for the words of TOML."""
    error = invalid.errors(include_url=False)[0]
    given = error["input"]
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] in ("too_short", "too_long"):
        count = error["ctx"].get("min_length", error["ctx"].get("max_length"))
        return f"must be {count} values, by commas, not {len(given)}"
    wanted = {
        "whole": "a whole number",
        "number": "a number",
        "yes_or_no": "true or false" if strict else "yes or no (1 or 0)",
        "name": f"one of {', '.join(kind.words)}",
        "text": "text",
        "path": "a path",
        "file": "a path",
        "name_or_file": "a name or a path",
    }[kind.name]
    if error["type"] in ("greater_than_equal", "less_than_equal"):
        wanted = f"from {bound(kind.least)} to {bound(kind.most)}"
    if kind.words and kind.name != "name":
        wanted += f", or {' or '.join(kind.words)}"
    as_it_is = wanted.startswith("from") or (isinstance(given, int | float) and not isinstance(given, bool))
    shown = str(given) if as_it_is else repr(given)
    return f"must be {wanted}, not {shown}"


def keys_of(kind: type) -> tuple[Key, ...]:
    """Return all keys of a declared dataclass in its order, with those of its tables in their places."""
    return _cached_keys(kind)


@cache
def _cached_keys(kind: Any) -> tuple[Key, ...]:
    return tuple(_keys(kind, (), None))


def _keys(kind: type, tables: tuple[str, ...], defaults: Any) -> Iterator[Key]:
    """Yield the keys of a dataclass below `tables`.

    `defaults` has the table's own defaults; None: the class's.
    """
    hints = get_type_hints(kind, include_extras=True)
    described = kind.__pydantic_fields__  # type: ignore[attr-defined]  # of every pydantic dataclass
    for entry in dataclasses.fields(kind):
        annotation = hints[entry.name]
        path = (*tables, entry.name)
        default = described[entry.name].get_default(call_default_factory=True)
        if defaults is not None:
            default = getattr(defaults, entry.name)
        if dataclasses.is_dataclass(annotation):
            assert isinstance(annotation, type)
            yield from _keys(annotation, path, default)
            continue
        marks = annotation.__metadata__ if get_origin(annotation) is Annotated else ()
        names = [mark.name for mark in marks if isinstance(mark, Variable)]
        units = [mark.name for mark in marks if isinstance(mark, Unit)]
        yield Key(
            path=path,
            variable=names[0] if names else "_".join(path).upper(),
            annotation=annotation,
            default=default,
            help=_help(kind, entry.name),
            kind=kind_of(annotation),
            unit=units[0] if units else _unit(entry.name),
            marks=marks,
        )


def _help(kind: type, name: str) -> str:
    """Return the text below a field, from the class that declared it."""
    fields = (base.__dict__.get("__pydantic_fields__", {}).get(name) for base in kind.__mro__)
    texts = (entry.description for entry in fields if entry is not None and entry.description)
    return " ".join(next(texts, "").split())


def _unit(name: str) -> str:
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


def kind_of(annotation: Any) -> Kind:
    """Return what values an annotation allows."""
    kind = _bare_kind(annotation)
    assert kind is not None, annotation
    return kind


def _bare_kind(annotation: Any) -> Kind | None:
    """Return the kind of values that an annotation allows, or None for the annotation None."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *marks = get_args(annotation)
        kind = _bare_kind(inner)
        assert kind is not None, annotation
        for mark in marks:
            if isinstance(mark, Within):
                kind = dataclasses.replace(kind, least=mark.least, most=mark.most)
            elif isinstance(mark, Known):
                kind = dataclasses.replace(kind, name="name_or_file", words=mark.names)
            elif isinstance(mark, Existing):
                kind = dataclasses.replace(kind, name="file")
            elif isinstance(mark, OneOf):
                kind = dataclasses.replace(kind, name="name", words=mark.names)
        return kind
    if origin is Literal:
        return Kind("name", words=get_args(annotation))
    if origin in (Union, UnionType):
        kinds = [kind for kind in map(_bare_kind, get_args(annotation)) if kind is not None]
        first, *others = kinds
        words = [word for kind in others for word in kind.words]
        return dataclasses.replace(first, words=(*first.words, *words))
    if origin is tuple:
        inner = _bare_kind(get_args(annotation)[0])
        assert inner is not None, annotation
        return dataclasses.replace(inner, many=True)
    names: dict[Any, Any] = {bool: "yes_or_no", int: "whole", float: "number", str: "text", Path: "path"}
    return None if annotation in (None, NoneType) else Kind(names[annotation])
