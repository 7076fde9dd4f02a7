"""Outcome of a run, from what its parts counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

from hostlib.model.blending import sum_blends
from hostlib.model.streamer import mean_level
from simulator.checks import pool_blocks
from simulator.money import bill
from simulator.result import SimResult, spread, sum_sources
from simulator.spread import spread_of
from simulator.system import System


def outcome(system: System, cpu_s: float) -> SimResult:
    """Return the result of a run that has ended and took `cpu_s` of this process."""
    scenario = system.scenario
    served = [(record, place) for place, node in enumerate(system.nodes) for record in node.records]
    served.sort(key=lambda pair: pair[0].arrival_s)
    records = [record for record, _ in served]
    duration_s = max(1e-9, system.loop.now - min((record.arrival_s for record in records), default=0.0))
    links = {link.name: link for link in system.links()}
    senders = system.fabric.nodes if system.lenders else system.fabric.stores
    egress = [link for (source, _), link in system.network.links.items() if source in senders]
    served_bytes = sum(switch.stats.served_bytes for switch in system.switches)
    saved_s = sum(record.saved_s for record in records)
    streamed = Counter[str]()
    for record in records:
        if record.levels:
            streamed.update(record.levels)
    levels = dict(sorted(streamed.items()))
    slo_s = scenario.workload.ttft_slo_s
    costs = bill(scenario, len(system.fabric.switches))
    return SimResult(
        requests=len(system.demand.requests),
        completed=len(records),
        conductor=asdict(system.router.conductor.stats) if system.router.conductor else None,
        duration_s=duration_s,
        requests_per_s=len(records) / duration_s,
        output_tokens_per_s=sum(record.output_tokens for record in records) / duration_s,
        ttft_s=spread([record.ttft_s for record in records]),
        tpot_s=spread([record.tpot_s for record in records if record.output_tokens > 1]),
        get_s=spread([s for node in system.nodes if node.fetcher is not None for s in node.fetcher.get_s]),
        blocks=sum_sources(records),
        prefill_s=sum(record.prefill_s for record in records),
        saved_prefill_s=saved_s,
        gpu_busy_share=sum(node.gpu.busy_s for node in system.nodes) / duration_s / len(system.nodes),
        link_bytes={link.name: link.sent_bytes for link in links.values()},
        storage_egress_bytes=sum(link.sent_bytes for link in egress)
        + (sum(link.sent_bytes for link in system.direct.readers) if system.direct else 0.0)
        + (sum(link.sent_bytes for link in system.peers.out_links) if system.peers else 0.0),
        storage_requests=sum(store.stats.requests for store in system.stores),
        storage_busy_share=max(
            (link.sent_bytes / link.bytes_per_s / duration_s for link in egress), default=0.0
        ),
        longest_queue_s=max(link.longest_wait_s for link in links.values()),
        switch_served_bytes=served_bytes,
        merged=sum(switch.stats.merged for switch in system.switches),
        copies=sum(switch.stats.copies for switch in system.switches),
        fills=sum(switch.stats.fills for switch in system.switches),
        admitted=sum(control.counts.admitted for control in system.controls),
        evicted=sum(control.counts.evicted for control in system.controls),
        reclaimed=sum(control.counts.reclaimed for control in system.controls),
        pushed_blocks=sum(control.counts.pushes for control in system.controls),
        taken_blocks=sum(client.pushed.taken for client in system.clients.values() if client.pushed),
        digests=sum(control.costs.digests for control in system.controls),
        table_writes=sum(control.costs.writes for control in system.controls),
        table_updates=sum(control.costs.updates for control in system.controls),
        entries_read=sum(control.costs.entries_read for control in system.controls),
        control_bytes=sum(control.costs.message_bytes for control in system.controls),
        control_cpu_s=sum(control.costs.cpu_s for control in system.controls),
        block_bytes=system.sizes.block_bytes,
        pool_blocks=pool_blocks(scenario, system.cost),
        levels=levels,
        mean_level=mean_level(levels),
        met_share=None
        if slo_s is None
        else sum(r.ttft_s <= slo_s for r in records) / len(system.demand.requests),
        dollars_per_hour=costs.total,
        cache_dollars_per_hour=costs.cache,
        dollars_per_saved_s=costs.cache * duration_s / 3600 / saved_s if saved_s else None,
        blended=sum_blends([record.blend for record in records if record.blend is not None]),
        between_tokens_s=spread_of(gpu.gaps for gpu in system.gpus()),
        end_to_end_s=spread([record.end_s - record.arrival_s for record in records]),
        sessions_per_hour=system.session_times.sessions * 3600 / duration_s,
        group_ttft_s=system.session_times.groups(),
        fetch_s=sum(record.fetch_s for record in records),
        refused_blocks=sum(node.refused_blocks for node in system.nodes),
        copied_down_blocks=sum(node.copied_down_blocks for node in system.nodes),
        ssd_reads=sum(store.stats.ssd_reads for store in system.stores),
        cpu_s=cpu_s,
        ttfts_s=tuple(record.ttft_s for record in records),
        found=tuple(record.found_share for record in records),
        served_by=tuple(place for _, place in served),
    )
