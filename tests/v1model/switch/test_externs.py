"""Registers, counters, meters, hashes, checksums, random numbers, digests."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.v1model.switch.conftest import frame, trace
from v1model.binding.digests import Collector
from v1model.binding.events import Event
from v1model.dataplane import (
    CounterValue,
    CustomCrc,
    DataPlaneError,
    DigestConfig,
    DigestList,
    MeterConfig,
    MeterCounts,
    Output,
)
from v1model.switch import Switch

Make = Callable[..., Switch]


def test_registers_of_all_widths(make: Make) -> None:
    widths = (1, 8, 17, 32, 48, 64, 65, 128, 129, 2048)
    declared = "".join(f"register<bit<{w}>, bit<8>>(4) r{w}; bit<{w}> v{w};" for w in widths)
    body = "".join(f"r{w}.read(v{w}, hdr.h.a); v{w} = v{w} + 1; r{w}.write(hdr.h.b, v{w});" for w in widths)
    switch = make(ingress_declarations=declared, ingress=body)
    for width in widths:
        switch.set_register(f"MyIngress.r{width}", 1, (1 << width) - 2)
    switch.inject(1, frame(1, 2))
    switch.inject(1, frame(2, 3))
    for width in widths:
        read = [switch.register(f"MyIngress.r{width}", i) for i in range(4)]
        assert read == [0, (1 << width) - 2, (1 << width) - 1, 0], width


def test_registers_whose_cells_lie_side_by_side_are_their_own(make: Make) -> None:
    """Neighbours that are wide and as long share memory; the narrow and the longer one between do not."""
    kinds = {
        "a": (2048, 3),
        "b": (136, 3),
        "c": (1024, 3),
        "narrow": (32, 3),
        "d": (512, 3),
        "longer": (512, 5),
    }
    declared = "".join(f"register<bit<{w}>, bit<32>>({size}) {name};" for name, (w, size) in kinds.items())
    body = "".join(
        f"bit<{w}> v_{name}; {name}.read(v_{name}, 2); {name}.write(1, v_{name} + 1);"
        for name, (w, _) in kinds.items()
    )
    switch = make(ingress_declarations=declared, ingress=body)
    for number, (name, (width, _)) in enumerate(kinds.items()):
        switch.set_register(f"MyIngress.{name}", 2, (1 << width) - 2 - number)
    switch.inject(1, frame())
    for number, (name, (width, size)) in enumerate(kinds.items()):
        read = [switch.register(f"MyIngress.{name}", i) for i in range(size)]
        top = (1 << width) - 2 - number
        assert read == [0, top + 1, top, 0, 0][:size], name
    switch.reset()
    for name, (_, size) in kinds.items():
        assert [switch.register(f"MyIngress.{name}", i) for i in range(size)] == [0] * size


def test_registers_out_of_range_change_nothing(make: Make) -> None:
    switch = make(
        ingress_declarations="register<bit<32>, bit<32>>(4) r;",
        ingress="hdr.h.a = 7; bit<32> v = 9; r.read(v, hdr.h.d); r.write(hdr.h.d, 5); hdr.h.d = v;",
    )
    assert switch.inject(1, frame(d=4))[0].data == frame(7, d=9)
    assert switch.inject(1, frame(d=0xFFFFFFFF))[0].data == frame(7, d=9)
    assert switch.inject(1, frame(d=3))[0].data == frame(7, d=0)
    assert [switch.register("MyIngress.r", i) for i in range(4)] == [0, 0, 0, 5]
    for call in (
        lambda: switch.register("MyIngress.r", 4),
        lambda: switch.set_register("MyIngress.r", -1, 0),
    ):
        with pytest.raises(DataPlaneError) as caught:
            call()
        assert caught.value.code == "OUT_OF_RANGE"


@pytest.mark.parametrize("width", [65, 128, 136])
def test_indices_beyond_64_bits_are_out_of_range(make: Make, width: int) -> None:
    """Their low bits alone would be an index of some cell."""
    switch = make(
        headers="t_t[2] stack;",
        ingress_declarations=f"""
            register<bit<8>, bit<{width}>>(4) r;
            counter<bit<{width}>>(4, CounterType.packets) c;""",
        ingress=f"""
            bit<{width}> i = (bit<{width}>)hdr.h.b << 64 | (bit<{width}>)hdr.h.a;
            r.write(i, 5);
            c.count(i);
            hdr.stack[0].setValid();
            hdr.stack[1].setValid();
            hdr.stack[i].kind = 7;""",
    )
    for a, b in ((1, 1), (1, 0)):
        switch.inject(1, frame(a, b))
        written = 0 if b else 5
        assert [switch.register("MyIngress.r", i) for i in range(4)] == [0, written, 0, 0]
        assert switch.counter("MyIngress.c", 1).packets == (0 if b else 1)
    assert switch.inject(1, frame(1, 1))[0].data[-2:] == b"\0\0"
    assert switch.inject(1, frame(1, 0))[0].data[-2:] == b"\0\7"


def test_negative_indices_are_out_of_range(make: Make) -> None:
    """Their bits alone would be an index of the last cells."""
    switch = make(
        headers="t_t[4] stack;",
        ingress_declarations="register<bit<8>, int<8>>(256) r;",
        ingress="""
            r.write((int<8>)hdr.h.a, 5);
            hdr.stack[1].setValid();
            hdr.stack[3].setValid();
            hdr.stack[(int<3>)(bit<3>)hdr.h.a].kind = 7;
            hdr.stack[(int<2>)(bit<2>)hdr.h.a].kind = 9;""",
    )
    assert switch.inject(1, frame(0xFF))[0].data[-2:] == b"\0\0"
    assert switch.inject(1, frame(1))[0].data[-2:] == b"\x09\0"
    assert [i for i in range(256) if switch.register("MyIngress.r", i)] == [1]


def test_counters_count_the_bytes_that_came_in(make: Make) -> None:
    switch = make(
        ingress_declarations="counter<bit<8>>(4, CounterType.packets_and_bytes) c;",
        ingress="c.count(hdr.h.a); hdr.t.setValid();",
        egress="truncate(3);",
    )
    for a in (0, 1, 1, 3, 4, 255):
        switch.inject(1, frame(a, payload=b"ab"))
    assert [v.packets for v in switch.counters("MyIngress.c")] == [1, 2, 0, 1]
    assert switch.counter("MyIngress.c", 1) == CounterValue(2, 20)
    switch.set_counter("MyIngress.c", 1, CounterValue(7, 8))
    assert switch.counter("MyIngress.c", 1) == CounterValue(7, 8)
    switch.reset()
    assert switch.counter("MyIngress.c", 1) == CounterValue()


def test_meters_have_two_rates(make: Make) -> None:
    switch = make(
        ingress_declarations="meter<bit<8>>(2, MeterType.bytes) m;",
        ingress="bit<2> colour = 3; m.execute_meter(hdr.h.a, colour); hdr.h.b = (bit<8>) colour;",
    )

    def colours(count: int, at_us: int, index: int = 0) -> list[int]:
        return [switch.inject(1, frame(index), timestamp_us=at_us)[0].data[1] for _ in range(count)]

    assert colours(2, 0) == [0, 0]
    assert colours(1, 0, index=2) == [3]
    switch.set_meter("MyIngress.m", 0, MeterConfig(cir=0, cburst=16, pir=800, pburst=32))
    late = 10**10
    assert colours(6, late) == [0, 0, 1, 1, 2, 2]
    assert colours(2, late + 10_000) == [1, 2]  # 8 bytes at the peak rate in 10 ms
    assert switch.meter("MyIngress.m", 0) == MeterConfig(0, 16, 800, 32)
    counts = switch.meter_counts("MyIngress.m", 0)
    assert [one.packets for one in (counts.green, counts.yellow, counts.red)] == [4, 3, 3]
    assert counts.red.bytes == 3 * len(frame())
    switch.set_meter_counts("MyIngress.m", 0, MeterCounts(green=CounterValue(1, 2)))
    assert switch.meter_counts("MyIngress.m", 0) == MeterCounts(green=CounterValue(1, 2))
    switch.set_meter("MyIngress.m", 0, None)
    assert colours(2, late) == [0, 0]
    with pytest.raises(DataPlaneError):
        switch.set_meter("MyIngress.m", 0, MeterConfig(cir=2, cburst=1, pir=1, pburst=1))


def test_meters_go_by_the_clock_that_is_set(make: Make) -> None:
    switch = make(
        ingress_declarations="meter<bit<8>>(2, MeterType.packets) m;",
        ingress="bit<2> colour = 3; m.execute_meter(hdr.h.a, colour); hdr.h.b = (bit<8>) colour;",
    )

    def colours(count: int, at_us: int) -> list[int]:
        switch.set_clock(at_us)
        return [switch.inject(1, frame())[0].data[1] for _ in range(count)]

    switch.set_clock(0)
    switch.set_meter("MyIngress.m", 0, MeterConfig(cir=1, cburst=1, pir=1, pburst=1))
    assert colours(2, 0) == [0, 2]
    assert colours(2, 999_999) == [2, 2]
    assert colours(2, 1_000_000) == [0, 2]
    assert colours(2, 10**12) == [0, 2]
    switch.set_clock(None)
    assert switch.inject(1, frame())[0].data[1] == 2  # the machine's clock is not that far


def crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def csum16(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def xor16(data: bytes) -> int:
    result = 0
    for i, byte in enumerate(data):
        result ^= byte << (0 if i % 2 else 8)
    return result


HASHES: dict[str, Callable[[bytes], int]] = {
    "crc32": zlib.crc32,
    "crc32_custom": zlib.crc32,
    "crc16": crc16,
    "crc16_custom": crc16,
    "csum16": csum16,
    "xor16": xor16,
    "identity": lambda data: int.from_bytes(data[:8], "big"),
}


@pytest.mark.parametrize("algorithm", HASHES)
@pytest.mark.parametrize(
    ("fields", "serialize"),
    [
        ("hdr.h.a, hdr.h.d, hdr.h.c", lambda f: f[0:1] + f[4:8] + f[2:4]),
        ("hdr.h.a[3:0], hdr.h.b", lambda f: ((f[0] & 15) << 12 | f[1] << 4).to_bytes(2, "big")),
        ("hdr.h.a, hdr.t.kind, 16w0x1234", lambda f: f[0:1] + b"\x12\x34"),
    ],
    ids=["fields", "bits", "invalid"],
)
def test_hashes(make: Make, algorithm: str, fields: str, serialize: Callable[[bytes], bytes]) -> None:
    """Bits one behind the other, zeros at the end; fields of headers that are not valid left out."""
    switch = make(
        ingress=f"""
        bit<32> all; bit<16> some; bit<16> none;
        hash(all, HashAlgorithm.{algorithm}, 32w0, {{ {fields} }}, 64w0x100000000);
        hash(some, HashAlgorithm.{algorithm}, 16w1000, {{ {fields} }}, 32w77);
        hash(none, HashAlgorithm.{algorithm}, 16w5, {{ {fields} }}, 32w0);
        hdr.trace = {{ all, (bit<32>) some, (bit<32>) none }};"""
    )
    for sample in (frame(), frame(1, 2, 3, 4), frame(255, 254, 65535, 0xDEADBEEF)):
        value = HASHES[algorithm](serialize(sample))
        expected = (value & 0xFFFFFFFF, 1000 + value % 77, 5)
        assert trace(switch.inject(1, sample)[0].data) == expected


# The check values of the catalogue of parametrised CRC algorithms, of "123456789".
CUSTOM_CRCS = [
    ("crc16_custom", CustomCrc(0x1021, 0xFFFF, 0, False, False), 0x29B1),  # CRC-16/IBM-3740
    ("crc16_custom", CustomCrc(0x1021, 0xFFFF, 0xFFFF, True, True), 0x906E),  # CRC-16/IBM-SDLC
    ("crc32_custom", CustomCrc(0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, False, False), 0xFC891918),  # CRC-32/BZIP2
    ("crc32_custom", CustomCrc(0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, True, True), 0xE3069283),  # CRC-32/ISCSI
]


@pytest.mark.parametrize(("algorithm", "crc", "expected"), CUSTOM_CRCS)
def test_custom_crcs_are_those_that_were_set(
    make: Make, algorithm: str, crc: CustomCrc, expected: int
) -> None:
    """Of one call, until the switch is reset; the other call keeps the usual one."""
    switch = make(
        ingress=f"""
        bit<32> one; bit<32> other;
        hash(one, HashAlgorithm.{algorithm}, 32w0, {{ 72w0x313233343536373839 }}, 64w0x100000000);
        hash(other, HashAlgorithm.{algorithm}, 32w0, {{ 72w0x313233343536373839 }}, 64w0x100000000);
        hdr.trace = {{ one, other, 0 }};"""
    )
    usual = HASHES[algorithm](b"123456789")
    switch.set_custom_crc(0, crc)
    assert trace(switch.inject(1, frame())[0].data) == (expected, usual, 0)
    switch.reset()
    assert trace(switch.inject(1, frame())[0].data) == (usual, usual, 0)
    with pytest.raises(DataPlaneError, match="no call 2"):
        switch.set_custom_crc(2, crc)
    with pytest.raises(DataPlaneError, match="more than"):
        switch.set_custom_crc(1, replace(crc, final_xor=1 << 32))


@pytest.mark.parametrize("payload", [b"", b"a", b"ab", b"abcdefghijk"])
def test_checksums_over_payload(make: Make, payload: bytes) -> None:
    switch = make(
        verify="""
        verify_checksum_with_payload(
            hdr.h.a == 1, { hdr.h.a, hdr.h.b, hdr.h.d }, hdr.h.c, HashAlgorithm.csum16);""",
        ingress="hdr.h.b = (bit<8>) std.checksum_error; hdr.t.setValid();",
        compute="""
        update_checksum_with_payload(true, { hdr.h.a, hdr.h.b, hdr.h.d }, hdr.h.c, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.h.a == 1, { hdr.h.a }, hdr.h.d, HashAlgorithm.crc32);""",
    )
    right = csum16(b"\1\0" + bytes(4) + payload)
    for c, bad in ((right, 0), (right ^ 1, 1)):
        (output,) = switch.inject(1, frame(1, 0, c, payload=payload))
        total = csum16(bytes((1, bad)) + bytes(4) + payload)
        assert output.data == frame(1, bad, total, zlib.crc32(b"\1" + payload), b"\0" + payload)


@pytest.mark.parametrize("kind", [0, 1])
def test_checksums_over_large_fields_count_where_these_begin(make: Make, kind: int) -> None:
    """A header of large fields is summed where it lies, behind an even or an odd number of bytes."""
    switch = make(
        types="header large_t { bit<2048> one; bit<1040> two; }",
        headers="large_t l;",
        parser="state start { packet.extract(hdr.h); packet.extract(hdr.l); transition accept; }",
        ingress="if (hdr.h.a == 1) { hdr.t.setValid(); hdr.t.kind = 7; }",
        compute="""
        update_checksum(
            true, { hdr.h.a, hdr.h.b, hdr.t.kind, hdr.l, hdr.h.d }, hdr.h.c, HashAlgorithm.csum16);""",
    )
    large = bytes(range(256)) + bytes(range(130, 0, -1))
    (output,) = switch.inject(1, frame(kind, 3, 0) + large)
    total = csum16(bytes((kind, 3)) + b"\7" * kind + large + bytes(4))
    assert frame(kind, 3, total) in output.data


def test_verify_ignores_headers_that_are_not_there(make: Make) -> None:
    switch = make(
        parser="state start { packet.extract(hdr.t); transition accept; }",
        verify="verify_checksum(true, { hdr.h.a }, hdr.h.c, HashAlgorithm.csum16);",
        ingress="hdr.t.kind = (bit<8>) std.checksum_error;",
    )
    assert switch.inject(1, b"x")[0].data == b"\0"


def test_random_numbers_stay_in_range(make: Make) -> None:
    switch = make(
        ingress="""
        bit<32> r = 5; random(r, 32w10, 32w13);
        bit<32> wrong = 5; random(wrong, 32w4, 32w3);
        bit<32> h; hash(h, HashAlgorithm.random, 32w0, { hdr.h.a }, 32w3);
        hdr.trace = { r, wrong, h };"""
    )
    seen = [trace(switch.inject(1, frame())[0].data) for _ in range(200)]
    assert {x for x, _, _ in seen} == {10, 11, 12, 13}
    assert {y for _, y, _ in seen} == {5}
    assert {z for _, _, z in seen} == {0, 1, 2}


DIGEST = {
    "types": "struct learn_t { bit<8> a; bit<32> d; bit<9> port; }",
    "ingress": """
    if (hdr.h.b == 1) { digest<learn_t>(1, { 8w0, 32w0, std.ingress_port }); }
    bit<8> local = hdr.h.a;
    digest<learn_t>(1, { local, hdr.h.d, std.ingress_port });
    local = 99; hdr.h.d = hdr.h.d + 1;""",
}


def lists(switch: Switch, timeout_s: float = 0) -> list[tuple[tuple[int, ...], ...]]:
    return [event.data for event in switch.wait_events(timeout_s) if isinstance(event, DigestList)]


def test_a_digest_has_the_values_of_its_call(make: Make) -> None:
    """The last call of a pass counts; what changes after it is not seen."""
    switch = make(**DIGEST)
    switch.inject(3, frame(5))
    assert lists(switch) == []  # not asked for
    switch.set_digest("learn_t", DigestConfig(max_list_size=2))
    for a in (1, 2, 3):
        switch.inject(3, frame(a, 1, d=10 * a))
    assert lists(switch) == [((1, 10, 3), (2, 20, 3))]
    switch.inject(3, frame(4))
    (event,) = switch.wait_events(0)
    assert isinstance(event, DigestList)
    assert (event.digest, event.list_id, event.data) == ("learn_t", 2, ((3, 30, 3), (4, 0, 3)))


def test_a_digest_list_is_sent_when_its_time_is_over(make: Make) -> None:
    switch = make(**DIGEST)
    switch.set_digest("learn_t", DigestConfig(max_list_size=100, max_timeout_ns=20_000_000))
    switch.inject(3, frame(1))
    assert lists(switch, 30) == [((1, 0, 3),)]


def test_unacknowledged_samples_are_not_repeated(make: Make) -> None:
    switch = make(**DIGEST)
    switch.set_digest("learn_t", DigestConfig(max_list_size=1, ack_timeout_ns=3600 * 10**9))
    for _ in range(3):
        switch.inject(3, frame(1))
    (event,) = switch.wait_events(0)
    assert isinstance(event, DigestList)
    switch.acknowledge_digest("learn_t", event.list_id)
    switch.inject(3, frame(1))
    assert lists(switch) == [((1, 0, 3),)]


def test_waiting_for_events_ends_when_one_comes(make: Make) -> None:
    switch = make(ingress="std.egress_spec = 510;")
    seen: list[Event] = []
    waiter = threading.Thread(target=lambda: seen.extend(switch.wait_events(30)))
    waiter.start()
    switch.inject(1, frame(1))
    waiter.join(10)
    assert not waiter.is_alive()
    (event,) = seen
    assert isinstance(event, Output)
    assert event.data == frame(1)


def test_waiting_for_a_digest_list_ends_with_its_last_sample(make: Make) -> None:
    switch = make(**DIGEST)
    switch.set_digest("learn_t", DigestConfig(max_list_size=3))
    seen: list[tuple[tuple[int, ...], ...]] = []
    waiter = threading.Thread(target=lambda: seen.extend(lists(switch, 30)))
    waiter.start()
    for a in (1, 2, 3):
        switch.inject(3, frame(a))
    waiter.join(10)
    assert not waiter.is_alive()
    assert seen == [((1, 0, 3), (2, 0, 3), (3, 0, 3))]


def test_a_packet_for_the_controller_does_not_wait_for_digests(make: Make) -> None:
    program = {**DIGEST, "ingress": DIGEST["ingress"] + "if (hdr.h.a == 9) { std.egress_spec = 510; }"}
    switch = make(**program)
    switch.set_digest("learn_t", DigestConfig(max_list_size=100))
    switch.inject(3, frame(1))
    seen: list[object] = []
    waiter = threading.Thread(target=lambda: seen.extend(switch.wait_events(30)))
    waiter.start()
    switch.inject(3, frame(9))
    waiter.join(10)
    assert not waiter.is_alive()
    assert [type(event) for event in seen] == [Output]


def test_the_first_list_after_a_pause_leaves_sooner_than_those_of_a_stream() -> None:
    ms = 10**6
    collector = Collector(digest=None, widths=[8], config=DigestConfig(80 * ms, 100))  # type: ignore[arg-type]
    collector.add(b"\x01", 1000 * ms)
    assert collector.deadline_ns() == 1010 * ms
    collector.samples.clear()
    collector.sent_ns = 1010 * ms
    collector.add(b"\x02", 1020 * ms)
    assert collector.deadline_ns() == 1100 * ms
    collector.samples.clear()
    collector.sent_ns = 1100 * ms
    collector.add(b"\x03", 1181 * ms)
    assert collector.deadline_ns() == 1191 * ms
