"""vLLM keeps its KV cache in the pool: a KV connector that vLLM loads by its module's path.

    KVTransferConfig(kv_connector="WeirConnector", kv_connector_module_path="engines.vllm.connector",
                     kv_role="kv_both", kv_load_failure_policy="recompute",
                     kv_connector_extra_config={"address": "10.0.0.1", "homes": ["10.0.0.3"]})

vLLM makes one for its scheduler and one for each worker, in one process or several: those of a node share one
client of the pool (`hostlib.engine.node_client`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vllm.distributed import get_tensor_model_parallel_rank
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    KVConnectorWorkerMetadata,
)
from vllm.logger import init_logger
from vllm.model_executor.model_loader import get_model_cls
from vllm.v1.engine.core import EngineCore
from vllm.v1.executor.abstract import Executor

from engines.versions import warn_if_untested
from engines.vllm.adapters import AdapterNames, LoadedAdapters
from engines.vllm.event_schema import joined, make_events, publishes
from engines.vllm.foreign import EngineFaults
from engines.vllm.jobs import Jobs, Report
from engines.vllm.keys import EngineKeys
from engines.vllm.media import MediaNames
from engines.vllm.metrics import (
    OF_SCHEDULER,
    OF_WORKER,
    CounterReader,
    PoolCounters,
    PoolPromMetrics,
    register,
)
from engines.vllm.mooncake_events import MooncakeEvents
from engines.vllm.own_cache import VllmCache
from engines.vllm.resolved import resolve
from engines.vllm.scheduler import SchedulerSide
from engines.vllm.space import (
    Settings,
    applies_others_adapters,
    has_worker_processes,
    loads_in_background,
    make_layout,
    report_file,
    uses_v2_runner,
)
from engines.vllm.tensors import KvTensors
from engines.vllm.weight_changes import listen
from engines.vllm.weights import begin_naming
from engines.vllm.worker import WorkerSide
from hostlib.engine import open_pool
from hostlib.protocol.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch
    from vllm.config import VllmConfig
    from vllm.distributed.kv_events import KVCacheEvent
    from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats
    from vllm.forward_context import ForwardContext
    from vllm.v1.attention.backend import AttentionMetadata
    from vllm.v1.core.kv_cache_manager import KVCacheBlocks, KVCacheManager
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.kv_cache_interface import KVCacheConfig
    from vllm.v1.outputs import KVConnectorOutput
    from vllm.v1.request import Request


DRAFTS_WITHOUT_KV = ("ngram", "ngram_gpu", "suffix", "medusa")
"""Methods of speculative decoding whose drafts come without KV of their own."""

_log = logging.getLogger("weir")
_info = init_logger("vllm.weir")
"""vLLM shows what its own loggers say at this level."""


@dataclass
class JobsMessage(KVConnectorMetadata):  # type: ignore[misc] # vllm is not in the project's environment
    """Message from the scheduler to its workers."""

    jobs: Jobs


@dataclass
class ReportMessage(KVConnectorWorkerMetadata):  # type: ignore[misc] # as above
    """Message from the workers to their scheduler."""

    report: Report

    def aggregate(self, other: KVConnectorWorkerMetadata) -> KVConnectorWorkerMetadata:
        """Return the report of both workers."""
        assert isinstance(other, ReportMessage)
        return ReportMessage(self.report.merged(other.report))


class WeirConnector(KVConnectorBase_V1):  # type: ignore[misc] # as above
    """Raises ConfigError or KeySpaceError at the start for what can't be; later it never stops the engine."""

    _open_pool = staticmethod(open_pool)

    def __init__(
        self, vllm_config: VllmConfig, role: KVConnectorRole, kv_cache_config: KVCacheConfig
    ) -> None:
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        warn_if_untested("vLLM")
        _check_drafts(vllm_config.speculative_config)
        self._settings = Settings.from_extra(dict(self._kv_transfer_config.kv_connector_extra_config))
        is_worker = role != KVConnectorRole.SCHEDULER
        rank = get_tensor_model_parallel_rank() if is_worker else 0
        self._layout = make_layout(vllm_config, kv_cache_config, self._settings, rank)
        self._loads_in_background = loads_in_background(vllm_config, self._settings)
        pool = self._settings.pool
        has_own_process = has_worker_processes(vllm_config)
        worker = rank if is_worker and has_own_process else None
        pool = replace(pool, report=report_file(pool.report, vllm_config, worker))
        self._pool = self._open_pool(pool, self._layout.space)
        if is_worker and has_own_process:
            self._pool.blocks.silence_level = logging.DEBUG  # the scheduler asks first, and says so
        self._counters = CounterReader(self._pool.blocks.stats, OF_WORKER if is_worker else OF_SCHEDULER)
        self._own_cache = VllmCache()
        self._publishes = publishes(vllm_config)
        mooncake = self._settings.mooncake_events
        wants_events = self._publishes or mooncake is not None
        self._events = make_events(self._layout.space) if wants_events else None
        self._mooncake: MooncakeEvents | None = None
        self._scheduler: SchedulerSide | None = None
        self._worker: WorkerSide | None = None
        self._closed = False
        if not is_worker:
            try:
                if mooncake is not None:
                    self._mooncake = MooncakeEvents(mooncake, vllm_config, pool.tenant)
                self._scheduler = self._make_scheduler()
            except BaseException:
                self._pool.close()
                raise

    @classmethod
    def requires_piecewise_for_cudagraph(cls, extra_config: dict[str, Any]) -> bool:
        """Return whether vLLM has to call the connector between layers, where a graph of all layers would
        not."""
        return bool(extra_config.get("loading", "layerwise") == "layerwise")

    @property
    def requires_kv_delivery(self) -> bool:
        """Return False: the pool is a cache, in which what is not stored is a later miss, and no more."""
        return False

    # Of the worker

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        """Take vLLM's KV tensors, by layer."""
        tensors = KvTensors(self._layout, kv_caches)
        zeroes_blocks = getattr(self._kv_cache_config, "needs_kv_cache_zeroing", False)
        self._worker = WorkerSide(
            self._pool,
            self._layout.groups,
            tensors,
            rank=self._layout.rank,
            background=self._loads_in_background,
            recompute_ms=self._settings.recompute_ms,
            is_loaded=LoadedAdapters().is_loaded,
            reads_later=tensors.is_on_cpu and not zeroes_blocks,
            notes_stored=self._events is not None,
        )
        if has_worker_processes(self._vllm_config):
            listen(self._worker, models=[self._model_class()])

    def handle_preemptions(self, kv_connector_metadata: KVConnectorMetadata) -> None:
        """Take note, before a step, that vLLM gives blocks to other requests."""
        assert isinstance(kv_connector_metadata, JobsMessage)
        self._of_worker.begin_step(kv_connector_metadata.jobs)

    def start_load_kv(self, forward_context: ForwardContext, **kwargs: Any) -> None:
        """Begin to load, before or after the forward pass."""
        self._of_worker.start_loads(self._jobs())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Wait, before a layer's attention, until what it needs is loaded."""
        self._of_worker.wait_for_layer(layer_name)

    def save_kv_layer(
        self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: AttentionMetadata, **kwargs: Any
    ) -> None:
        """Do nothing: `wait_for_save` stores all layers."""

    def wait_for_save(self) -> None:
        """Store what was computed, after the forward pass and that of drafts."""
        self._of_worker.store(self._jobs())

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str] | None, set[str] | None]:
        """Return the requests that have been loaded in the background."""
        return None, self._of_worker.finished_loads(finished_req_ids, self._jobs()) or None

    def get_block_ids_with_load_errors(self) -> set[int]:
        """Return the blocks that could not be loaded since the last call."""
        return self._of_worker.take_failed_blocks()

    def build_connector_worker_meta(self) -> KVConnectorWorkerMetadata | None:
        """Return what the scheduler's side has to know of the step."""
        return ReportMessage(self._of_worker.report(self._jobs()))

    # Of the scheduler

    def bind_kv_cache_manager(self, kv_cache_manager: KVCacheManager) -> None:
        """Take vLLM's own cache of KV blocks."""
        super().bind_kv_cache_manager(kv_cache_manager)
        self._own_cache.bind(kv_cache_manager)

    def on_new_request(self, request: Request) -> None:
        """Begin a new request."""
        self._of_scheduler.added(request)

    def get_num_new_matched_tokens(
        self, request: Request, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        """Return the number of tokens that the pool has behind the computed ones."""
        return self._of_scheduler.matched_tokens(request, num_computed_tokens)

    def update_state_after_alloc(
        self, request: Request, blocks: KVCacheBlocks, num_external_tokens: int
    ) -> None:
        """Take note of the blocks that a request has got."""
        self._of_scheduler.allocated(request, blocks, num_external_tokens)

    def build_connector_meta(self, scheduler_output: SchedulerOutput) -> KVConnectorMetadata:
        """Return what the workers have to do in a step."""
        return JobsMessage(self._of_scheduler.jobs(scheduler_output))

    def update_connector_output(self, connector_output: KVConnectorOutput) -> None:
        """End a step."""
        message = connector_output.kv_connector_worker_meta
        self._of_scheduler.reported(
            message.report if isinstance(message, ReportMessage) else None,
            connector_output.invalid_block_ids or (),
            failed_load=bool(getattr(connector_output, "failed_recving", None)),
        )

    def request_finished(self, request: Request, block_ids: list[int]) -> tuple[bool, dict[str, Any] | None]:
        """Take note that a request is over; its blocks are free at once."""
        self._of_scheduler.finished(request.request_id)
        return False, None

    def take_events(self) -> Iterable[KVCacheEvent]:
        """Return which blocks came into the pool since the last call, or are known to have left it."""
        events = joined(self._events.take()) if self._events is not None else []
        if self._mooncake is not None:
            self._mooncake.publish(events)
        return events if self._publishes else ()

    def reset_cache(self) -> bool:
        """Find nothing any more of what was stored so far. False if that can't be done: the pool is left."""
        return self._of_scheduler.reset()

    # Of both

    def get_kv_connector_stats(self) -> KVConnectorStats | None:
        """Return what was counted since the last call."""
        return self._counters.take()

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> KVConnectorStats | None:
        """Return counters that came from another process."""
        return PoolCounters(data=data or {})

    @classmethod
    def build_prom_metrics(
        cls,
        vllm_config: VllmConfig,
        metric_types: Any,
        labelnames: list[str],
        per_engine_labelvalues: dict[int, list[object]],
    ) -> KVConnectorPromMetrics:
        """Return the counters for /metrics. A process calls this before it rebuilds any counters."""
        register(cls)
        return PoolPromMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    def shutdown(self) -> None:
        """Close both roles; the pool ends with the last."""
        if self._worker is not None:
            self._worker.close()
        if not self._closed:
            self._closed = True
            if self._mooncake is not None:
                self._mooncake.close()
            self._pool.close()

    def _make_scheduler(self) -> SchedulerSide:
        if self._loads_in_background and self._settings.loading == "layerwise":
            _info.info("Loading in the background, as vLLM schedules steps ahead or has its V2 runner.")
        self._pool.join()
        role = self._kv_transfer_config
        keys = EngineKeys(
            self._layout.space,
            self._pool.seal,
            resolve(self._vllm_config, self._kv_cache_config),
            begin_naming(self._vllm_config),
            AdapterNames(),
            MediaNames.of_engine(self._vllm_config, self._layout.space.block_tokens),
        )
        side = SchedulerSide(
            self._pool,
            keys,
            self._own_cache,
            background=self._loads_in_background,
            loads=role.is_kv_consumer,
            stores=role.is_kv_producer,
            events=self._events,
            faults=EngineFaults(
                recomputes_wrong=uses_v2_runner(self._vllm_config),
                schedules_ahead=self._vllm_config.max_concurrent_batches > 1,
                applies_others_adapters=applies_others_adapters(self._vllm_config),
            ),
        )
        is_worker_here = not has_worker_processes(self._vllm_config)
        models = [self._model_class()] if is_worker_here else []
        listen(side, [EngineCore], _executors(Executor), models)
        return side

    def _model_class(self) -> type[Any]:
        model: type[Any] = get_model_cls(self._vllm_config.model_config)
        return model

    @property
    def _of_worker(self) -> WorkerSide:
        assert self._worker is not None, "vLLM has not registered its KV tensors"
        return self._worker

    @property
    def _of_scheduler(self) -> SchedulerSide:
        assert self._scheduler is not None, "this is a worker's connector"
        return self._scheduler

    def _jobs(self) -> Jobs:
        message = self._get_connector_metadata()
        assert isinstance(message, JobsMessage)
        return message.jobs


def _executors(kind: type[Any]) -> list[type[Any]]:
    """Return the class, and all that are made from it."""
    return [kind, *(one for below in kind.__subclasses__() for one in _executors(below))]


def _check_drafts(speculation: Any) -> None:
    """Refuse drafts that have KV: it depends on a token behind the block, of which the key says nothing."""
    if speculation is not None and speculation.method not in DRAFTS_WITHOUT_KV:
        raise ConfigError(
            f"speculative decoding by {speculation.method!r} is not possible with the pool, because drafts "
            f"have KV of their own: use one of {', '.join(DRAFTS_WITHOUT_KV)}, or none"
        )
