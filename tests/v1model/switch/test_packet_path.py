"""What becomes of a packet after ingress and egress, in simple_switch's order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.v1model.switch.conftest import frame, trace
from v1model.dataplane import CloneSession, DataPlaneError, Output, Replica
from v1model.switch import DROP_PORT, Switch

Make = Callable[..., Switch]
REPORT = "hdr.trace = {{ (bit<32>) ({}), (bit<32>) ({}), (bit<32>) ({}) }};"
SEND = "std.egress_spec = (bit<9>) hdr.h.a;"


def test_what_decides_nothing_goes_to_port_0(make: Make) -> None:
    assert make().inject(3, frame(1, payload=b"rest")) == [Output(0, frame(1, payload=b"rest"))]


def test_unicast_and_drop(make: Make) -> None:
    switch = make(ingress=SEND + "if (hdr.h.b == 1) { mark_to_drop(std); }")
    assert switch.inject(1, frame(7)) == [Output(7, frame(7))]
    assert switch.inject(1, frame(7, 1)) == []
    assert switch.statistics()["drops"]["ingress"] == 1


def test_a_drop_after_multicast_drops_and_a_multicast_after_drop_replicates(make: Make) -> None:
    switch = make(
        ingress="""
        if (hdr.h.b == 1) { std.mcast_grp = 5; mark_to_drop(std); }
        else { mark_to_drop(std); std.mcast_grp = 5; }"""
    )
    switch.set_multicast_group(5, [Replica(2), Replica(3)])
    assert switch.inject(1, frame(0, 1)) == []
    assert [output.port for output in switch.inject(1, frame())] == [2, 3]


def test_replicas_have_metadata_of_their_own(make: Make) -> None:
    switch = make(
        ingress="std.mcast_grp = 1; meta.lost = 7;",
        egress="meta.lost = meta.lost + (bit<16>) std.egress_rid; hdr.h.d = (bit<32>) hdr.h.d + 1;"
        + REPORT.format("std.egress_port", "meta.lost", "std.instance_type"),
    )
    switch.set_multicast_group(1, [Replica(2, 10), Replica(3, 20), Replica(2, 30)])
    outputs = switch.inject(1, frame(payload=b"payload"))
    assert [trace(output.data) for output in outputs] == [(2, 17, 5), (3, 27, 5), (2, 37, 5)]
    assert {output.data[12:] for output in outputs} == {frame(d=1, payload=b"payload")}


def test_a_group_without_replicas_loses_the_packet(make: Make) -> None:
    switch = make(ingress="std.mcast_grp = 9;")
    assert switch.inject(1, frame()) == []
    assert switch.statistics()["drops"]["no_replicas"] == 1


def test_a_drop_in_egress_prunes_one_replica(make: Make) -> None:
    switch = make(ingress="std.mcast_grp = 1;", egress="if (std.egress_port == 2) { mark_to_drop(std); }")
    switch.set_multicast_group(1, [Replica(2), Replica(3)])
    assert [output.port for output in switch.inject(1, frame())] == [3]
    assert switch.statistics()["drops"]["egress"] == 1


def test_egress_spec_of_ingress_does_not_drop_in_egress(make: Make) -> None:
    switch = make(ingress=SEND, egress=REPORT.format("std.egress_spec", "std.egress_port", 0))
    assert [trace(output.data) for output in switch.inject(1, frame(6))] == [(0, 6, 0)]


def test_an_ingress_clone_is_the_packet_that_came_in(make: Make) -> None:
    """Headers as parsed, metadata 0 but for the field list at the end of ingress."""
    switch = make(
        ingress=f"""
        meta.kept = 1; meta.lost = 2;
        clone_preserving_field_list(CloneType.I2E, 4, 1);
        hdr.h.d = 99; meta.kept = 3; {SEND}""",
        egress="if (std.instance_type == 1) {"
        + REPORT.format("meta.kept", "meta.lost", "std.ingress_port")
        + "}",
    )
    switch.set_clone_session(4, CloneSession((Replica(8),)))
    clone, original = switch.inject(5, frame(2, d=1, payload=b"rest"))
    assert original == Output(2, frame(2, d=99, payload=b"rest"))
    assert (clone.port, trace(clone.data), clone.data[12:]) == (8, (3, 0, 0), frame(2, d=1, payload=b"rest"))


def test_a_clone_of_a_dropped_packet_is_sent(make: Make) -> None:
    switch = make(ingress="clone(CloneType.I2E, 4); mark_to_drop(std);")
    switch.set_clone_session(4, CloneSession((Replica(8), Replica(9)), packet_length_bytes=10))
    outputs = switch.inject(5, frame(payload=b"abcd"))
    assert outputs == [Output(port, frame(payload=b"ab")) for port in (8, 9)]


def test_a_clone_to_no_session_is_nothing(make: Make) -> None:
    assert len(make(ingress="clone(CloneType.I2E, 4);").inject(1, frame())) == 1


def test_an_egress_clone_carries_what_egress_made_of_it(make: Make) -> None:
    switch = make(
        ingress=SEND + "meta.kept = 6; meta.lost = 7;",
        egress=f"""
        if (std.instance_type == 0) {{
            hdr.h.d = 5;
            clone_preserving_field_list(CloneType.E2E, 1, 1);
        }} else {{ {REPORT.format("std.instance_type", "meta.kept", "meta.lost")} }}""",
    )
    switch.set_clone_session(1, CloneSession((Replica(8),)))
    original, clone = switch.inject(1, frame(2, payload=b"rest"))
    assert original == Output(2, frame(2, d=5, payload=b"rest"))
    assert (clone.port, trace(clone.data), clone.data[12:]) == (8, (2, 6, 0), frame(2, d=5, payload=b"rest"))


def test_resubmit_starts_over_with_the_original(make: Make) -> None:
    switch = make(
        ingress=f"""
        if (std.instance_type == 0) {{
            meta.kept = 5; meta.twice = 6; meta.lost = 7; hdr.h.d = 1;
            resubmit_preserving_field_list(2);
            mark_to_drop(std);
        }} else {{
            {REPORT.format("std.instance_type", "meta.twice", "meta.kept ++ meta.lost")}
            {SEND}
        }}"""
    )
    (output,) = switch.inject(1, frame(3, payload=b"rest"))
    assert (output.port, trace(output.data)) == (3, (6, 6, 0))
    assert output.data[12:] == frame(3, payload=b"rest")


def test_recirculate_parses_what_was_deparsed(make: Make) -> None:
    switch = make(
        parser="""
        state start { packet.extract(hdr.t); transition select(hdr.t.kind) { 1: first; default: accept; } }
        state first { packet.extract(hdr.h); transition accept; }""",
        ingress="std.egress_spec = 4; meta.lost = (bit<16>) std.instance_type;",
        egress="""
        if (hdr.h.isValid()) {
            hdr.h.setInvalid(); hdr.t.kind = 2; meta.kept = 77;
            recirculate_preserving_field_list(1);
        } else { hdr.h.setValid(); hdr.h.c = meta.kept; hdr.h.d = (bit<32>) meta.lost; }""",
    )
    (output,) = switch.inject(1, b"\x01" + frame(1, 2, 3, 4, b"rest"))
    assert output == Output(4, frame(0, 0, 77, 4) + b"\x02rest")


def test_truncate_in_ingress_is_not_for_replicas(make: Make) -> None:
    switch = make(ingress="truncate(2); std.egress_spec = 5; if (hdr.h.a == 1) { std.mcast_grp = 1; }")
    switch.set_multicast_group(1, [Replica(8), Replica(9)])
    assert switch.inject(1, frame(1)) == [Output(8, frame(1)), Output(9, frame(1))]
    assert switch.inject(1, frame(2)) == [Output(5, bytes((2, 0)))]


def test_endless_recirculation_ends(make: Make) -> None:
    switch = make(egress="recirculate_preserving_field_list(1);")
    assert switch.inject(1, frame()) == []
    assert switch.statistics()["drops"]["too_many_passes"] == 1


def test_loops_inside_loops_end(make: Make) -> None:
    """Their iterations are counted together: of ten loops by 2,000 there were 2,000 to the tenth power."""
    loops = "".join(f"for (bit<32> i{n} = 0; i{n} < 2000; i{n} = i{n} + 1) {{" for n in range(10))
    switch = make(ingress=f"{loops} meta.lost = meta.lost + 1; {'}' * 10}")
    assert switch.inject(1, frame()) == []
    assert switch.statistics()["drops"]["endless_loop"] == 1


def test_endless_resubmission_and_cloning_end(make: Make) -> None:
    assert make(ingress="resubmit_preserving_field_list(1);").inject(1, frame()) == []
    clones = make(egress="clone(CloneType.E2E, 1);")
    clones.set_clone_session(1, CloneSession((Replica(8), Replica(8))))
    outputs = clones.inject(1, frame())
    assert 0 < len(outputs) <= 4096
    drops = clones.statistics()["drops"]
    assert drops["too_many_passes"] + drops["no_buffer"] > 0


RESUBMIT = "if (hdr.h.b == 0) { resubmit_preserving_field_list(1); }"
RECIRCULATE = "if (hdr.h.b == 0) { recirculate_preserving_field_list(1); }"


@pytest.mark.parametrize(
    "parts",
    [
        {"ingress": RESUBMIT},
        {"egress": RECIRCULATE},
        {"ingress": "clone(CloneType.I2E, 1);", "egress": RECIRCULATE},
    ],
    ids=["resubmitted", "recirculated", "cloned, too"],
)
def test_endless_packets_end_while_interfaces_are_served(make: Make, parts: dict[str, str]) -> None:
    """The forwarding thread runs them between others' bursts; a packet's own rounds count there, too."""
    switch = make(**parts)
    switch.set_clone_session(1, CloneSession((Replica(8),)))
    switch.start()
    eventually(lambda: not switch.inject(1, frame(b=1)))  # the forwarding thread has it
    switch.inject(1, frame())
    eventually(lambda: switch.statistics()["drops"]["too_many_passes"])


def eventually(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.005)


def test_truncate_keeps_the_shortest(make: Make) -> None:
    switch = make(ingress=SEND + "truncate(20); truncate(10);", egress="truncate(15);")
    assert switch.inject(1, frame(2, payload=b"abcdef")) == [Output(2, frame(2, payload=b"ab"))]


def test_packet_length_follows_headers_made_valid(make: Make) -> None:
    switch = make(
        ingress=SEND + "hdr.t.setValid(); hdr.t.setValid(); if (hdr.h.b == 1) { hdr.h.setInvalid(); }",
        egress=REPORT.format("std.packet_length", 0, 0),
    )
    assert trace(switch.inject(1, frame(2))[0].data)[0] == 9
    assert trace(switch.inject(1, frame(2, 1))[0].data)[0] == 1


def test_a_header_made_valid_is_zero(make: Make) -> None:
    switch = make(ingress=SEND + "hdr.h.setInvalid(); hdr.h.setValid();")
    assert switch.inject(1, frame(2, 3, 4, 5, b"x")) == [Output(2, frame(payload=b"x"))]


def test_timestamps_are_the_callers(make: Make) -> None:
    switch = make(
        ingress=SEND,
        egress=REPORT.format(
            "std.ingress_global_timestamp", "std.egress_global_timestamp", "std.deq_timedelta"
        ),
    )
    (output,) = switch.inject(1, frame(2), timestamp_us=123_456)
    assert trace(output.data) == (123_456, 123_456, 0)


def test_packets_for_the_cpu_port_are_events_too(make: Make) -> None:
    switch = make(ingress=f"std.egress_spec = {510};")
    assert switch.inject(1, frame(1)) == [Output(510, frame(1))]
    assert switch.wait_events(0) == [Output(510, frame(1))]
    assert switch.wait_events(0) == []
    switch.packet_out(frame(2))
    assert switch.take_outputs() == [Output(510, frame(2))]


def test_a_failed_assertion_drops_and_is_logged(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    switch = make(ingress=SEND + 'log_msg("a is {} and d {}", { hdr.h.a, hdr.h.d }); assert(hdr.h.b == 0);')
    with caplog.at_level("INFO"):
        assert len(switch.inject(1, frame(2, d=70000))) == 1
        assert switch.inject(1, frame(2, 1)) == []
    assert caplog.messages[0] == "a is 2 and d 70000"
    assert caplog.messages[-1].startswith("assert failed at")
    assert switch.statistics()["drops"]["assertion_failed"] == 1


def test_a_frame_larger_than_the_buffers_is_counted(make: Make) -> None:
    switch = make()
    assert switch.inject(1, bytes(70000)) == []
    assert switch.statistics()["drops"]["oversize"] == 1
    assert switch.inject(1, b"") == [Output(0, b"")]


def test_switches_are_independent(make: Make) -> None:
    one, two = make(ingress=SEND), make(ingress=SEND)
    one.set_multicast_group(1, [Replica(1)])
    assert two.multicast_groups() == {}
    assert one.inject(1, frame(2)) == two.inject(1, frame(2))


def test_port_511_drops_whatever_set_it(make: Make) -> None:
    assert make(ingress=f"std.egress_spec = {DROP_PORT};").inject(1, frame()) == []


def test_closing_ends_a_wait_and_later_calls_say_so(make: Make) -> None:
    switch = make()
    seen: list[object] = []
    waiter = threading.Thread(target=lambda: seen.append(switch.wait_events(60)))
    waiter.start()
    switch.close()
    waiter.join(10)
    assert seen == [[]]
    with pytest.raises(DataPlaneError, match="closed"):
        switch.inject(1, b"")
    switch.close()


def test_a_wait_for_events_can_be_interrupted_before_and_after_it_began(make: Make) -> None:
    switch = make()
    switch.interrupt_wait()
    assert switch.wait_events(60) == []
    waiter = threading.Thread(target=lambda: switch.wait_events(60))
    waiter.start()
    switch.interrupt_wait()
    waiter.join(10)
    assert not waiter.is_alive()


def test_recirculate_in_ingress_takes_effect_after_egress(make: Make) -> None:
    """As in simple_switch: the packet that comes round is the one that egress has left."""
    switch = make(
        ingress="""if (std.instance_type == 4) { hdr.h.b = (bit<8>) meta.kept; }
            else { meta.kept = 7; recirculate_preserving_field_list(1); }""",
        egress="hdr.h.a = hdr.h.a + 1;",
    )
    (output,) = switch.inject(1, frame(a=5))
    assert output.data[:2] == b"\7\7"


def test_fields_of_nested_structs_are_kept(make: Make) -> None:
    switch = make(
        types="struct inner_t { @field_list(3) bit<8> a; bit<8> b; } struct outer_t { inner_t inner; }",
        metadata="outer_t outer; @field_list(3) inner_t all;",
        ingress="""if (std.instance_type == 6) {
                hdr.h.a = meta.outer.inner.a; hdr.h.b = meta.outer.inner.b; hdr.h.c = (bit<16>) meta.all.b;
            } else {
                meta.outer.inner = {1, 2}; meta.all = {3, 4}; resubmit_preserving_field_list(3);
            }""",
    )
    (output,) = switch.inject(1, frame())
    assert output.data[:4] == b"\1\0\0\4"
