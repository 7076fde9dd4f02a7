"""ctypes declarations for runtime/api.h."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int32, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any

from v1model.dataplane import DataPlaneError
from v1model.errors import CompileError

if TYPE_CHECKING:
    from pathlib import Path

NO_HANDLE = 0xFFFFFFFF  # NO_ENTRY in table.h; as an argument: the default entry
EXISTS = 0xFFFFFFFE  # ENTRY_EXISTS there
PORTS = 512  # runtime/port.h
NOW = 0xFFFFFFFFFFFFFFFF  # stands for the clock's current time

_POINTER = ctypes.POINTER(c_void_p)

# name: (result, argument types); byte strings go as c_char_p, arrays to fill as c_void_p
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "create": (c_void_p, (c_uint32, c_uint32)),
    "destroy": (None, (c_void_p,)),
    "go_over": (None, (c_void_p,)),
    "reset": (None, (c_void_p,)),
    "inject": (c_int32, (c_void_p, c_uint32, c_char_p, c_uint32, c_uint64)),
    "take_outputs": (c_uint32, (c_void_p, _POINTER)),
    "now_us": (c_uint64, (c_void_p,)),
    "set_custom_crc": (None, (c_void_p, c_uint32, c_void_p)),
    "set_clock": (None, (c_void_p, c_uint64)),
    "drops": (c_uint64, (c_void_p, c_uint32)),
    "insert": (c_uint32, (c_void_p, c_uint32, c_char_p, c_char_p, c_int32, c_char_p, c_char_p, c_uint64)),
    "modify": (None, (c_void_p, c_uint32, c_uint32, c_char_p, c_char_p, c_uint64)),
    "delete": (None, (c_void_p, c_uint32, c_uint32)),
    "find": (c_uint32, (c_void_p, c_uint32, c_char_p, c_char_p, c_int32)),
    "in_use": (c_uint32, (c_void_p, c_uint32, c_void_p, c_uint32)),
    "read_entry": (c_int32, (c_void_p, c_uint32, c_uint32, c_void_p, c_void_p)),
    "write": (c_uint32, (c_void_p, c_void_p, c_char_p, c_uint32, c_void_p, c_uint32)),
    "skip_update": (c_uint32, (c_char_p, c_uint32, c_uint32)),
    "keep": (None, (c_void_p, c_uint32, c_uint32)),
    "set_members": (c_int32, (c_void_p, c_uint32, c_char_p, c_char_p, c_uint32)),
    "idle_us": (c_uint64, (c_void_p, c_uint32, c_uint32)),
    "sweep_idle": (None, (c_void_p,)),
    "entry_counter": (None, (c_void_p, c_uint32, c_uint32, c_void_p)),
    "entry_counters": (None, (c_void_p, c_uint32, c_void_p, c_uint32)),
    "set_entry_counter": (None, (c_void_p, c_uint32, c_uint32, c_uint64, c_uint64)),
    "set_entry_meter": (c_int32, (c_void_p, c_uint32, c_uint32, c_char_p)),
    "entry_meter_counts": (None, (c_void_p, c_uint32, c_uint32, c_void_p, c_uint32)),
    "meter_counts": (None, (c_void_p, c_uint32, c_uint32, c_void_p, c_uint32)),
    "counters": (None, (c_void_p, c_uint32, c_uint32, c_uint32, c_void_p)),
    "set_counter": (None, (c_void_p, c_uint32, c_uint32, c_uint64, c_uint64)),
    "set_meter": (None, (c_void_p, c_uint32, c_uint32, c_char_p)),
    "register": (None, (c_void_p, c_uint32, c_uint32, c_void_p)),
    "set_register": (None, (c_void_p, c_uint32, c_uint32, c_char_p)),
    "enable_queues": (c_int32, (c_void_p, c_uint32)),
    "set_port_rate": (None, (c_void_p, c_uint32, c_uint64, c_uint64)),
    "set_queue": (None, (c_void_p, c_uint32, c_uint32, c_void_p)),
    "queue": (None, (c_void_p, c_uint32, c_uint32, c_void_p)),
    "serve_queues": (None, (c_void_p, c_uint64, c_uint32)),
    "set_member": (c_int32, (c_void_p, c_uint32, c_uint32, c_uint32, c_char_p)),
    "delete_member": (None, (c_void_p, c_uint32, c_uint32)),
    "set_group": (c_int32, (c_void_p, c_uint32, c_uint32, c_char_p, c_char_p, c_char_p, c_uint32)),
    "look_at_links": (None, (c_void_p,)),
    "set_multicast_group": (c_int32, (c_void_p, c_uint32, c_char_p, c_uint32)),
    "set_clone_session": (c_int32, (c_void_p, c_uint32, c_char_p, c_uint32, c_uint32)),
    "enable_digest": (None, (c_void_p, c_uint32, c_uint32)),
    "trace": (None, (c_void_p, c_uint32, c_uint32, c_char_p, c_char_p, c_uint32)),
    "enable_log": (None, (c_void_p, c_uint32)),
    "wait_events": (c_uint32, (c_void_p, c_uint64, c_uint32, _POINTER)),
    "interrupt_events": (None, (c_void_p,)),
    "attach": (c_int32, (c_void_p, c_uint32, c_char_p)),
    "detach": (c_int32, (c_void_p, c_uint32)),
    "keep_running": (None, (c_void_p, c_uint32)),
    "forward": (c_int32, (c_void_p,)),
    "port_statistics": (c_int32, (c_void_p, c_uint32, c_void_p)),
}


class Library:
    """Functions of one shared object, without their prefix `weir_`."""

    def __init__(self, path: Path) -> None:
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise CompileError(f"the compiled program can't be loaded: {error}") from error
        self._library, self.path = library, path
        for name, (result, arguments) in FUNCTIONS.items():
            setattr(self, name, self.declare(name, result, *arguments))

    def declare(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self._library, f"weir_{name}")
        function.restype, function.argtypes = result, arguments
        return function

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Handle:
    """State that the parts of a Switch share: the library and its struct vswitch, until that is destroyed."""

    def __init__(self, library: Library, pointer: int) -> None:
        self.library = library
        self._pointer: int | None = pointer

    @property
    def pointer(self) -> int:
        if self._pointer is None:
            raise DataPlaneError("FAILED_PRECONDITION", "the switch is closed")
        return self._pointer

    def call(self, name: str, *arguments: Any) -> Any:
        return getattr(self.library, name)(self.pointer, *arguments)

    def read(self, name: str, *arguments: Any) -> bytes:
        """Call a function that returns a buffer of its own; return a copy of that."""
        data = c_void_p()
        length = self.call(name, *arguments, ctypes.byref(data))
        return ctypes.string_at(data.value, length) if data.value and length else b""

    def go_over(self, library: Library) -> None:
        """Let another build of the program work on the same state.

        The old one stays loaded: calls that run in it end there.
        """
        library.go_over(self.pointer)
        self.library = library

    def destroy(self) -> None:
        self.call("destroy")
        self._pointer = None
