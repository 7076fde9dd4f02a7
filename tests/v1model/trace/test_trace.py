"""A trace says what a packet did: on a real switch, as objects, as text and as JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from v1model.backend import Tracing
from v1model.backend.build import RUNTIME
from v1model.compile import compile_p4
from v1model.dataplane import CloneSession, DataPlaneError, Replica, TableEntry
from v1model.ir import ActionCall, KeyMatch
from v1model.switch import Switch
from v1model.trace import TraceEvent, TraceFilter, as_json, as_text

PROGRAM = Path(__file__).with_name("traced.p4")


@pytest.fixture
def switch() -> Iterator[Switch]:
    with Switch(compile_p4(PROGRAM, tracing=Tracing.STEPS)) as switch:
        yield switch


def steps(events: list[TraceEvent]) -> list[tuple[str, str]]:
    return [(event.kind, event.name) for event in events]


def test_a_packet_step_by_step(switch: Switch) -> None:
    switch.insert(TableEntry("In.route", (KeyMatch(0x0A00, prefix_length=8),), ActionCall("In.to", (7,))))
    switch.trace(TraceFilter())
    switch.inject(3, b"\x0a\x01rest")
    events = switch.take_trace()
    assert steps(events) == [
        ("received", ""),
        ("state", "start"),
        ("extract", "headers.h"),
        ("parsed", ""),
        ("control", "ingress"),
        ("table", "In.route"),
        ("queued", ""),
        ("control", "egress"),
        ("sent", ""),
    ]
    by_kind = {event.kind: event.values for event in events}
    assert by_kind["received"] == {"port": 3, "frame": b"\x0a\x01rest"}
    assert by_kind["extract"] == {"a": 0x0A01}
    assert by_kind["parsed"] == {"error": "NoError"}
    assert by_kind["table"] == {
        "key": {"hdr.h.a": 0x0A01},
        "hit": True,
        "action": "In.to",
        "arguments": {"port": 7},
        "matches": ["0xa00/8"],
    }
    assert by_kind["queued"] == {"port": 7, "instance": 0}
    assert by_kind["sent"] == {"port": 7, "frame": b"\x0a\x01rest"}
    assert {(event.packet, event.copy) for event in events} == {(1, 1)}
    assert switch.take_trace() == []


def test_a_miss_a_short_packet_and_a_drop(switch: Switch) -> None:
    switch.trace(TraceFilter())
    switch.inject(3, b"\x0a")
    events = switch.take_trace()
    by_kind = {event.kind: event.values for event in events}
    assert by_kind["parsed"] == {"error": "PacketTooShort"}
    assert by_kind["table"]["hit"] is False
    assert by_kind["table"]["action"] == "In.drop"
    assert events[-1].kind == "dropped"
    assert events[-1].values == {"cause": "ingress"}


def test_copies_know_what_they_are_copies_of(switch: Switch) -> None:
    switch.set_clone_session(1, CloneSession((Replica(1, 5), Replica(2, 6))))
    switch.insert(TableEntry("In.route", (KeyMatch(0xC000, prefix_length=8),), ActionCall("In.cloned", ())))
    switch.trace(TraceFilter())
    switch.inject(3, b"\xc0\x01")
    events = switch.take_trace()
    copied = [(e.copy, e.values["cause"], e.values["of"]) for e in events if e.kind == "copied"]
    assert copied == [(2, "clone of ingress", 1), (3, "replica", 2)]
    queued = {e.copy: (e.values["port"], e.values["instance"]) for e in events if e.kind == "queued"}
    assert queued == {1: (0, 0), 3: (1, 5), 2: (2, 6)}
    assert {event.copy for event in events if event.kind == "sent"} == {1, 2, 3}
    assert ("call", "clone") in steps(events)


def test_a_resubmitted_packet_is_a_copy(switch: Switch) -> None:
    switch.insert(TableEntry("In.route", (KeyMatch(0xD000, prefix_length=8),), ActionCall("In.again", ())))
    switch.trace(TraceFilter())
    switch.inject(3, b"\xd0\x01")
    events = switch.take_trace()
    assert [e.values for e in events if e.kind == "copied"] == [{"cause": "resubmit", "of": 1}]
    assert steps(events).count(("control", "ingress")) == 2


@pytest.mark.parametrize(
    ("wanted", "packets"),
    [
        (TraceFilter(), [b"\x0a\x01", b"\x0a\x02", b"\x0b\x01"]),
        (TraceFilter(port=4), [b"\x0a\x02"]),
        (TraceFilter(frame="0a*1"), [b"\x0a\x01"]),
        (TraceFilter(frame="** 01"), [b"\x0a\x01", b"\x0b\x01"]),
        (TraceFilter(port=4, frame="0b"), []),
        (TraceFilter(frame="0a 01 00"), []),
    ],
)
def test_only_what_is_wanted(switch: Switch, wanted: TraceFilter, packets: list[bytes]) -> None:
    switch.trace(wanted)
    for port, data in ((3, b"\x0a\x01"), (4, b"\x0a\x02"), (3, b"\x0b\x01")):
        switch.inject(port, data)
    assert [e.values["frame"] for e in switch.take_trace() if e.kind == "received"] == packets
    switch.trace(None)
    switch.inject(4, b"\x0a\x02")
    assert switch.take_trace() == []


@pytest.mark.parametrize("frame", ["0", "0x12", "gg", "00" * 257])
def test_patterns_that_are_none(frame: str) -> None:
    with pytest.raises(ValueError, match=r"hex digits|at most 256"):
        TraceFilter(frame=frame)


def test_assignments_are_told_on_request() -> None:
    with Switch(compile_p4(PROGRAM, tracing=Tracing.ASSIGNMENTS)) as switch:
        switch.insert(TableEntry("In.route", (KeyMatch(0, prefix_length=0),), ActionCall("In.to", (7,))))
        switch.trace(TraceFilter())
        switch.inject(3, b"\x0a\x01")
        assigned = [(e.name, e.values["value"]) for e in switch.take_trace() if e.kind == "assign"]
        assert assigned == [("standard_metadata.egress_spec", 7)]


def test_events_can_go_to_a_function(switch: Switch) -> None:
    seen: list[TraceEvent] = []
    switch.trace(TraceFilter(), seen.append)
    switch.inject(3, b"\x0a\x01")
    assert steps(seen)[0] == ("received", "")
    assert switch.take_trace() == []


def test_text_and_json_say_the_same(switch: Switch) -> None:
    switch.insert(TableEntry("In.route", (KeyMatch(0x0A00, prefix_length=8),), ActionCall("In.to", (7,))))
    switch.trace(TraceFilter())
    switch.inject(3, b"\x0a\x01", timestamp_us=1_500_000)
    events = switch.take_trace()
    lines = [as_text(event) for event in events]
    assert lines[0] == "1.1      1.500000 s  comes in by port 3, 2 bytes: 0a01"
    assert "    table In.route [hdr.h.a=0xa01]: hit (0xa00/8), In.to(port=7)" in lines[5]
    assert lines[-1].endswith("goes out by port 7, 2 bytes: 0a01")
    records = [json.loads(as_json(event)) for event in events]
    assert records[0]["values"] == {"port": 3, "frame": "0a01"}
    assert [record["kind"] for record in records] == [event.kind for event in events]


def test_a_program_that_was_not_compiled_for_it() -> None:
    compiled = compile_p4(PROGRAM)
    assert compiled.trace_sites == ()
    with Switch(compiled) as switch, pytest.raises(DataPlaneError, match="not compiled to be traced"):
        switch.trace(TraceFilter())


def test_off_it_costs_nothing(tmp_path: Path) -> None:
    """Not one call of the trace is left in what a program is compiled to."""
    library = compile_p4(PROGRAM).library
    source = library.with_name("program.c")
    assert "emit_trace" not in source.read_text()
    objects = tmp_path / "program.o"
    subprocess.run(["cc", "-O2", f"-I{RUNTIME}", "-w", "-c", source, "-o", objects], check=True)
    undefined = subprocess.run(["nm", "-u", objects], check=True, capture_output=True, text=True).stdout
    assert "port_output" in undefined
    assert "emit_trace" not in undefined
    assert "trace_wants" not in undefined
