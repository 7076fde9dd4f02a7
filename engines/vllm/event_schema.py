"""KV events in vLLM's schema (`vllm.distributed.kv_events`), one for each block or run of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vllm.distributed.kv_events import MEDIUM_STORAGE, BlockRemoved, BlockStored
from vllm.v1.core.kv_cache_utils import (
    generate_block_hash_extra_keys,
    maybe_convert_block_hash,
    to_event_extra_keys,
)

from engines.vllm.events import Described, PoolEvents

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vllm.config import VllmConfig
    from vllm.v1.request import Request

    from hostlib.engine import KvSpace

LOCALITY: Final = "REMOTE"
"""Locality of a block of the pool, as seen from any engine."""


def publishes(config: VllmConfig) -> bool:
    """Return whether vLLM publishes events."""
    events = config.kv_events_config
    return events is not None and bool(events.enable_kv_cache_events)


def make_events(space: KvSpace) -> PoolEvents:
    """Return what collects an engine's events."""

    def describe(request: Request, number: int) -> Described | None:
        return _describe(request, number, space.block_tokens)

    return PoolEvents(describe, _removed, space.shard_count)


def joined(events: Iterable[BlockStored | BlockRemoved]) -> list[BlockStored | BlockRemoved]:
    """Return the same events, with neighbouring blocks that were stored, or removed, in one event."""
    runs: list[Any] = []
    for event in events:
        if runs and _continues(runs[-1], event):
            run = runs[-1]
            run.block_hashes += event.block_hashes
            if isinstance(event, BlockStored):
                run.token_ids += event.token_ids
                run.extra_keys = [*(run.extra_keys or []), *(event.extra_keys or [])]
        else:
            runs.append(event)
    return runs


def _continues(last: Any, event: BlockStored | BlockRemoved) -> bool:
    """Return whether what an event says can be said in the one before, too."""
    if type(last) is not type(event):
        return False
    is_behind = isinstance(event, BlockStored) and event.parent_block_hash == last.block_hashes[-1]
    return isinstance(event, BlockRemoved) or (is_behind and event.lora_name == last.lora_name)


def _describe(request: Request, number: int, block_tokens: int) -> Described | None:
    hashes = request.block_hashes  # of whole blocks, as always where all layers are of one group
    if number >= len(hashes):
        return None
    start, end = number * block_tokens, (number + 1) * block_tokens
    extra_keys, _ = generate_block_hash_extra_keys(request, start, end, 0)
    lora = request.lora_request
    block_hash = maybe_convert_block_hash(hashes[number])
    event = BlockStored(
        block_hashes=[block_hash],
        parent_block_hash=maybe_convert_block_hash(hashes[number - 1]) if number else None,
        token_ids=list(request.all_token_ids[start:end]),
        block_size=block_tokens,
        lora_id=lora.adapter_id if lora is not None else None,
        medium=MEDIUM_STORAGE,
        lora_name=lora.name if lora is not None else None,
        extra_keys=to_event_extra_keys([extra_keys]),
        group_idx=0,
        locality=LOCALITY,
    )
    return Described(block_hash, event)


def _removed(block_hash: Any) -> BlockRemoved:
    return BlockRemoved(block_hashes=[block_hash], medium=MEDIUM_STORAGE, group_idx=0, locality=LOCALITY)
