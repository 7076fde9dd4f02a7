"""LMCache keeps its chunks in the pool: an L2 adapter for its multiprocess server, loaded as a plugin.

    --l2-adapter '{"type": "plugin", "module_path": "engines.lmcache.l2_adapter",
                   "class_name": "WeirL2Adapter",
                   "adapter_params": {"address": "10.0.0.1", "homes": ["10.0.0.3"]}}'

`adapter_params` may also have `max_capacity_gb`: how much LMCache may keep there before it evicts; 0, or not
given, for no limit of its own. With KV in 8 bits (`fp8`), and where LMCache serializes its chunks (`serde`),
`byte_format` has to say so, in the same words on every server: chunks of plain bytes are not kept without it.

LMCache names its chunks itself, model, rank and salt among the names; the pool's key is the tenant's keyed
hash of that name, of the content of the model's files (`engines.lmcache.model_names`), of types and shapes of
an object's tensors (`engines.lmcache.forms`) and of LMCache's version. Chunks are immutable, so there is
nothing to lock: one that has gone fails to load, and LMCache recomputes it. Usage is what this adapter stored
and did not delete: each object counts once, however often it is stored.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import fields
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any

from lmcache.lmcache_native import Bitmap
from lmcache.v1.distributed.internal_api import L2StoreResult
from lmcache.v1.distributed.l2_adapters.base import L2AdapterInterface
from lmcache.v1.platform import create_event_notifier

from engines.lmcache.forms import Forms, form_of_object
from engines.lmcache.model_names import ModelNames, tell_what_names_lack
from engines.versions import warn_if_untested
from hostlib.engine import Item, PoolConfig, open_objects
from hostlib.protocol.errors import ConfigError
from hostlib.protocol.transfer import BlockRef

if TYPE_CHECKING:
    from lmcache.v1.distributed.api import MemoryLayoutDesc, ObjectKey
    from lmcache.v1.memory_management import MemoryObj

_CHUNK = b"lmcache chunk"
KEY_FIELDS = ("chunk_hash", "model_name", "kv_rank", "object_group_id", "cache_salt")
"""Fields of LMCache's own names."""
CAPACITY = "max_capacity_gb"
BYTE_FORMAT = "byte_format"
MAX_COUNTED = 1 << 20
"""Objects that are counted; the one that was counted first is left out for one more."""
DELETE_S = 30.0
"""Seconds for which `delete` waits for the pool."""
STORE_S = 60.0
"""Seconds for which the objects of a store are read. LMCache's lock on them lasts five minutes by default
(`--l1-read-ttl-seconds`): then it may put other chunks in their place."""

_log = logging.getLogger("weir")


class _Tasks:
    """Tasks of one kind: their results as they come, and the event that says so."""

    def __init__(self) -> None:
        self.event = create_event_notifier()
        self._results: dict[int, Any] = {}
        self._changing = threading.Lock()

    def watch(
        self,
        task: int,
        future: Future[Any],
        result: Callable[[Any], Any],
        failed: Any,
        objects: Sequence[MemoryObj] = (),
    ) -> None:
        """Keep `result` of what the future yields, or `failed`; `objects` are in use until then."""

        def done(ended: Future[Any], used: Sequence[MemoryObj] = objects) -> None:
            try:
                kept = result(ended.result())
            except BaseException:  # a cancelled future raises one that is no Exception
                kept = failed
            with self._changing:
                self._results[task] = kept
                self.event.notify()

        future.add_done_callback(done)

    def take(self, task: int) -> Any | None:
        """Return a task's result, once."""
        with self._changing:
            return self._results.pop(task, None)

    def take_all(self) -> dict[int, Any]:
        """Return all results, once."""
        with self._changing:
            taken, self._results = self._results, {}
            return taken


class WeirL2Adapter(L2AdapterInterface):  # type: ignore[misc] # lmcache is not in the project's environment
    """See the module; `params` are the pool's settings (`hostlib.engine.PoolConfig`)."""

    def __init__(self, params: dict[str, Any], **_: Any) -> None:
        warn_if_untested("LMCache")
        settings = dict(params)
        super().__init__(_capacity_bytes(settings.pop(CAPACITY, 0)))
        byte_format = settings.pop(BYTE_FORMAT, None)
        if byte_format is not None and (not isinstance(byte_format, str) or not byte_format):
            raise ConfigError(f"{BYTE_FORMAT} is a word for what plain bytes are, not {byte_format!r}")
        self._pool = open_objects(PoolConfig.from_mapping(settings))
        self._counted: dict[ObjectKey, int] = {}
        """Bytes of each object that counts as used."""
        self._counting = threading.Lock()
        self._names, self._forms, self._version = ModelNames(), Forms(byte_format), version("lmcache")
        self._has_told_of_bytes = False
        tell_what_names_lack()
        self._stores, self._lookups, self._loads = _Tasks(), _Tasks(), _Tasks()
        self._numbers = threading.Lock()
        self._next = 0

    def get_store_event_fd(self) -> int:
        return int(self._stores.event.fileno())

    def get_lookup_and_lock_event_fd(self) -> int:
        return int(self._lookups.event.fileno())

    def get_load_event_fd(self) -> int:
        return int(self._loads.event.fileno())

    def submit_store_task(self, keys: list[ObjectKey], objects: list[MemoryObj]) -> int:
        blocks = self._blocks_of(keys, objects)
        sizes = [memoryview(one.byte_array).nbytes for one in objects]
        fit = [at for at in self._fitting(keys, sizes) if at in blocks]
        items = [Item(blocks[at], objects[at].byte_array, keys[at].model_name) for at in fit]

        def result(held: list[bool]) -> L2StoreResult:
            new = self._count([(keys[at], sizes[at]) for at, one in zip(fit, held, strict=True) if one])
            return L2StoreResult(all(held) and len(blocks) == len(keys), sum(new))

        task = self._number()
        future = self._pool.begin_store(items, STORE_S)
        self._stores.watch(task, future, result, L2StoreResult(False, 0), objects)
        return task

    def delete(self, keys: list[ObjectKey]) -> None:
        """Delete objects from the pool, whoever stored them; returns when that is done, or was given up."""
        blocks = self._blocks(keys, [self._forms.seen(key) for key in keys])
        future = self._pool.begin_delete([block for _, block in blocks])
        try:
            results = list(zip(blocks, future.result(DELETE_S), strict=True))
        except (TimeoutError, CancelledError):  # the second one if the adapter is closed meanwhile
            future.cancel()
            results = []
        kept = {at for (at, _), one in results if not one}
        gone = {at for (at, _), _ in results} - kept
        if len(gone) < len(keys):
            count = len(keys) - len(gone)
            _log.warning("%d of %d objects could not be deleted from the pool.", count, len(keys))
        self._uncount([keys[at] for at in gone])

    def pop_completed_store_tasks(self) -> dict[int, L2StoreResult]:
        return self._stores.take_all()

    def submit_lookup_and_lock_task(
        self, keys: list[ObjectKey], group_layout_descs: dict[int, MemoryLayoutDesc]
    ) -> int:
        task = self._number()
        announced = group_layout_descs or {}
        forms = [self._forms.possible(key, announced.get(key.object_group_id)) for key in keys]
        blocks = self._blocks(keys, forms)

        def result(there: list[bool]) -> Bitmap:
            return _bitmap(len(keys), [at for (at, _), one in zip(blocks, there, strict=True) if one])

        future = self._pool.begin_present([block for _, block in blocks])
        self._lookups.watch(task, future, result, Bitmap(len(keys)))
        return task

    def query_lookup_and_lock_result(self, task_id: int) -> Bitmap | None:
        return self._lookups.take(task_id)

    def submit_unlock(self, keys: list[ObjectKey]) -> None:
        """Do nothing: nothing is locked."""

    def submit_load_task(self, keys: list[ObjectKey], objects: list[MemoryObj]) -> int:
        blocks = self._blocks_of(keys, objects)
        items = [Item(block, objects[at].byte_array) for at, block in blocks.items()]

        def result(loaded: list[bool]) -> Bitmap:
            arrived = [at for at, one in zip(blocks, loaded, strict=True) if one]
            self._notify_keys_accessed([keys[at] for at in arrived])
            return _bitmap(len(keys), arrived)

        task = self._number()
        self._loads.watch(task, self._pool.begin_load(items), result, Bitmap(len(keys)), objects)
        return task

    def query_load_result(self, task_id: int) -> Bitmap | None:
        return self._loads.take(task_id)

    def report_status(self) -> dict[str, Any]:
        stats = self._pool.stats()
        return {"is_healthy": self._pool.is_answering, "type": "weir", **stats}

    def close(self) -> None:
        self._pool.close()
        for tasks in (self._stores, self._lookups, self._loads):
            tasks.event.close()

    def _fitting(self, keys: list[ObjectKey], sizes: list[int]) -> list[int]:
        """Return which objects may be stored: all that count already, and new ones while there is room."""
        if not self._max_capacity_bytes:
            return list(range(len(keys)))
        fit, used = [], self.get_usage().total_bytes_used
        for at, (key, size) in enumerate(zip(keys, sizes, strict=True)):
            if key not in self._counted:
                if used + size > self._max_capacity_bytes:
                    continue
                used += size
            fit.append(at)
        return fit

    def _count(self, stored: list[tuple[ObjectKey, int]]) -> list[int]:
        """Count objects that were not counted; their sizes."""
        with self._counting:
            new = {key: size for key, size in stored if key not in self._counted}
            self._counted |= new
            left_out = list(islice(self._counted, max(0, len(self._counted) - MAX_COUNTED)))
        self._uncount(left_out)
        if new:
            self._notify_keys_stored(list(new), list(new.values()))
        return list(new.values())

    def _uncount(self, keys: list[ObjectKey]) -> None:
        """Count these objects no longer, if they are counted."""
        with self._counting:
            gone = {key: self._counted.pop(key) for key in dict.fromkeys(keys) if key in self._counted}
        if gone:
            self._notify_keys_deleted(list(gone), list(gone.values()))

    def _number(self) -> int:
        with self._numbers:
            self._next += 1
            return self._next

    def _blocks_of(self, keys: list[ObjectKey], objects: list[MemoryObj]) -> dict[int, BlockRef]:
        """Return the blocks of these objects whose model's weights have a name, by the objects' places."""
        forms = [self._forms.see(key, form_of_object(one)) for key, one in zip(keys, objects, strict=True)]
        self._tell_of_bytes(forms)
        return dict(self._blocks(keys, [[form] for form in forms]))

    def _blocks(self, keys: list[ObjectKey], forms: list[list[str]]) -> list[tuple[int, BlockRef]]:
        """Return the blocks of these keys in each of their forms, each with the key's place."""
        names = {model: self._names.of(model) for model in {key.model_name for key in keys}}
        return [
            (at, self._block(key, weights, form))
            for at, key in enumerate(keys)
            for form in map(self._forms.name, forms[at])
            if (weights := names[key.model_name]) is not None and form is not None
        ]

    def _tell_of_bytes(self, forms: list[str]) -> None:
        if not self._has_told_of_bytes and any(self._forms.name(form) is None for form in forms):
            self._has_told_of_bytes = True
            _log.warning(
                "KV is not shared: LMCache's chunks are plain bytes, which may be numbers of any 8-bit "
                "format, or serialized. Say what they are in the adapter_params of every server, as "
                "%r: 'fp8_e4m3'.",
                BYTE_FORMAT,
            )

    def _block(self, key: ObjectKey, weights: str, form: str) -> BlockRef:
        parts = [key.model_name, str(key.kv_rank), str(key.object_group_id), key.cache_salt]
        parts += [weights, form, self._version]
        # What a later LMCache names chunks by, too.
        parts += [repr(getattr(key, one.name)) for one in fields(key) if one.name not in KEY_FIELDS]
        return BlockRef(self._pool.seal.key(_CHUNK, key.chunk_hash, *(part.encode() for part in parts)))


def _capacity_bytes(gigabytes: Any) -> int:
    if isinstance(gigabytes, bool) or not isinstance(gigabytes, int | float) or not 0 <= gigabytes < 1 << 30:
        raise ConfigError(f"{CAPACITY} is a number of GiB, 0 or more, not {gigabytes!r}")
    return int(gigabytes * (1 << 30))


def _bitmap(length: int, places: list[int]) -> Bitmap:
    bitmap = Bitmap(length)
    for place in places:
        bitmap.set(place)
    return bitmap
