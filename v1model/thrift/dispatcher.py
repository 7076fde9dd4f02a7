"""Dispatching of encoded calls, which returns encoded answers."""

from __future__ import annotations

import io
import logging
import struct
import threading
from typing import TYPE_CHECKING, Any

from v1model.dataplane import DataPlaneError
from v1model.thrift.binary import (
    EXCEPTION,
    I32,
    REPLY,
    STRING,
    ProtocolError,
    Reader,
    StructOf,
    field,
    message,
    struct_of,
)
from v1model.thrift.calls import Call, ThriftError, only_reads

if TYPE_CHECKING:
    from v1model.thrift.services import Services

MAX_READ_BYTES = 64 << 10  # of a call that reads, at most with an entry's key
UNKNOWN_METHOD, INTERNAL_ERROR = 1, 6  # of TApplicationException
# Exceptions of BMv2's calls: a code, and a message, which clients of BMv2 skip.
RAISED = StructOf((I32, STRING))
_OF_THE_MACHINE = ("bm_dev_mgr_add_port", "bm_dev_mgr_remove_port")

logger = logging.getLogger(__name__)


class Dispatcher:
    """Dispatcher that does calls one at a time, over whatever connection they come."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._one_call = threading.Lock()

    def answer_message(self, data: bytes) -> bytes:
        """Return the answer to one message that came over P4Runtime's connection.

        Raises DataPlaneError if it is no call, or about the machine's interfaces, which P4Runtime's clients
        can't change.
        """
        stream = io.BytesIO(data)
        try:
            name, sequence, arguments = Reader(stream.read).message()
        except (ProtocolError, ValueError, struct.error) as error:
            raise DataPlaneError("INVALID_ARGUMENT", f"this is no call: {error}") from None
        if name.rpartition(":")[2] in _OF_THE_MACHINE:
            raise DataPlaneError("PERMISSION_DENIED", "ports are added with -i of weir-switch, or by Thrift")
        return self.answer(name, sequence, arguments)

    @staticmethod
    def only_reads(data: bytes) -> bool:
        """Return whether a message is a call that changes nothing.

        Any client may send it, so only a short one is parsed.
        """
        if len(data) > MAX_READ_BYTES:
            return False
        try:
            name, _, _ = Reader(io.BytesIO(data).read).message()
        except (ProtocolError, ValueError, struct.error):
            return False
        return only_reads(name)

    def answer(self, name: str, sequence: int, arguments: dict[int, Any]) -> bytes:
        """Return the answer to a call, also if it does not exist or has invalid arguments."""
        own_name = name.rpartition(":")[2]
        try:
            with self._one_call:
                method = self._services.find(name)
                if method is None:
                    return _exception(own_name, sequence, UNKNOWN_METHOD, f"no call {name}")
                call: Call = method.thrift  # type: ignore[attr-defined]
                return _call(own_name, sequence, method, call, arguments)
        except Exception as error:  # whatever untrusted arguments cause ends with this call
            logger.info("Thrift: %s: %s: %s", name, type(error).__name__, error)
            return _exception(own_name, sequence, INTERNAL_ERROR, str(error))


def _call(name: str, sequence: int, method: Any, call: Call, arguments: dict[int, Any]) -> bytes:
    given = [arguments.get(number) for number in range(1, call.count + 1)]
    try:
        result = method(*given)
    except (ThriftError, DataPlaneError, ValueError) as error:
        if call.errors is None:
            raise
        logger.info("Thrift: %s: %s", name, error)
        code = call.errors.by_code.get(getattr(error, "code", ""), call.errors.otherwise)
        raised = (error.code if isinstance(error, ThriftError) else code, str(error))
        return message(name, REPLY, sequence, struct_of(field(1, RAISED, raised)))
    success = () if call.result is None else (field(0, call.result, result),)
    return message(name, REPLY, sequence, struct_of(*success))


def _exception(name: str, sequence: int, kind: int, text: str) -> bytes:
    """Return a TApplicationException."""
    return message(name, EXCEPTION, sequence, struct_of(field(1, STRING, text), field(2, I32, kind)))
