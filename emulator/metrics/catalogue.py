"""Catalogue of all metrics: name, meaning, and place in a process's report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
NODE, STORE, HOST, SWITCH, CONTROLLER, PROCESS, RUN = (
    "node", "store", "host", "switch", "controller", "process", "run",
)  # fmt: skip
OWNER_LABELS: Mapping[str, tuple[str, ...]] = {
    NODE: ("node",),
    STORE: ("store",),
    HOST: ("host",),
    SWITCH: ("switch",),
    CONTROLLER: ("switch",),
    PROCESS: ("process", "role"),
    RUN: ("engine", "mode", "policy", "revision", "seed", "sigma", "topology"),
}
"""Labels that name the owner of a figure. Nodes and stores are hosts; the controller counts by switch."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. A counter's name ends in _total, times are in seconds, sizes in bytes."""

    name: str
    kind: str
    owner: str
    where: str | Mapping[str, str]
    """Path in the owner's report.

    For a metric with one more label, a path with *, or a mapping from the label's values to paths.
    """
    help: str
    label: str | None = None
    """Name of the label whose values are those of *, or the mapping's keys."""
    factor: float = 1.0
    """Factor by which values of the report are multiplied."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the names of all labels, in order."""
        return OWNER_LABELS[self.owner] + ((self.label,) if self.label else ())

    def read(self, report: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Yield (values of the metric's own label, value) for each value that the report has."""
        if isinstance(self.where, str):
            yield from _find(report, self.where.split("."), ())
            return
        for label, path in self.where.items():
            for _, value in _find(report, path.split("."), ()):
                yield (label,), value


def _find(report: Any, path: list[str], labels: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not path:
        yield labels, report
    elif isinstance(report, Mapping):
        if path[0] == "*":
            for name, part in report.items():
                yield from _find(part, path[1:], (*labels, str(name)))
        elif report.get(path[0]) is not None:
            yield from _find(report[path[0]], path[1:], labels)


METRICS: tuple[Metric, ...] = (
    Metric("weir_run_info", GAUGE, RUN, "playing", "1; its labels say what is running"),
    Metric("weir_process_up", GAUGE, PROCESS, "up", "1 if the process answered this scrape"),
    Metric("weir_process_cpu_seconds_total", COUNTER, PROCESS, "cpu_s", "CPU time, user and system"),
    Metric("weir_process_resident_memory_bytes", GAUGE, PROCESS, "resident_bytes", "resident memory"),
    # Inference nodes.
    Metric("weir_node_requests_arrived_total", COUNTER, NODE, "node.arrived", "requests that arrived"),
    Metric("weir_node_requests_completed_total", COUNTER, NODE, "node.completed", "requests served"),
    Metric("weir_node_requests_failed_total", COUNTER, NODE, "node.failed", "requests rejected"),
    Metric("weir_node_blocks_total", COUNTER, NODE, "blocks.*",
           "blocks of served requests, by where they were found", "source"),
    Metric("weir_node_tier_blocks", GAUGE, NODE, "tiers.held.*", "blocks held", "tier"),
    Metric("weir_node_puts_skipped_total", COUNTER, NODE, "node.puts_skipped",
           "new blocks not stored because too many waited"),
    Metric("weir_node_puts_failed_total", COUNTER, NODE, "node.puts_failed", "blocks that no home took"),
    Metric("weir_node_gate_refused_blocks_total", COUNTER, NODE, "gate.refused_blocks",
           "blocks not fetched because computing them was faster"),
    Metric("weir_node_first_token_seconds", HISTOGRAM, NODE, "ttft", "request's arrival to first token"),
    Metric("weir_node_block_get_seconds", HISTOGRAM, NODE, "get", "block requested to block checked"),
    Metric("weir_client_fragments_received_total", COUNTER, NODE,
           {"pool": "client.from_pool", "home": "client.from_home"}, "values that were right", "origin"),
    Metric("weir_client_fragments_merged_total", COUNTER, NODE, "client.merged",
           "of the values received: copies of a reply for which several nodes waited"),
    Metric("weir_client_retransmits_total", COUNTER, NODE, "client.retransmits",
           "fragments asked for or sent again"),
    Metric("weir_client_blocks_fetched_total", COUNTER, NODE, "client.blocks_fetched", "blocks fetched"),
    Metric("weir_client_blocks_put_total", COUNTER, NODE, "client.blocks_put", "blocks stored"),
    Metric("weir_client_blocks_joined_total", COUNTER, NODE, "client.blocks_joined",
           "blocks wanted while the node was fetching them already"),
    Metric("weir_client_blocks_failed_total", COUNTER, NODE,
           {"not_found": "client.not_found", "timeout": "client.timeouts",
            "overloaded": "client.overloaded", "refused": "client.refused",
            "corrupt": "client.corrupt_blocks"}, "blocks that could not be had or stored", "reason"),
    Metric("weir_client_corrupt_values_total", COUNTER, NODE, "client.corrupt",
           "values that failed their check"),
    Metric("weir_client_repairs_total", COUNTER, NODE, "client.repairs",
           "wrong values of the pool that were reported"),
    Metric("weir_client_failovers_total", COUNTER, NODE, "client.failovers",
           "blocks asked for at another home because one was silent"),
    Metric("weir_client_homes_suspected_total", COUNTER, NODE, "client.homes_suspected",
           "times that a home fell silent"),
    Metric("weir_client_late_replies_total", COUNTER, NODE, "client.late", "replies that nobody waits for"),
    Metric("weir_client_malformed_total", COUNTER, NODE, "client.malformed.*",
           "datagrams that are no message", "reason"),
    Metric("weir_node_pushed_blocks_total", COUNTER, NODE, "pushed.taken",
           "blocks that came unasked and were kept"),
    # Storage nodes.
    Metric("weir_store_messages_total", COUNTER, STORE,
           {"get": "storage.gets", "put": "storage.puts", "stat": "storage.stats",
            "list": "storage.lists"}, "requests received", "op"),
    Metric("weir_store_special_gets_total", COUNTER, STORE,
           {"retry": "storage.retries", "bypass": "storage.bypasses", "repair": "storage.repairs",
            "fill": "storage.fills"}, "GETs received with this flag", "flag"),
    Metric("weir_store_replies_total", COUNTER, STORE,
           {"value": "storage.values", "not_found": "storage.not_found", "refused": "storage.refused"},
           "replies made", "op"),
    Metric("weir_store_reclaims_total", COUNTER, STORE, "storage.reclaims",
           "PUTs that came out of a switch's pool"),
    Metric("weir_store_unreadable_total", COUNTER, STORE, "storage.unreadable",
           "blocks that the disk could not give back"),
    Metric("weir_store_overloaded_total", COUNTER, STORE, "storage.overloaded",
           "requests dropped because too much waited for the disk"),
    Metric("weir_store_malformed_total", COUNTER, STORE, "storage.malformed.*",
           "datagrams that are no message", "reason"),
    Metric("weir_store_reads_total", COUNTER, STORE,
           {"dram": "store.dram_hits", "ssd": "store.ssd_hits", "none": "store.misses"},
           "looks for a block, by where it was", "tier"),
    Metric("weir_store_stored_blocks_total", COUNTER, STORE, "store.stored", "blocks that came whole"),
    Metric("weir_store_demoted_blocks_total", COUNTER, STORE, "store.demoted",
           "blocks moved from DRAM to SSD"),
    Metric("weir_store_held_blocks", GAUGE, STORE, "store.held.*", "blocks held", "tier"),
    Metric("weir_store_backlog_seconds", GAUGE, STORE, "backlog_ms",
           "how long what waits for the link or the SSD takes", factor=1e-3),
    Metric("weir_store_caught_up", GAUGE, STORE, "caught_up", "1 if it has what its peers have for it"),
    Metric("weir_store_disk_commits_total", COUNTER, STORE, "disk.commits", "transactions synced"),
    # Both kinds of hosts.
    Metric("weir_host_datagrams_total", COUNTER, HOST,
           {"sent": "endpoint.sent", "received": "endpoint.received"}, "datagrams", "direction"),
    Metric("weir_host_payload_bytes_total", COUNTER, HOST,
           {"sent": "endpoint.sent_bytes", "received": "endpoint.received_bytes"},
           "bytes of datagrams, without headers below", "direction"),
    Metric("weir_host_drops_total", COUNTER, HOST,
           {"queue": "endpoint.queue_drops", "socket": "endpoint.socket_drops",
            "foreign": "endpoint.foreign"}, "datagrams lost in the host, or of another port", "place"),
    Metric("weir_host_timer_late_p99_seconds", GAUGE, HOST, "process.timer_late_ms.p99",
           "how late its timers are", factor=1e-3),
    # Switches.
    Metric("weir_switch_packets_total", COUNTER, SWITCH, "outcomes.*",
           "packets by what became of them (docs/pipeline.md), read over P4Runtime", "outcome"),
    Metric("weir_switch_link_received_bytes_total", COUNTER, SWITCH, "received.*",
           "bytes that came over the link from that peer", "peer"),
    Metric("weir_switch_link_sent_bytes_total", COUNTER, SWITCH, "sent.*",
           "bytes that left over the link to that peer", "peer"),
    # The controller, of each switch's pool and session.
    Metric("weir_controller_pool_blocks", GAUGE, CONTROLLER, "resident", "blocks in the pool"),
    Metric("weir_controller_pool_hits_total", COUNTER, CONTROLLER, "pool.hits",
           "requests for blocks in the pool"),
    Metric("weir_controller_admitted_blocks_total", COUNTER, CONTROLLER, "pool.admitted", "blocks admitted"),
    Metric("weir_controller_evicted_blocks_total", COUNTER, CONTROLLER, "pool.evicted", "blocks evicted"),
    Metric("weir_controller_evictions_ended_total", COUNTER, CONTROLLER,
           {"sent": "pool.reclaimed", "held": "pool.held_elsewhere", "worthless": "pool.stubs",
            "dropped": "pool.dropped", "not_whole": "pool.not_whole", "failed": "pool.reclaims_failed"},
           "evicted blocks by what became of them", "end"),
    Metric("weir_controller_refused_blocks_total", COUNTER, CONTROLLER,
           {"no_slot": "pool.no_slot", "switch": "pool.refused", "elsewhere": "pool.elsewhere",
            "misfit": "pool.misfits", "quota": "pool.over_quota"},
           "blocks not admitted, or given up, whatever the policy wanted", "reason"),
    Metric("weir_controller_pushed_blocks_total", COUNTER, CONTROLLER, "pool.pushes",
           "blocks multicast to subscribers unasked"),
    Metric("weir_controller_hints_total", COUNTER, CONTROLLER,
           {"heard": "pool.hints", "done": "pool.hints_done"},
           "hints to retain or demote blocks; those that were carried out are counted in both", "what"),
    Metric("weir_controller_digests_total", COUNTER, CONTROLLER, "costs.digests", "reports of the switch"),
    Metric("weir_controller_messages_dropped_total", COUNTER, CONTROLLER, "costs.messages_dropped",
           "reports that found the controller's queue full"),
    Metric("weir_controller_p4runtime_requests_total", COUNTER, CONTROLLER,
           {"write": "costs.p4runtime_writes", "read": "costs.p4runtime_reads"},
           "P4Runtime requests", "kind"),
    Metric("weir_controller_p4runtime_updates_total", COUNTER, CONTROLLER, "costs.p4runtime_updates",
           "updates in writes"),
    Metric("weir_controller_p4runtime_update_errors_total", COUNTER, CONTROLLER,
           "costs.p4runtime_update_errors", "updates that the switch refused"),
    Metric("weir_controller_packets_total", COUNTER, CONTROLLER,
           {"in": "costs.packet_ins", "out": "costs.packet_outs"}, "PacketIns and PacketOuts", "direction"),
    Metric("weir_controller_sessions_total", COUNTER, CONTROLLER, "costs.sessions",
           "times that a session was set up"),
)  # fmt: skip
