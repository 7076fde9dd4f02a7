"""SGLang's HiCache keeps its pages in the pool: a storage backend that SGLang loads by name.

    --hicache-storage-backend dynamic --hicache-storage-backend-extra-config
    '{"backend_name": "weir", "module_path": "engines.sglang.hicache", "class_name": "WeirHiCache",
      "pool": {"address": "10.0.0.1", "homes": ["10.0.0.3"]}}'

SGLang hashes a page's tokens with those before it. The pool's key is the tenant's keyed hash of that, of the
shard, and of what the pages of a server depend on (`engines.sglang.names`): its weights, its options, and how
its host memory orders a page's bytes. Where that is not known, nobody else finds the pages.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import torch
from sglang.srt.mem_cache.hicache_storage import (
    HiCacheStorage,
    HiCacheStorageConfig,
    HiCacheStorageExtraInfo,
)

from engines.numbers import holds_numbers
from engines.sglang.names import begin_naming, check_answers, had_storage
from engines.sglang.weight_changes import listen
from engines.versions import check_names, warn_if_untested
from hostlib.engine import Item, PoolConfig, open_objects
from hostlib.protocol.errors import ConfigError, KeySpaceError
from hostlib.protocol.transfer import BlockRef, chain_references

_PAGE = b"sglang page"
_log = logging.getLogger("weir")


class WeirHiCache(HiCacheStorage):  # type: ignore[misc] # sglang is not in the project's environment
    """See the module. Raises ConfigError for settings that can't be."""

    def __init__(self, storage_config: HiCacheStorageConfig, kwargs: dict[str, Any] | None = None) -> None:
        extra = storage_config.extra_config or {}
        check_names("SGLang")
        warn_if_untested("SGLang")
        if not isinstance(extra.get("pool"), dict):
            raise ConfigError(
                "the extra config of the backend needs an object 'pool' with the pool's settings"
            )
        if getattr(storage_config, "dcp_size", 1) > 1:  # which SGLang has from 0.5.23 on
            raise ConfigError("pages sharded by decode context parallelism are not supported")
        if extra.get("interface_v1"):  # SGLang would call batch_set_v1, and nothing would be stored
            raise ConfigError("this backend has no interface_v1: leave it out of the extra config")
        self._pool = open_objects(PoolConfig.from_mapping(extra["pool"]))
        self._shard = _shard(storage_config)
        self._own_name = secrets.token_hex(16)
        """Under which pages are kept that this backend alone may find."""
        self._naming: Future[str] | None = None
        self._name: str | None = self._own_name
        self._is_left = False
        """Whether nothing is kept or found, as SGLang's own cache may hold KV of former weights."""

    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        """Name the pages by the memory that SGLang says they come from; from now on others know the name.

        ConfigError if that memory gives no whole pages to a backend, so that nothing would ever be stored,
        and for options by which SGLang returns what it does not know of loaded tokens.
        """
        super().register_mem_pool_host(mem_pool_host)
        check_answers()
        _check_pages(mem_pool_host)
        self._name, self._naming = None, begin_naming(mem_pool_host)
        if not had_storage():  # whether weights have changed since the cache was empty, nobody noticed
            self.weights_changed()
        try:
            listen(self)
        except KeySpaceError as error:
            self._name = self._own_name
            self._say_why(error)

    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: Any) -> None:
        """Raise ConfigError for another pool of host memory beside that of the KV: its pages are not kept.

        With a part of them, a model would continue a prompt from a state that is not the prompt's.
        """
        if str(host_pool_name) != "kv":
            raise ConfigError(
                f"this model or speculative decoding keeps {host_pool_name} beside the KV of each token: "
                "use it without the pool"
            )

    def weights_changed(self) -> None:
        """Handle a change of the server's weights: what its memory holds may be of the former ones."""
        if not self._is_left:
            _log.warning(
                "The pool is left until SGLang flushes its cache: its weights change, or may have changed."
            )
        self._is_left = True

    def cache_emptied(self) -> None:
        """Share again: SGLang's cache is empty, so pages from now on are of the present weights."""
        if self._is_left:
            self.clear()
            self._is_left = False
            _log.warning("Pages have a new name: from now on no other SGLang server shares them.")

    def get(
        self, key: str, target_location: torch.Tensor | None = None, target_sizes: Any = None
    ) -> torch.Tensor | None:
        """Return the page, in `target_location`; None if it can't be had."""
        return self.batch_get([key], [target_location])[0]

    def batch_get(
        self, keys: list[str], target_locations: Sequence[Any] | None = None, target_sizes: Any = None
    ) -> list[torch.Tensor | None]:
        """Fill many locations; one that is not contiguous is filled through a copy."""
        targets = list(target_locations or [])
        if len(targets) != len(keys) or not all(isinstance(target, torch.Tensor) for target in targets):
            raise ValueError(f"{len(keys)} pages need as many tensors to be put into")
        flat = [target.contiguous() for target in targets]
        if not self._is_named():
            return [None] * len(keys)
        items = [Item(block, _bytes(one)) for block, one in zip(self._blocks(keys), flat, strict=True)]
        name = self._name
        arrived = self._pool.load(items)
        if self._is_left or self._name != name:  # the weights have changed meanwhile
            return [None] * len(keys)
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
        """Offer pages but those that are NaN; whether all are held."""
        if not self._is_named():
            return False
        pages = [
            (block, value.contiguous())
            for block, value in zip(self._blocks(keys), values, strict=True)
            if holds_numbers(value)
        ]
        held = self._pool.store([Item(block, _bytes(page)) for block, page in pages])
        return all(held) and len(pages) == len(keys)

    def exists(self, key: str) -> bool:
        """Return whether the pool has a page."""
        return self.batch_exists([key]) == 1

    def batch_exists(self, keys: list[str], extra_info: HiCacheStorageExtraInfo | None = None) -> int:
        """Return how many pages the pool has, from the first on."""
        return self._pool.prefix(self._blocks(keys)) if self._is_named() else 0

    def clear(self) -> None:
        """Find nothing of what was kept before: from now on pages are shared with no other server."""
        self._own_name = self._name = secrets.token_hex(16)

    def get_stats(self) -> None:
        """Return nothing: SGLang asks for its own kind of object here. The pool's counters are in
        `pool_stats`."""

    def pool_stats(self) -> dict[str, Any]:
        """Return the counters of the pool's client."""
        return self._pool.stats()

    def close(self) -> None:
        """Give the pool back."""
        self._pool.close()

    def _is_named(self) -> bool:
        """Return whether the pages have a name, once the model's files are hashed, and may be used."""
        if self._name is None and self._naming is not None and self._naming.done():
            try:
                self._name = self._naming.result()
                _log.warning("KV is shared with the SGLang servers of this tenant that are like this one.")
            except KeySpaceError as error:
                self._name = self._own_name
                self._say_why(error)
        return self._name is not None and not self._is_left

    def _say_why(self, error: KeySpaceError) -> None:
        _log.warning("KV is not shared with other SGLang servers: %s.", error)

    def _blocks(self, keys: list[str]) -> list[BlockRef]:
        assert self._name is not None
        named = (self._name.encode(), self._shard)
        return chain_references([self._pool.seal.key(_PAGE, *named, key.encode()) for key in keys])


def _check_pages(pool: Any) -> None:
    """Raise ConfigError where SGLang has no page of this model's KV as one tensor.

    That is so with scales beside the numbers (MXFP8), with keys longer than values, and where the KV lies in
    several pools.
    """
    try:
        is_empty = pool.get_dummy_flat_data_page().numel() == 0
    except NotImplementedError as error:
        raise ConfigError(f"SGLang gives a backend like this one no pages of such KV: {error}") from None
    if is_empty:
        raise ConfigError(f"SGLang gives a backend like this one empty pages of a {type(pool).__name__}")


def _shard(config: HiCacheStorageConfig) -> bytes:
    """Model and slice of it: KV that is replicated over ranks (MLA) is one and the same."""
    parts: list[Any] = [config.model_name, config.is_page_first_layout, config.is_mla_model]
    parts += [getattr(config, "should_split_heads", False), getattr(config, "tp_lcm_size", None)]
    parts += [config.pp_rank, config.pp_size, config.attn_cp_rank, config.attn_cp_size]
    if not config.is_mla_model:
        parts += [config.tp_rank, config.tp_size]
    return repr(parts).encode()


def _bytes(tensor: torch.Tensor) -> memoryview:
    return memoryview(tensor.detach().view(torch.uint8).reshape(-1).numpy())
