"""A connector that says it has the beginning of long prompts, writes anything there, and may say so."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any

import torch
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1, KVConnectorMetadata

CLAIMED_TOKENS = 128
BLOCKS = 200


@dataclass
class Wanted(KVConnectorMetadata):  # type: ignore[misc] # vllm is not in the project's environment
    """Blocks to load."""

    block_ids: list[int] = field(default_factory=list)


class FailingPeer(KVConnectorBase_V1):  # type: ignore[misc] # as above
    """See the module."""

    claims = True
    reports = True
    """Whether it says that what it wrote is wrong."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._loaded: set[str] = set()
        self._wanted: list[int] = []
        self._failed: set[int] = set()
        self._tensors: dict[str, torch.Tensor] = {}

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        self._tensors = kv_caches

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        for block_id in self._get_connector_metadata().block_ids:
            for tensor in self._tensors.values():
                block = tensor.movedim(list(tensor.shape).index(BLOCKS), 0)[block_id]
                block.copy_(torch.randn_like(block))
            self._failed |= {block_id} if self.reports else set()

    def wait_for_layer_load(self, layer_name: str) -> None: ...

    def save_kv_layer(self, *arguments: Any, **named: Any) -> None: ...

    def wait_for_save(self) -> None: ...

    def get_block_ids_with_load_errors(self) -> set[int]:
        failed, self._failed = self._failed, set()
        return failed

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int, bool]:
        if (
            not self.claims
            or request.request_id in self._loaded
            or num_computed_tokens
            or request.num_tokens <= CLAIMED_TOKENS
        ):
            return 0, False
        return CLAIMED_TOKENS, False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        if num_external_tokens:
            self._loaded.add(request.request_id)
            self._wanted += blocks.get_block_ids()[0][: num_external_tokens // 32]

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        wanted, self._wanted = self._wanted, []
        return Wanted(wanted)


class EndingPeer(FailingPeer):
    """A connector that has nothing, and during whose third layer the process gets a signal to end."""

    claims = False

    def wait_for_layer_load(self, layer_name: str) -> None:
        if ".2." in layer_name:
            signal.raise_signal(signal.SIGTERM)
