"""Spans: which host or switch did what from when to when, for which request."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from emulator.traces.journeys import Journey
from emulator.traces.sightings import Sighting
from hostlib.protocol import wire

Attributes = dict[str, str | int | float]


@dataclass(slots=True)
class Span:
    """A span. Times are CLOCK_REALTIME's, in ns."""

    service: str
    """Name of the host or switch."""
    name: str
    start_ns: int
    end_ns: int
    trace_id: bytes
    span_id: bytes
    parent: Span | None = None
    attributes: Attributes = field(default_factory=dict)
    links: list[tuple[bytes, bytes]] = field(default_factory=list)
    """(trace, span) of the spans that this one shared its answer with."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Relation between the processes' clock (CLOCK_MONOTONIC) and that of captures (CLOCK_REALTIME)."""

    ahead_ns: int
    """Nanoseconds by which CLOCK_REALTIME is ahead of CLOCK_MONOTONIC."""
    start_s: float
    """CLOCK_MONOTONIC at second 0 of the run."""

    def monotonic(self, moment_s: float) -> int:
        """Return a monotonic time in ns since 1970."""
        return round(moment_s * 1e9) + self.ahead_ns

    def of_run(self, moment_s: float) -> int:
        """Return a second of the run, in ns since 1970."""
        return self.monotonic(self.start_s + moment_s)


class Tracer:
    """Maker of spans of requests, with fragments as long as there are fewer than `most` spans."""

    def __init__(self, clock: Clock, seed: str, homes: Mapping[str, str], most: int) -> None:
        """Begin without spans. `homes` has names of storage nodes by address.

        `seed` makes this run's trace ids differ from another's.
        """
        self._clock, self._seed, self._homes, self._most = clock, seed, homes, most
        self._ids = itertools.count(1)
        self.spans: list[Span] = []
        self._of_journey: dict[tuple[str, int, bytes, int], Span] = {}
        self._copies: list[tuple[Span, Journey]] = []

    def request(
        self, node: str, number: int, record: Mapping[str, Any], journeys: Mapping[bytes, Sequence[Journey]]
    ) -> None:
        """Add the spans of one request; `journeys` are the node's, by key."""
        trace_id = blake2b(f"{self._seed} {node} {number}".encode(), digest_size=16).digest()
        end_s = record["end_s"] if record["end_s"] is not None else record["arrival_s"]
        root = self._add(
            node, "request", self._clock.of_run(record["arrival_s"]), self._clock.of_run(end_s), trace_id
        )
        root.attributes = {f"weir.blocks.{source}": count for source, count in record["sources"].items()}
        root.attributes["weir.tokens"] = record["tokens"]
        if record["ttft_s"] is None:
            root.attributes["weir.failure"] = record["failure"] or "not finished"
            return
        self._stages(root, record, journeys)

    def _stages(
        self, root: Span, record: Mapping[str, Any], journeys: Mapping[bytes, Sequence[Journey]]
    ) -> None:
        """Add the stages of a request: they lead up to the first token, then to the last."""
        first_s = record["arrival_s"] + record["ttft_s"]
        compute_s = first_s - record["prefill_s"]
        wait_s = compute_s - record["queue_s"]
        load_s = wait_s - (record["blend"]["load_s"] if record.get("blend") else 0.0)
        decode_s = load_s - record["decode_s"]
        fetch_s = decode_s - record["fetch_s"]
        moments_s = {"fetch": (fetch_s, decode_s), "decode": (decode_s, load_s)}
        moments_s |= {"load chunks": (load_s, wait_s), "wait for the GPU": (wait_s, compute_s)}
        moments_s |= {"compute": (compute_s, first_s), "tokens": (first_s, record["end_s"] or first_s)}
        for name, (began_s, ended_s) in moments_s.items():
            if ended_s <= began_s:
                continue
            stage = self._child(
                root, root.service, name, self._clock.of_run(began_s), self._clock.of_run(ended_s)
            )
            if name == "fetch":
                stage.attributes = {
                    f"weir.waited.{self._named(what)}_s": round(waited_s, 6)
                    for what, waited_s in record["waits_s"].items()
                }
                for block in record["blocks"] or ():
                    self._block(stage, block, journeys.get(bytes.fromhex(block["key"]), ()))
                if record["missing"] is not None:
                    self._missing(stage, record, journeys.get(bytes.fromhex(record["missing"]), ()))

    def _block(self, fetch: Span, block: Mapping[str, Any], journeys: Sequence[Journey]) -> None:
        times = {
            name: self._clock.monotonic(block[name])
            for name in ("wanted_s", "probe_sent_s", "probed_s", "body_sent_s", "done_s")
        }
        node = fetch.service
        span = self._child(fetch, node, "block", times["wanted_s"], times["done_s"])
        span.attributes = {
            "weir.key": block["key"],
            "weir.depth": block["depth"],
            "weir.fragments": block["fragments"],
            "weir.fragments.pool": block["pool_fragments"],
            "weir.fragments.merged": block["merged_fragments"],
            "weir.home": self._homes.get(block["home"], block["home"]),
        }
        probe = self._child(span, node, "probe", times["probe_sent_s"], times["probed_s"])
        body = None
        if block["fragments"] > 1:
            body = self._child(span, node, "rest", times["body_sent_s"], times["done_s"])
        self._fragments(
            span,
            _within(journeys, times["wanted_s"], times["done_s"]),
            lambda journey: body if journey.fragment and body is not None else probe,
        )

    def _missing(self, fetch: Span, record: Mapping[str, Any], journeys: Sequence[Journey]) -> None:
        """Add the block at which the fetch ended."""
        mine = _within(journeys, fetch.start_ns, fetch.end_ns)
        if not mine:  # another request had asked before
            return
        start_ns, end_ns = mine[0].sightings[0].t_ns, max(one.sightings[-1].t_ns for one in mine)
        span = self._child(fetch, fetch.service, "block", start_ns, end_ns)
        span.attributes = {"weir.key": record["missing"], "weir.ended_by": record["fetch_ended_by"]}
        self._fragments(span, mine, lambda journey: span)

    def _fragments(
        self, block: Span, journeys: Sequence[Journey], parent_of: Callable[[Journey], Span]
    ) -> None:
        """Add the fragments of a block, if there is space for all of them."""
        if len(self.spans) + sum(1 + len(one.sightings) // 2 for one in journeys) > self._most:
            block.attributes["weir.fragments.left_out"] = len(journeys)
            return
        joined = 0
        for journey in journeys:
            if _place(journey) in self._of_journey:  # another request of the node waited for the same block
                joined += 1
            else:
                self._fragment(parent_of(journey), journey)
        if joined:
            block.attributes["weir.fragments.of_another_request"] = joined

    def _fragment(self, parent: Span, journey: Journey) -> None:
        seen = journey.sightings
        span = self._child(parent, journey.node, "fragment", seen[0].t_ns, seen[-1].t_ns)
        self._of_journey[_place(journey)] = span
        span.attributes = {
            "weir.sequence": journey.sequence,
            "weir.fragment": journey.fragment,
            "weir.flags": journey.flags,
            "weir.outcome": journey.outcome,
        }
        if journey.shared is not None:
            span.attributes["weir.shared_with"] = f"{journey.shared[0]} sequence {journey.shared[1]}"
            self._copies.append((span, journey))
        for before, after in itertools.pairwise(seen):
            # Other gaps are cables between two switches, which take no time.
            if before.switch == after.switch and not before.leaving and after.leaving:
                doing = _doing(before, after, journey.shared is not None)
                self._child(span, before.switch, doing, before.t_ns, after.t_ns)
            elif before.leaving and not after.leaving and before.peer == after.peer:
                self._child(span, before.peer, "answer", before.t_ns, after.t_ns)

    def finish(self) -> list[Span]:
        """Return all spans, after linking those that shared an answer."""
        for span, journey in self._copies:
            assert journey.shared is not None
            leader = self._of_journey.get((*journey.shared, journey.key, journey.fragment))
            if leader is not None:
                span.links.append((leader.trace_id, leader.span_id))
        return self.spans

    def _child(self, parent: Span, service: str, name: str, start_ns: int, end_ns: int) -> Span:
        span = self._add(service, name, start_ns, end_ns, parent.trace_id)
        span.parent = parent
        return span

    def _add(self, service: str, name: str, start_ns: int, end_ns: int, trace_id: bytes) -> Span:
        span_id = next(self._ids).to_bytes(8, "big")
        span = Span(service, name, start_ns, max(start_ns, end_ns), trace_id, span_id)
        self.spans.append(span)
        return span

    def _named(self, what: str) -> str:
        kind, _, address = what.partition(" ")
        return f"{kind}.{self._homes.get(address, address)}" if address else kind


def _within(journeys: Sequence[Journey], start_ns: int, end_ns: int) -> list[Journey]:
    """Return the journeys that overlap that time."""
    return [one for one in journeys if one.sightings[-1].t_ns >= start_ns and one.sightings[0].t_ns <= end_ns]


def _place(journey: Journey) -> tuple[str, int, bytes, int]:
    return journey.node, journey.sequence, journey.key, journey.fragment


def _doing(before: Sighting, after: Sighting, shared: bool) -> str:
    """Return what a switch did between two sightings of a journey."""
    if before.op != wire.OP_GET:
        return "reply"
    if after.op == wire.OP_GET:
        return "forward"
    return "hold for another node's answer" if shared else "serve"
