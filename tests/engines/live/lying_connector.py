"""A connector with defects on purpose, for the conformance suite.

vLLM's example names KV by tokens alone; this one also damages what it loads.
"""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.example_connector import ExampleConnector


class LyingConnector(ExampleConnector):  # type: ignore[misc] # vllm is not in the project's environment
    """See the module."""

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        super().start_load_kv(forward_context, **kwargs)
        for request in self._get_connector_metadata().requests:
            if not request.is_store:
                for layer in forward_context.no_compile_layers.values():
                    cache = getattr(layer, "kv_cache", None)
                    if cache is not None:
                        blocks = (request.slot_mapping // self._block_size).unique()
                        cache[blocks] = -cache[blocks]
