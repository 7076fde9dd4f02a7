"""Figures of the summary, computed from the processes' measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from commands.cores import usable_cores
from controller.p4_constants import MERGED, SERVED
from emulator.emulation import Measurements
from emulator.machine import Strain
from emulator.result import (
    BlockSources,
    Evictions,
    IndexResult,
    RunResult,
    TargetResult,
    percentiles,
)
from emulator.tenants import Tenant, results_of
from hostlib.model.blending import BlendRecord, sum_blends
from hostlib.model.streamer import mean_level
from hostlib.protocol.wire import VALUE_FRAME_BYTES

NO_TENANTS: Mapping[str, Tenant] = MappingProxyType({})


def evaluate(
    measured: Measurements, tenants: Mapping[str, Tenant] = NO_TENANTS, target_s: float | None = None
) -> RunResult:
    """Return one run's figures.

    `tenants` are by node. `target_s` is the target for the first token, in seconds of the emulation.
    """
    workers = list(measured.workers.values())
    records = [record for worker in workers for record in worker["records"]]
    gates = [worker["gate"] for worker in workers if worker["gate"] is not None]
    outcomes = measured.controller["outcomes"]
    machine_strain = strain(measured)
    complaints = machine_strain.complaints()
    router, index = measured.router, measured.index
    levels = levels_of(records)
    return RunResult(
        requests=router["requests"] if router else sum(worker["requests"] for worker in workers),
        completed=sum(worker["node"]["completed"] for worker in workers),
        failed=sum(worker["node"]["failed"] for worker in workers),
        corrupt=sum(worker["client"]["corrupt"] + worker["node"]["different"] for worker in workers),
        compared=sum(worker["node"]["compared"] for worker in workers),
        blocks=BlockSources.added_up([worker["blocks"] for worker in workers]),
        storage_egress_bytes=measured.storage_egress_bytes,
        switch_served_bytes=outcomes.get(SERVED, 0) * VALUE_FRAME_BYTES,
        get_ms=percentiles([ms for worker in workers for ms in worker["get_ms"]]),
        ttft_ms=percentiles([1000 * r["ttft_s"] for r in records if r["ttft_s"] is not None]),
        merged=outcomes.get(MERGED, 0),
        admitted=measured.controller["admitted"],
        evicted=measured.controller["evicted"],
        evictions=Evictions(**{f.name: measured.controller[f.name] for f in fields(Evictions)}),
        p4runtime_writes=measured.controller["p4runtime_writes"],
        digests=measured.controller["digests"],
        wall_s=measured.wall_s,
        overloaded=bool(complaints),
        complaints=complaints,
        cpu_share=round(measured.cpu.mean, 3),
        switch_saturated=round(measured.cpu.switch_saturated, 4),
        timer_late_p99_ms=machine_strain.latest_p99_ms,
        controller_cpu_s=round(measured.usage["controller"].total_s, 3),
        cpu_s={role: round(used.total_s, 3) for role, used in measured.usage.items()},
        link_drops=measured.link_drops,
        pool_held=sum(switch["resident"] for switch in measured.controller["switches"].values()),
        decoded=sum(worker["coder"]["decoded"] for worker in workers),
        decode_ms=percentiles([1000 * r["decode_s"] for r in records if r["fetch_s"]]),
        levels=levels,
        mean_level=mean_level(levels),
        target=None if target_s is None else target_of(records, target_s),
        gate_limited=sum(gate["closed"] + gate["narrowed"] for gate in gates),
        gate_refused=sum(gate["refused_blocks"] for gate in gates),
        ssd_reads=sum(store["store"]["ssd_hits"] for store in measured.stores.values()),
        read_ahead=sum(store["store"]["read_ahead"] for store in measured.stores.values()),
        read_ahead_hits=sum(store["store"]["read_ahead_hits"] for store in measured.stores.values()),
        retransmitted=sum(worker["client"]["retransmits"] for worker in workers),
        blended=sum_blends([BlendRecord(**r["blend"]) for r in records if r["blend"] is not None]),
        rejected=router["conductor"]["rejected"] if router else 0,
        replicated=router["conductor"]["replicated_blocks"] if router else 0,
        tenants=results_of(tenants, measured.workers, measured.controller),
        index=None if index is None else IndexResult(**{f.name: index[f.name] for f in fields(IndexResult)}),
    )


def levels_of(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of blocks of all streams by level; text is last."""
    counts = sum((Counter(record["levels"]) for record in records), Counter[str]())
    return dict(sorted(counts.items()))


def target_of(records: Sequence[Mapping[str, Any]], target_s: float) -> TargetResult:
    """Return how many first tokens came in time, and when each came."""
    served = [record for record in records if record["ttft_s"] is not None]
    served.sort(key=lambda record: float(record["arrival_s"]))
    ttfts_s = [float(record["ttft_s"]) for record in served]
    return TargetResult(
        round(1000 * target_s, 3),
        sum(ttft_s <= target_s for ttft_s in ttfts_s),
        tuple(round(1000 * ttft_s, 3) for ttft_s in ttfts_s),
    )


def strain(measured: Measurements) -> Strain:
    """Return how much the run loaded the machine."""
    hosts = measured.workers | measured.stores
    side_services = {"router": measured.router, "index": measured.index}
    watched = hosts | {name: one for name, one in side_services.items() if one is not None}
    late = {name: one["process"]["timer_late_ms"]["p99"] for name, one in watched.items()}
    dropped = {f"by the socket of {name}": host["endpoint"]["dropped"] for name, host in hosts.items()}
    control = measured.usage["controller"].total_s / (measured.usage_s * usable_cores())
    if measured.control_apart:
        control = 0.0  # it takes nothing from the hosts
    return Strain(measured.cpu, late, dropped, control)
