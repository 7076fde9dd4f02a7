"""Marking of methods as calls of a Thrift service, and BMv2's error numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from v1model.thrift.binary import Type

    Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Errors:
    """Error codes of one of BMv2's exceptions: by DataPlaneError's code, and for all others."""

    by_code: Mapping[str, int]
    otherwise: int


TABLE = Errors(
    {
        "RESOURCE_EXHAUSTED": 1,
        "NOT_FOUND": 2,
        "ALREADY_EXISTS": 17,
        "OUT_OF_RANGE": 18,
        "PERMISSION_DENIED": 25,
    },
    100,
)
COUNTER = Errors({"NOT_FOUND": 1, "OUT_OF_RANGE": 2}, 3)
METER = Errors({"NOT_FOUND": 1, "OUT_OF_RANGE": 2}, 6)
REGISTER = Errors({"NOT_FOUND": 1, "OUT_OF_RANGE": 2}, 3)
VALUE_SET = Errors({"NOT_FOUND": 1}, 2)
SWAP = Errors({"NOT_FOUND": 3}, 1)
PORTS = Errors({}, 1)
CRC = Errors({"NOT_FOUND": 1, "INVALID_ARGUMENT": 2}, 3)
IDS = Errors({"INVALID_ARGUMENT": 0}, 1)
MULTICAST = Errors({"RESOURCE_EXHAUSTED": 1, "NOT_FOUND": 4}, 5)
MIRRORING = Errors({"NOT_FOUND": 1}, 1)
_READS = ("bm_mt_get_entry", "bm_mt_get_entry_from_key", "bm_mt_get_entries")


def only_reads(name: str) -> bool:
    """Return whether the call `service:call` only shows entries of tables."""
    return name.rpartition(":")[2] in _READS


class ThriftError(Exception):
    """Error with its number in the exception that the call may raise."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Call:
    """Call with `count` arguments; a `result` of None is void.

    With `errors` None the call has no exceptions of its own.
    """

    count: int
    result: Type | None
    errors: Errors | None


def call(count: int, result: Type | None = None, errors: Errors | None = None) -> Callable[[Method], Method]:
    """Return a decorator that marks a method as the call of its name, with the arguments 1 to `count`.

    Arguments that are not given are None.
    """

    def mark(method: Method) -> Method:
        method.thrift = Call(count, result, errors)  # type: ignore[attr-defined]
        return method

    return mark
