"""Spans as files: OTLP/JSON by the published .proto, the Trace Event Format by its rules."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from google.protobuf import json_format
from opentelemetry.proto.trace.v1 import trace_pb2

from emulator.traces.chrome import to_chrome
from emulator.traces.journeys import Journey
from emulator.traces.otlp import to_otlp
from emulator.traces.sightings import Sighting
from emulator.traces.spans import Clock, Span, Tracer
from hostlib.protocol import wire
from tests.emulator.traces.formats import as_protobuf_json, check_chrome

KEY = bytes(range(16))
CLOCK = Clock(ahead_ns=1_000_000_000_000, start_s=100.0)
RECORD = {
    "arrival_s": 1.0, "fetch_s": 0.02, "decode_s": 0.0, "queue_s": 0.1, "prefill_s": 0.05, "ttft_s": 0.17,
    "end_s": 1.5,
    "tokens": 9, "failure": None, "missing": None, "fetch_ended_by": None,
    "sources": {"pool": 0, "remote": 1},
    "waits_s": {"queued": 0.001, "probing": 0.004, "home 10.0.0.9": 0.015},
    "blocks": [
        {"key": KEY.hex(), "depth": 2, "fragments": 4, "pool_fragments": 0, "merged_fragments": 1,
         "wanted_s": 101.0, "probe_sent_s": 101.001, "probed_s": 101.005, "body_sent_s": 101.005,
         "done_s": 101.02, "home": "10.0.0.9"},
    ],
}  # fmt: skip


def journey(node: str, sequence: int, fragment: int, at_s: float, merged: bool = False) -> Journey:
    """Seen at the switch from `at_s` (CLOCK_MONOTONIC) on: two milliseconds from the GET to its answer."""
    found = Journey(node, sequence, KEY, fragment, 0)
    steps = [(wire.OP_GET, node, False), (wire.OP_GET, "store1", True), (wire.OP_VALUE, "store1", False)]
    if merged:
        steps = steps[:1]
        found.shared = ("node2", 70)
    for number, (op, peer, leaving) in enumerate([*steps, (wire.OP_VALUE, node, True)]):
        t_ns = CLOCK.monotonic(at_s + 0.0005 * number)
        found.sightings.append(Sighting(t_ns, "s1", peer, leaving, b"", b"", op, 0, sequence, fragment, KEY))
    found.ended = True
    return found


def spans(most: int = 1000) -> list[Span]:
    """Two requests of two nodes for the same block; node1 gets fragment 1 by node2's answer."""
    mine = [journey("node1", 5, 0, 101.002), journey("node1", 6, 1, 101.006, merged=True)]
    theirs = [journey("node2", 70, 1, 101.006)]
    tracer = Tracer(CLOCK, "run", {"10.0.0.9": "store1"}, most)
    tracer.request("node1", 0, RECORD, {KEY: mine})
    tracer.request("node2", 0, RECORD, {KEY: theirs})
    tracer.request("node2", 1, {**RECORD, "ttft_s": None, "end_s": None, "failure": "rejected"}, {})
    return tracer.finish()


def named(found: list[Span], name: str, service: str = "node1") -> Span:
    (one,) = [span for span in found if span.name == name and span.service == service]
    return one


def test_chunks_are_loaded_between_the_fetch_and_the_gpu() -> None:
    tracer = Tracer(CLOCK, "run", {}, 1000)
    tracer.request("node1", 0, RECORD | {"ttft_s": 0.2, "blend": {"load_s": 0.03}}, {})
    found = tracer.finish()
    stages = [named(found, name) for name in ("fetch", "load chunks", "wait for the GPU", "compute")]
    assert all(before.end_ns == after.start_ns for before, after in pairwise(stages))
    assert (stages[1].end_ns - stages[1].start_ns) / 1e9 == pytest.approx(0.03)


def test_a_request_s_spans_follow_one_another_and_reach_switch_and_store() -> None:
    found = spans()
    request = named(found, "request")
    assert (request.end_ns - request.start_ns) / 1e9 == pytest.approx(0.5)
    stages = [named(found, name) for name in ("fetch", "wait for the GPU", "compute", "tokens")]
    assert all(stage.parent is request for stage in stages)
    assert all(before.end_ns == after.start_ns for before, after in pairwise(stages))
    assert stages[0].attributes["weir.waited.home.store1_s"] == 0.015
    block = named(found, "block")
    assert (block.attributes["weir.home"], block.attributes["weir.depth"]) == ("store1", 2)
    own, copy = [span for span in found if span.name == "fragment" and span.service == "node1"]
    assert (own.parent, copy.parent) == (named(found, "probe"), named(found, "rest"))
    parts = {span.name: span for span in found if span.parent is own}
    assert {name: part.service for name, part in parts.items()} == {
        "forward": "s1",
        "answer": "store1",
        "reply": "s1",
    }
    assert (parts["answer"].end_ns - parts["answer"].start_ns) == 500_000
    leader = named(found, "fragment", "node2")
    assert copy.links == [(leader.trace_id, leader.span_id)]
    (held,) = [span for span in found if span.parent is copy]
    assert (held.service, held.name) == ("s1", "hold for another node's answer")
    assert {span.trace_id for span in found if span.service == "node1"} == {request.trace_id}


def test_the_block_that_ended_a_fetch_is_there_too() -> None:
    absent = bytes(16)
    probe = Journey("node1", 8, absent, 0, 0)
    for number, (op, leaving) in enumerate([(wire.OP_GET, False), (wire.OP_NOT_FOUND, True)]):
        t_ns = CLOCK.monotonic(101.01) + 1000 * number
        probe.sightings.append(Sighting(t_ns, "s1", "node1", leaving, b"", b"", op, 0, 8, 0, absent))
    probe.ended = True
    tracer = Tracer(CLOCK, "run", {}, 1000)
    ended = {"blocks": [], "missing": absent.hex(), "fetch_ended_by": "BlockNotFoundError"}
    tracer.request("node1", 0, RECORD | ended, {absent: [probe]})
    found = tracer.finish()
    block = named(found, "block")
    assert block.attributes["weir.ended_by"] == "BlockNotFoundError"
    assert block.parent is named(found, "fetch")
    fragment = named(found, "fragment")
    assert (fragment.parent, fragment.attributes["weir.outcome"]) == (block, "not found")


def test_what_has_no_room_says_so() -> None:
    found = spans(most=8)
    assert named(found, "block").attributes["weir.fragments.left_out"] == 2
    assert not [span for span in found if span.name == "fragment" and span.service == "node1"]


def test_otlp_is_what_the_published_proto_describes() -> None:
    found = spans()
    otlp = json.loads(json.dumps(to_otlp(found, {"weir.mode": "pool"})))
    parsed = json_format.ParseDict(as_protobuf_json(otlp), trace_pb2.TracesData())
    assert {
        attribute.value.string_value
        for resource in parsed.resource_spans
        for attribute in resource.resource.attributes
        if attribute.key == "service.name"
    } == {"node1", "node2", "s1", "store1"}
    read = [
        span for resource in parsed.resource_spans for scope in resource.scope_spans for span in scope.spans
    ]
    assert len(read) == len(found)
    ids = {span.span_id for span in read}
    assert len(ids) == len(read)
    for span in read:
        assert (len(span.trace_id), len(span.span_id)) == (16, 8)
        assert any(span.trace_id)
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
        assert not span.parent_span_id or span.parent_span_id in ids
        assert span.kind == trace_pb2.Span.SPAN_KIND_INTERNAL
    assert sum(len(span.links) for span in read) == 1


def test_chrome_s_trace_keeps_the_rules_of_its_format() -> None:
    trace = json.loads(json.dumps(to_chrome(spans(), {"weir.mode": "pool"})))
    check_chrome(trace)
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    assert names == {"node1", "node2", "s1", "store1"}
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == len(spans())
