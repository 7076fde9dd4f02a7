"""The engine's own KV cache, as vLLM's scheduler manages it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.core.kv_cache_utils import KVCacheBlock


class VllmCache:
    """Parts of vLLM's own cache that the scheduler's side uses. vLLM hands the manager over when both are
    made."""

    def __init__(self) -> None:
        self._manager: KVCacheManager | None = None

    def bind(self, manager: KVCacheManager) -> None:
        """Use this manager, which has the engine's blocks from now on."""
        self._manager = manager

    def blocks(self, request_id: str) -> Sequence[KVCacheBlock]:
        """Return the blocks of a request, in the order of its tokens; none if it holds none."""
        blocks: Sequence[KVCacheBlock] = self._bound().get_blocks(request_id).blocks[0]
        return blocks

    def evict(self, block_ids: set[int]) -> None:
        """Remove these blocks from the engine's prefix cache, so that no further request finds them there."""
        self._bound().evict_blocks(block_ids)

    def is_empty(self) -> bool:
        """Return whether no request holds a block, and none can be found in the prefix cache."""
        pool = self._bound().block_pool
        in_use = pool.num_gpu_blocks - pool.get_num_free_blocks() - 1  # one block is never given to a request
        return in_use == 0 and len(pool.cached_block_hash_to_block) == 0

    def _bound(self) -> KVCacheManager:
        assert self._manager is not None, "vLLM's scheduler has not handed over its cache manager"
        return self._manager
