"""The connector's counters in vLLM's own log and metrics."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hostlib.engine import PoolStats

OF_SCHEDULER = {
    "lookups": "Questions for the blocks of a prompt.",
    "found": "Blocks that were found by them.",
    "retained_objects": "Objects that storage nodes retain, as requests asked for.",
    "not_retained": "Objects that requests asked to be retained, and that are not.",
}
OF_WORKER = {
    "loaded_objects": "Objects that came from the pool; a block is stored as several.",
    "loaded_bytes": "Bytes that came from the pool.",
    "pool_bytes": "Bytes that switches served.",
    "store_bytes": "Bytes that storage nodes served.",
    "stored_objects": "Objects that the pool has taken.",
    "stored_bytes": "Bytes that the pool has taken.",
    "not_stored": "Objects that were not stored, because too many waited or the engine needed their memory.",
    "failed": "Objects that could not be moved.",
}


class PoolCounters(KVConnectorStats):  # type: ignore[misc] # vllm is not in the project's environment
    """Counts since the counters before."""

    def reset(self) -> None:
        """Begin at zero."""
        self.data: dict[str, int] = {}

    def aggregate(self, other: KVConnectorStats) -> KVConnectorStats:
        """Add another's."""
        for name, count in other.data.items():
            self.data[name] = self.data.get(name, 0) + count
        return self

    def reduce(self) -> dict[str, int | float]:
        """Return what vLLM's log says of an interval."""
        return dict(self.data)

    def is_empty(self) -> bool:
        """Return whether nothing was counted."""
        return not any(self.data.values())


def register(connector: type) -> None:
    """Let vLLM find the class of a connector by its name, unless the name is taken.

    MultiConnector rebuilds counters by the name of the class. The engine ends if vLLM does not know the name,
    and loading a connector by the path of its module does not make it known.
    """
    name = connector.__name__
    with suppress(ValueError):  # registered already
        KVConnectorFactory.register_connector(name, connector.__module__, name)


class CounterReader:
    """Turns a pool's running totals into what was counted since the last call."""

    def __init__(self, stats: PoolStats, names: Mapping[str, str]) -> None:
        self._stats, self._names = stats, names
        self._before: dict[str, int] = {}

    def take(self) -> PoolCounters | None:
        """Return the counters, None if nothing was counted."""
        totals = {name: self._total(name) for name in self._names}
        counted = {name: total - self._before.get(name, 0) for name, total in totals.items()}
        self._before = totals
        counters = PoolCounters(data={name: count for name, count in counted.items() if count})
        return None if counters.is_empty() else counters

    def _total(self, name: str) -> int:
        value = getattr(self._stats, name)
        return sum(list(value.values())) if isinstance(value, dict) else int(value)


class PoolPromMetrics(KVConnectorPromMetrics):  # type: ignore[misc] # as above
    """`vllm:weir_…` in the engine's /metrics."""

    def __init__(
        self,
        vllm_config: Any,
        metric_types: Any,
        labelnames: list[str],
        per_engine_labelvalues: dict[int, list[object]],
    ) -> None:
        super().__init__(vllm_config, metric_types, labelnames, per_engine_labelvalues)
        self._counters: dict[str, dict[int, Any]] = {}
        for name, documentation in (OF_SCHEDULER | OF_WORKER).items():
            counter = self._counter_cls(
                name=f"vllm:weir_{name}", documentation=documentation, labelnames=labelnames
            )
            self._counters[name] = {
                engine: counter.labels(*values) for engine, values in per_engine_labelvalues.items()
            }

    def observe(self, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        """Count what an engine reports."""
        for name, count in transfer_stats_data.items():
            if name in self._counters:
                self._counters[name][engine_idx].inc(count)
