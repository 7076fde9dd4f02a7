"""vLLM keeps its KV cache in the pool: a KV connector that vLLM loads by its module's path.

    KVTransferConfig(kv_connector="WeirConnector", kv_connector_module_path="engines.vllm.connector",
                     kv_role="kv_both", kv_load_failure_policy="recompute",
                     kv_connector_extra_config={"address": "10.0.0.1", "homes": ["10.0.0.3"]})

vLLM makes one for its scheduler and one for each worker, in one process or several: those of a node share one
client of the pool (`hostlib.engine.node_client`).
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from vllm.distributed import get_tensor_model_parallel_rank, get_tp_group
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1, KVConnectorRole

from engines.vllm.adapters import AdapterNames
from engines.vllm.jobs import Jobs
from engines.vllm.keys import EngineKeys
from engines.vllm.resolved import resolve
from engines.vllm.scheduler import SchedulerSide
from engines.vllm.space import Settings, make_layout
from engines.vllm.weights import begin_naming
from engines.vllm.worker import WorkerSide
from hostlib.engine import open_pool

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorMetadata
    from vllm.forward_context import ForwardContext
    from vllm.v1.attention.backend import AttentionMetadata
    from vllm.v1.core.kv_cache_manager import KVCacheBlocks
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.kv_cache_interface import KVCacheConfig
    from vllm.v1.outputs import KVConnectorOutput
    from vllm.v1.request import Request

_log = logging.getLogger("weir")


class WeirConnector(KVConnectorBase_V1):  # type: ignore[misc] # vllm is not in the project's environment
    """Raises ConfigError or KeySpaceError at the start for what can't be; later it never stops the engine."""

    _open_pool = staticmethod(open_pool)

    def __init__(
        self, vllm_config: VllmConfig, role: KVConnectorRole, kv_cache_config: KVCacheConfig
    ) -> None:
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        settings = Settings.from_extra(dict(self._kv_transfer_config.kv_connector_extra_config))
        is_worker = role != KVConnectorRole.SCHEDULER
        rank = get_tensor_model_parallel_rank() if is_worker else 0
        layout = make_layout(vllm_config, kv_cache_config, settings, rank)
        pool = settings.pool
        has_own_process = vllm_config.parallel_config.distributed_executor_backend != "uni"
        if is_worker and has_own_process and pool.report is not None:
            pool = replace(pool, report=f"{pool.report}.worker{rank}")
        self._pool = self._open_pool(pool, layout.space)
        if is_worker and has_own_process:
            self._pool.blocks.silence_level = logging.DEBUG  # the scheduler asks first, and says so
        self._closed = False
        background = settings.loading == "background"
        self._scheduler = self._worker = None
        try:
            if role == KVConnectorRole.SCHEDULER:
                self._pool.join()
                keys = EngineKeys(
                    layout.space,
                    self._pool.seal,
                    resolve(vllm_config, kv_cache_config),
                    begin_naming(vllm_config),
                    AdapterNames(),
                )
                self._scheduler = SchedulerSide(self._pool, keys, background)
            else:
                self._worker = WorkerSide(
                    self._pool, layout, background, settings.recompute_ms, _of_all_ranks
                )
        except BaseException:
            self._pool.close()
            raise

    @property
    def requires_kv_delivery(self) -> bool:
        """The pool is a cache: what is not stored is a later miss, and no more."""
        return False

    # Of the worker

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        assert self._worker is not None
        self._worker.register(kv_caches)

    def start_load_kv(self, forward_context: ForwardContext, **kwargs: Any) -> None:
        assert self._worker is not None
        self._worker.start_loads(self._jobs())

    def wait_for_layer_load(self, layer_name: str) -> None:
        assert self._worker is not None
        self._worker.wait_for_layer(layer_name)

    def save_kv_layer(
        self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: AttentionMetadata, **kwargs: Any
    ) -> None:
        """Nothing: `wait_for_save` copies all layers."""

    def wait_for_save(self) -> None:
        assert self._worker is not None
        self._worker.store(self._jobs())

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str] | None, set[str] | None]:
        assert self._worker is not None
        return None, self._worker.finished_loads(finished_req_ids, self._jobs()) or None

    def get_block_ids_with_load_errors(self) -> set[int]:
        assert self._worker is not None
        return self._worker.take_failed_blocks()

    # Of the scheduler

    def get_num_new_matched_tokens(
        self, request: Request, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        assert self._scheduler is not None
        return self._scheduler.matched_tokens(request, num_computed_tokens)

    def update_state_after_alloc(
        self, request: Request, blocks: KVCacheBlocks, num_external_tokens: int
    ) -> None:
        assert self._scheduler is not None
        self._scheduler.allocated(request, blocks, num_external_tokens)

    def build_connector_meta(self, scheduler_output: SchedulerOutput) -> KVConnectorMetadata:
        assert self._scheduler is not None
        return self._scheduler.jobs(scheduler_output)

    def update_connector_output(self, connector_output: KVConnectorOutput) -> None:
        assert self._scheduler is not None
        self._scheduler.failed(connector_output.invalid_block_ids or ())

    def request_finished(self, request: Request, block_ids: list[int]) -> tuple[bool, dict[str, Any] | None]:
        assert self._scheduler is not None
        self._scheduler.finished(request.request_id)
        return False, None

    def shutdown(self) -> None:
        """Both roles close; the pool ends with the last."""
        if self._worker is not None:
            self._worker.close()
        if not self._closed:
            self._closed = True
            self._pool.close()

    def _jobs(self) -> Jobs:
        jobs = self._get_connector_metadata()
        assert isinstance(jobs, Jobs)
        return jobs


def _of_all_ranks(block_ids: set[int]) -> set[int]:
    """The union of what the workers have, each of which asks."""
    group = get_tp_group()
    if group.world_size == 1:
        return block_ids
    all_ids: list[set[int]] = [set()] * group.world_size
    torch.distributed.all_gather_object(all_ids, block_ids, group=group.cpu_group)
    return set().union(*all_ids)
