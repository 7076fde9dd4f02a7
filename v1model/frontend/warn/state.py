"""Knowledge at a place of a program: which headers are valid, which variables may be unassigned."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING

from v1model.frontend import ast
from v1model.frontend.types import RecordType, StackType, Type

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[ast.Declaration | str, ...]
"""Variable or parameter, followed by names of fields."""

MAX_LEAVES = 1024  # of a variable; larger ones are not analysed


class Validity(Enum):
    """Validity of a header; unknown ones have no entry.

    The result of an isValid() in an `if` is only assumed.
    """

    VALID = "valid"
    INVALID = "invalid"
    MIXED = "valid on some of the ways that lead here"
    ASSUMED_VALID = "valid, as isValid() said"
    ASSUMED_INVALID = "invalid, as isValid() said"


@dataclass
class State:
    """`validity` of headers, and `unset`, the single values that may be unassigned."""

    validity: dict[Path, Validity] = field(default_factory=dict)
    unset: set[Path] = field(default_factory=set)

    def clone(self) -> State:
        return State(dict(self.validity), set(self.unset))

    def declare_unset(self, path: Path, kind: Type) -> None:
        """Record that nothing inside is assigned, and that no header inside is valid."""
        found = list(islice(_leaves(path, kind), MAX_LEAVES + 1))
        if len(found) > MAX_LEAVES:
            return
        for leaf, is_header in found:
            if is_header:
                self.validity[leaf] = Validity.INVALID
            else:
                self.unset.add(leaf)

    def assign(self, path: Path) -> None:
        """Record that everything inside is assigned; nothing is known of headers inside."""
        self.unset = {other for other in self.unset if not _is_inside(other, path)}
        self.validity = {
            other: known for other, known in self.validity.items() if not _is_inside(other, path)
        }

    def copy(self, source: Path, target: Path, before: State) -> None:
        """Record for `target`, and all inside, what was known of `source` before."""
        self.assign(target)
        for other, known in before.validity.items():
            if _is_inside(other, source):
                self.validity[(*target, *other[len(source) :])] = known

    def unset_inside(self, path: Path) -> set[Path]:
        """Return the parts of a value, and what contains it, that may be unassigned."""
        return {other for other in self.unset if _is_inside(other, path) or _is_inside(path, other)}


def join(one: State | None, other: State | None) -> State | None:
    """Return what is known where two ways join; None is a way that no packet takes."""
    if one is None or other is None:
        return one.clone() if one is not None else other and other.clone()
    validity = {}
    for path in one.validity.keys() & other.validity.keys():
        if (known := _JOINED.get(frozenset((one.validity[path], other.validity[path])))) is not None:
            validity[path] = known
    return State(validity, one.unset | other.unset)


_V = Validity
_JOINED: dict[frozenset[Validity], Validity] = {
    **{frozenset((each,)): each for each in Validity},
    frozenset((_V.VALID, _V.INVALID)): _V.MIXED,
    frozenset((_V.VALID, _V.MIXED)): _V.MIXED,
    frozenset((_V.INVALID, _V.MIXED)): _V.MIXED,
    frozenset((_V.ASSUMED_VALID, _V.INVALID)): _V.MIXED,
    frozenset((_V.VALID, _V.ASSUMED_INVALID)): _V.MIXED,
    frozenset((_V.VALID, _V.ASSUMED_VALID)): _V.VALID,
    frozenset((_V.INVALID, _V.ASSUMED_INVALID)): _V.INVALID,
}


def _is_inside(path: Path, outer: Path) -> bool:
    return path[: len(outer)] == outer


def _leaves(path: Path, kind: Type) -> Iterator[tuple[Path, bool]]:
    """Yield the values and headers that a value consists of, each with whether it is a header; no unions."""
    match kind:
        case RecordType(kind="header"):
            yield path, True
        case RecordType(kind="struct", fields=fields):
            for name, inner in fields:
                yield from _leaves((*path, name), inner)
        case StackType(element, size):
            for index in range(min(size, MAX_LEAVES + 1)):
                yield from _leaves((*path, f"[{index}]"), element)
        case RecordType():
            return
        case _:
            yield path, False
