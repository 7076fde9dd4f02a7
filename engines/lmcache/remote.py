"""LMCache's engines keep their chunks in the pool: a RemoteConnector, loaded as a remote storage plugin.

    remote_url: "plugin://weir"                      # LMCache's configuration file
    remote_storage_plugins: ["weir"]
    extra_config:
      remote_storage_plugin.weir.module_path: engines.lmcache.remote
      remote_storage_plugin.weir.class_name: WeirRemoteConnector
      remote_storage_plugin.weir.pool: {"address": "10.0.0.1", "homes": ["10.0.0.3"]}

For LMCache inside the engine's process; its multiprocess server takes `engines.lmcache.l2_adapter`. A chunk
is one object: LMCache's own description of it, unless that is switched off (save_chunk_meta), then its bytes.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from lmcache.v1.protocol import RemoteMetadata
from lmcache.v1.storage_backend.connector.base_connector import RemoteConnector

from engines.versions import warn_if_untested
from hostlib.engine import Item, PoolConfig, open_objects
from hostlib.errors import ConfigError
from hostlib.transfer import BlockRef

if TYPE_CHECKING:
    from lmcache.utils import CacheEngineKey
    from lmcache.v1.config import LMCacheEngineConfig
    from lmcache.v1.memory_management import MemoryObj
    from lmcache.v1.storage_backend.local_cpu_backend import LocalCPUBackend

SETTINGS = "remote_storage_plugin.weir.pool"
_CHUNK = b"lmcache remote chunk"
_log = logging.getLogger("weir")


class WeirRemoteConnector(RemoteConnector):  # type: ignore[misc] # lmcache is not in the project's environment
    """Raises ConfigError at the start for settings that can't be; later a chunk not to be had is a miss."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, local_cpu_backend: LocalCPUBackend, config: LMCacheEngineConfig
    ) -> None:
        super().__init__(config, local_cpu_backend.metadata)
        warn_if_untested("LMCache")
        settings = (config.extra_config or {}).get(SETTINGS)
        if not isinstance(settings, dict):
            raise ConfigError(f"LMCache's extra_config needs {SETTINGS!r} with address and homes")
        self._memory = local_cpu_backend
        self._pool = open_objects(PoolConfig.from_mapping(settings))

    async def exists(self, key: CacheEngineKey) -> bool:
        """Whether the pool has a chunk."""
        (there,) = await asyncio.wrap_future(self._pool.begin_present([self._block(key)]))
        return there

    def exists_sync(self, key: CacheEngineKey) -> bool:
        """`exists`, blocking."""
        return self._pool.prefix([self._block(key)]) == 1

    async def get(self, key: CacheEngineKey) -> MemoryObj | None:
        """A chunk in LMCache's memory; None if it can't be had, or is none."""
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
        content = memoryview(memory_obj.byte_array).cast("B")
        described = b""
        if self.save_chunk_meta:
            described = RemoteMetadata(
                len(content), memory_obj.get_shapes(), memory_obj.get_dtypes(), memory_obj.get_memory_format()
            ).serialize()
        item = Item(self._block(key), described + content)
        await asyncio.wrap_future(self._pool.begin_store([item]))

    async def list(self) -> list[str]:
        """Nothing: storage nodes hold keyed hashes, not LMCache's names."""
        return []

    async def close(self) -> None:
        """Give the pool back."""
        await asyncio.to_thread(self._pool.close)

    def report(self) -> dict[str, Any]:
        """Counters of the pool."""
        return self._pool.stats()

    def _block(self, key: CacheEngineKey) -> BlockRef:
        return BlockRef(self._pool.seal.key(_CHUNK, key.to_string().encode()))
