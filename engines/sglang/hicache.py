"""SGLang's HiCache keeps its pages in the pool: a storage backend that SGLang loads by name.

    --hicache-storage-backend dynamic --hicache-storage-backend-extra-config
    '{"backend_name": "weir", "module_path": "engines.sglang.hicache", "class_name": "WeirHiCache",
      "pool": {"address": "10.0.0.1", "homes": ["10.0.0.3"]}}'

SGLang hashes a page's tokens with those before it. The pool's key is the tenant's keyed hash of that, of the
model's name and of the shard, as SGLang's own backend for files names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sglang.srt.mem_cache.hicache_storage import (
    HiCacheStorage,
    HiCacheStorageConfig,
    HiCacheStorageExtraInfo,
)

from engines.versions import warn_if_untested
from hostlib.engine import Item, PoolConfig, open_objects
from hostlib.errors import ConfigError
from hostlib.transfer import BlockRef, chain_references

_PAGE = b"sglang page"


class WeirHiCache(HiCacheStorage):  # type: ignore[misc] # sglang is not in the project's environment
    """See the module. Raises ConfigError for settings that can't be."""

    def __init__(self, storage_config: HiCacheStorageConfig, kwargs: dict[str, Any] | None = None) -> None:
        extra = storage_config.extra_config or {}
        warn_if_untested("SGLang")
        if not isinstance(extra.get("pool"), dict):
            raise ConfigError(
                "the extra config of the backend needs an object 'pool' with the pool's settings"
            )
        if storage_config.dcp_size > 1:
            raise ConfigError("pages sharded by decode context parallelism are not supported")
        self._pool = open_objects(PoolConfig.from_mapping(extra["pool"]))
        self._shard = _shard(storage_config)

    def get(
        self, key: str, target_location: torch.Tensor | None = None, target_sizes: Any = None
    ) -> torch.Tensor | None:
        """The page, in `target_location`; None if it can't be had."""
        return self.batch_get([key], [target_location])[0]

    def batch_get(
        self, keys: list[str], target_locations: Sequence[Any] | None = None, target_sizes: Any = None
    ) -> list[torch.Tensor | None]:
        """The same for many; a location that is not contiguous is filled by way of a copy."""
        targets = list(target_locations or [])
        if len(targets) != len(keys) or not all(isinstance(target, torch.Tensor) for target in targets):
            raise ValueError(f"{len(keys)} pages need as many tensors to be put into")
        flat = [target.contiguous() for target in targets]
        items = [Item(block, _bytes(one)) for block, one in zip(self._blocks(keys), flat, strict=True)]
        arrived = self._pool.load(items)
        for target, one, there in zip(targets, flat, arrived, strict=True):
            if there and one.data_ptr() != target.data_ptr():
                target.copy_(one)
        return [target if there else None for target, there in zip(targets, arrived, strict=True)]

    def set(self, key: str, value: Any = None, target_location: Any = None, target_sizes: Any = None) -> bool:
        """Offer a page; whether it is held."""
        return self.batch_set([key], [value])

    def batch_set(
        self, keys: list[str], values: Any = None, target_locations: Any = None, target_sizes: Any = None
    ) -> bool:
        """Offer pages; whether all are held."""
        blocks = self._blocks(keys)
        items = [Item(block, _bytes(value.contiguous())) for block, value in zip(blocks, values, strict=True)]
        return all(self._pool.store(items))

    def exists(self, key: str) -> bool:
        """Whether the pool has a page."""
        return self.batch_exists([key]) == 1

    def batch_exists(self, keys: list[str], extra_info: HiCacheStorageExtraInfo | None = None) -> int:
        """How many pages the pool has, from the first on."""
        return self._pool.prefix(self._blocks(keys))

    def get_stats(self) -> None:
        """SGLang asks for its own kind of object here; the pool's counters are in `pool_stats`."""

    def pool_stats(self) -> dict[str, Any]:
        """Counters of the pool's client."""
        return self._pool.stats()

    def close(self) -> None:
        """Give the pool back."""
        self._pool.close()

    def _blocks(self, keys: list[str]) -> list[BlockRef]:
        return chain_references([self._pool.seal.key(_PAGE, self._shard, key.encode()) for key in keys])


def _shard(config: HiCacheStorageConfig) -> bytes:
    """Model and slice of it: KV that is replicated over ranks (MLA) is one and the same."""
    parts: list[Any] = [config.model_name, config.is_page_first_layout, config.is_mla_model]
    parts += [config.pp_rank, config.pp_size, config.attn_cp_rank, config.attn_cp_size]
    if not config.is_mla_model:
        parts += [config.tp_rank, config.tp_size]
    return repr(parts).encode()


def _bytes(tensor: torch.Tensor) -> memoryview:
    return memoryview(tensor.detach().view(torch.uint8).reshape(-1).numpy())
