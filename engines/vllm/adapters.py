"""Adapter that a request is computed with: the content of its files when vLLM loaded them.

vLLM loads an adapter in its workers, when the first request needs it, and again after others took its place.
The scheduler names it by its files as they are when a request comes. A worker compares that with what it has
loaded, and neither loads nor stores KV of an adapter that it has loaded with other content. Adapters that
training hands over in memory, by requests or a loader of its own, have no name.

vLLM's own prefix cache knows an adapter by its name and path. When other content comes under both, the cache
may hold KV of the former one.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final
from weakref import WeakSet

from vllm.lora.request import LoRARequest
from vllm.lora.worker_manager import WorkerLoRAManager

from engines.identity import ModelFiles, nameable
from engines.vllm.errors import AdapterChangedError
from hostlib.protocol.errors import KeySpaceError

MAX_ADAPTERS: Final = 1024
"""Number of states of adapters' files whose names are remembered."""
KNOWN_FIELDS: Final = {
    "lora_name", "lora_int_id", "lora_path", "base_model_name", "load_inplace", "is_3d_lora_weight",
}  # fmt: skip
"""Fields of a request's adapter. Other fields that a version of vLLM has there must not be set."""
MAX_PLACES: Final = 1 << 14
"""Number of names and paths of adapters for which their last content is remembered."""

_log = logging.getLogger("weir")


class AdapterNames:
    """The scheduler's side: names of adapters by their files, hashed in the background."""

    def __init__(self) -> None:
        self._names: OrderedDict[tuple[Any, ...], Future[str]] = OrderedDict()
        self._states: OrderedDict[tuple[str, str], tuple[Any, ...]] = OrderedDict()
        """State of an adapter's files with its last request, by vLLM's name and path of it; empty where its
        weights may come from elsewhere."""
        self._hashing = ThreadPoolExecutor(1, "weir adapters")

    def name(self, adapter: LoRARequest) -> str:
        """Return the name of what an adapter's files hold now. Raises KeySpaceError while it is not known.

        Raises AdapterChangedError, once, if it is another one than before.
        """
        place = (adapter.lora_name, adapter.lora_path)
        if type(adapter) is not LoRARequest:
            self._states[place] = ()
            raise KeySpaceError(f"a {type(adapter).__name__} may bring an adapter that is in no file")
        files = ModelFiles.of(adapter.lora_path)
        state = (files.states, files.links)
        before = self._states.setdefault(place, state)
        name = _with_form(self._content(state, files, adapter.lora_name), adapter)
        self._states[place] = state
        self._states.move_to_end(place)
        if len(self._states) > MAX_PLACES:
            self._states.popitem(last=False)
        if before != state and not self._is_same(before, state):
            raise AdapterChangedError(f"the files of adapter {adapter.lora_name!r} have changed")
        return name

    def _is_same(self, before: tuple[Any, ...], state: tuple[Any, ...]) -> bool:
        """Return whether files in a former state are known to have held what they hold in this one."""
        former = self._names.get(before)
        is_known = former is not None and former.done() and not former.cancelled() and not former.exception()
        return is_known and former is not None and former.result() == self._names[state].result()

    def _content(self, state: tuple[Any, ...], files: ModelFiles, name: str) -> str:
        named = self._names.get(state)
        if named is None:
            named = self._names[state] = self._hashing.submit(nameable(files.identity))
            if len(self._names) > MAX_ADAPTERS:
                self._names.popitem(last=False)[1].cancel()
        self._names.move_to_end(state)
        if not named.done():
            raise KeySpaceError(f"the files of adapter {name!r} are being hashed")
        try:
            return named.result()
        except KeySpaceError:
            del self._names[state]
            raise


class LoadedAdapters:
    """A worker's side: names of the adapters that vLLM has loaded in this process."""

    def __init__(self) -> None:
        self._told: set[tuple[int, str]] = set()
        _watch_loading()

    def is_loaded(self, number: int, name: str) -> bool:
        """Return whether vLLM loaded its adapter of this number from files of this name; if not, say so."""
        loaded = _loads.name(number)
        if loaded == name:
            return True
        if loaded is not None and (number, name) not in self._told and len(self._told) < MAX_ADAPTERS:
            self._told.add((number, name))
            _log.warning(
                "KV of adapter number %d is not shared: its files have changed since vLLM loaded it. "
                "Load it again (load_inplace, or under another number).",
                number,
            )
        return False


class _Loads:
    """Adapters that this process's engine has loaded. Of several engines, nobody knows which one has loaded
    what."""

    def __init__(self) -> None:
        self._names: dict[int, str | None] = {}
        """Name of the content that each adapter was loaded from; None where the files changed meanwhile."""
        self._loaders: WeakSet[Any] = WeakSet()
        self._is_ambiguous = False
        self._changing = threading.Lock()

    def note(self, loader: Any, number: int, name: str | None) -> None:
        """Note that an engine's loader has loaded its adapter of this number from content of this name."""
        with self._changing:
            if loader not in self._loaders:
                self._is_ambiguous |= bool(self._loaders)
                self._names.clear()
                self._loaders.add(loader)
            self._names[number] = name
            while len(self._names) > MAX_ADAPTERS:
                del self._names[next(iter(self._names))]

    def name(self, number: int) -> str | None:
        """Return the name of the content of an adapter; None if it is not known."""
        with self._changing:
            return None if self._is_ambiguous else self._names.get(number)


_loads = _Loads()


def _watch_loading() -> None:
    """Make vLLM's loader of adapters, of which each worker has one, note what it loads."""
    load = WorkerLoRAManager._load_adapter
    if hasattr(load, "notes_for_weir"):
        return
    reads_files = load.__module__ == WorkerLoRAManager.__module__
    if not reads_files:
        _log.warning("KV of adapters is not shared: %s loads them in vLLM's place.", load.__module__)

    def load_and_note(self: WorkerLoRAManager, lora_request: LoRARequest) -> Any:
        before = _files_of(lora_request) if reads_files else None
        loaded = load(self, lora_request)
        name = _name_of_unchanged(before, lora_request)
        _loads.note(self, lora_request.lora_int_id, name)
        return loaded

    load_and_note.notes_for_weir = True  # type: ignore[attr-defined] # of functions
    WorkerLoRAManager._load_adapter = load_and_note


def _files_of(adapter: LoRARequest) -> ModelFiles | None:
    if type(adapter) is not LoRARequest:
        return None  # in memory
    try:
        return ModelFiles.of(adapter.lora_path)
    except KeySpaceError:
        return None  # on a hub


def _name_of_unchanged(before: ModelFiles | None, adapter: LoRARequest) -> str | None:
    """Return the name of files that have not changed since `before`."""
    if before is None:
        return None
    try:
        return _with_form(before.identity(), adapter)
    except KeySpaceError as error:
        _log.warning("KV of adapter %r is not shared: %s.", adapter.lora_name, error)
        return None


def _with_form(name: str, adapter: LoRARequest) -> str:
    """Return the name of an adapter's content, and how vLLM is to read it.

    Raises KeySpaceError for a field of another version of vLLM, which may say where else weights come from.
    """
    for field in adapter.__struct_fields__:
        if field not in KNOWN_FIELDS and getattr(adapter, field):
            raise KeySpaceError(f"it is not known here what {field} of adapter {adapter.lora_name!r} does")
    return f"{name}, 3D" if getattr(adapter, "is_3d_lora_weight", False) else name
