"""A connector that claims the beginning of each long prompt and fails to load it, for use beside another one.

It leaves half-written bytes behind and reports the blocks, as vLLM's interface asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1, KVConnectorMetadata

CLAIMED_TOKENS = 256
failures: list[int] = []
"""Blocks that could not be loaded, of all engines of this process."""


def failure_count() -> int:
    """Return how many blocks could not be loaded so far in this process."""
    return len(failures)


@dataclass
class _Blocks(KVConnectorMetadata):  # type: ignore[misc] # vllm is not in the project's environment
    ids: list[int] = field(default_factory=list)


class FailingPeer(KVConnectorBase_V1):  # type: ignore[misc] # vllm is not in the project's environment
    """See the module."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        self._block_tokens = vllm_config.cache_config.block_size
        self._num_blocks = kv_cache_config.num_blocks
        self._caches: dict[str, torch.Tensor] = {}
        self._claimed: set[str] = set()
        self._to_load: list[int] = []
        self._failed: set[int] = set()

    @property
    def requires_kv_delivery(self) -> bool:
        """Return False: it stores nothing."""
        return False

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        self._caches = kv_caches

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        blocks = self._get_connector_metadata()
        assert isinstance(blocks, _Blocks)
        for block_id in blocks.ids:
            for cache in self._caches.values():
                block = cache.movedim(list(cache.shape).index(self._num_blocks), 0)[block_id]
                block.copy_(torch.randn_like(block))
            self._failed.add(block_id)
            failures.append(block_id)

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Do nothing."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def wait_for_save(self) -> None:
        """Do nothing."""

    def get_block_ids_with_load_errors(self) -> set[int]:
        failed, self._failed = self._failed, set()
        return failed

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int, bool]:
        if num_computed_tokens or request.num_tokens <= CLAIMED_TOKENS or request.request_id in self._claimed:
            return 0, False
        return CLAIMED_TOKENS, False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        if num_external_tokens:
            self._claimed.add(request.request_id)
            self._to_load += blocks.get_block_ids()[0][: num_external_tokens // self._block_tokens]

    def build_connector_meta(self, scheduler_output: Any) -> _Blocks:
        blocks, self._to_load = _Blocks(self._to_load), []
        return blocks
