"""Tables against a naive model, and the control plane's calls on them."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slow import examples
from tests.v1model.kept_programs import kept_program
from tests.v1model.switch.conftest import frame
from v1model.binding.events import Event
from v1model.dataplane import (
    CounterValue,
    DataPlaneError,
    Group,
    Member,
    MeterConfig,
    TableEntry,
)
from v1model.errors import CompileError
from v1model.ir import ActionCall, KeyMatch
from v1model.switch import Switch

Make = Callable[..., Switch]
SET = "MyIngress.set"
TABLE = "MyIngress.t"


def declarations(keys: str, extra: str = "", table: str = "") -> str:
    return f"""
    {extra}
    action set(bit<9> port, bit<32> x) {{ std.egress_spec = port; hdr.h.d = x; }}
    action other() {{ std.egress_spec = 400; }}
    table t {{ key = {{ {keys} }} actions = {{ set; other; NoAction; }} size = 64; {table} }}
    """


def entry(
    *matches: KeyMatch | None, port: int = 1, x: int = 0, priority: int = 0, idle_timeout_ns: int = 0
) -> TableEntry:
    return TableEntry(TABLE, matches, ActionCall(SET, (port, x)), priority, idle_timeout_ns=idle_timeout_ns)


def port_of(entry: TableEntry) -> int:
    assert entry.action is not None
    return entry.action.arguments[0]


def code(call: Callable[[], object]) -> str:
    with pytest.raises(DataPlaneError) as caught:
        call()
    return caught.value.code


def test_an_exact_table_hits_and_misses(make: Make) -> None:
    switch = make(ingress_declarations=declarations("hdr.h.a: exact; hdr.h.c: exact;"), ingress="t.apply();")
    switch.insert(entry(KeyMatch(1), KeyMatch(300), port=7, x=99))
    assert [(o.port, o.data) for o in switch.inject(1, frame(1, 0, 300))] == [(7, frame(1, 0, 300, 99))]
    assert [o.port for o in switch.inject(1, frame(1, 0, 301))] == [0]
    switch.set_default(TABLE, ActionCall("MyIngress.other"))
    assert [o.port for o in switch.inject(1, frame(1, 0, 301))] == [400]
    switch.set_default(TABLE, None)
    assert switch.default(TABLE) == ActionCall("NoAction")


def test_hit_and_action_run(make: Make) -> None:
    switch = make(
        ingress_declarations=declarations("hdr.h.a: exact;")
        + "action set2() {} table t2 { key = { hdr.h.a: exact; } actions = { set2; NoAction; } }",
        ingress="""
        if (t.apply().hit) { hdr.h.b = 1; }
        switch (t2.apply().action_run) { set2: { hdr.h.c = 1; } default: { hdr.h.c = 2; } }""",
    )
    switch.insert(entry(KeyMatch(1), port=3))
    switch.insert(TableEntry("MyIngress.t2", (KeyMatch(2),), ActionCall("MyIngress.set2")))
    assert switch.inject(1, frame(1))[0].data == frame(1, 1, 2)
    assert switch.inject(1, frame(2))[0].data == frame(2, 0, 1)


def test_keys_of_invalid_headers_are_zero(make: Make) -> None:
    switch = make(
        ingress_declarations=declarations("hdr.t.kind: exact;"), ingress="hdr.t.kind = 5; t.apply();"
    )
    switch.insert(entry(KeyMatch(0), port=3))
    switch.insert(entry(KeyMatch(5), port=4))
    assert switch.inject(1, frame())[0].port == 3


# --- against a model ---------------------------------------------------------------------------------

WIDTH = 6  # of the fields that the models match on: small, so that entries overlap
KEYS = {
    "exact": "hdr.h.a[5:0]: exact; hdr.h.b[5:0]: exact;",
    "lpm": "hdr.h.a[5:0]: exact; hdr.h.b[5:0]: lpm;",
    "ternary": "hdr.h.a[5:0]: ternary; hdr.h.b[5:0]: optional;",
    "range": "hdr.h.a[5:0]: range; hdr.h.b[5:0]: ternary;",
}
FULL = (1 << WIDTH) - 1
values = st.integers(0, 15)


def key_match(kind: str) -> st.SearchStrategy[KeyMatch | None]:
    if kind == "exact":
        return values.map(KeyMatch)
    if kind == "lpm":
        return st.builds(lambda v, n: KeyMatch(v, prefix_length=n), values, st.integers(0, WIDTH))
    if kind == "ternary":
        return st.none() | st.builds(lambda v, m: KeyMatch(v & m, mask=m), values, st.integers(0, FULL))
    if kind == "optional":
        return st.none() | values.map(KeyMatch)
    return st.none() | st.builds(lambda a, b: KeyMatch(min(a, b), high=max(a, b)), values, values)


def matches_of(kind: str) -> st.SearchStrategy[tuple[KeyMatch | None, ...]]:
    kinds = {
        "exact": ("exact", "exact"),
        "lpm": ("exact", "lpm"),
        "ternary": ("ternary", "optional"),
        "range": ("range", "ternary"),
    }[kind]
    return st.tuples(*(key_match(each) for each in kinds))


def is_match(match: KeyMatch | None, value: int) -> bool:
    if match is None:
        return True
    if match.high is not None:
        return match.value <= value <= match.high
    mask = FULL if match.mask is None else match.mask
    if match.prefix_length is not None:
        mask = FULL ^ FULL >> match.prefix_length
    return value & mask == match.value & mask


def rank(candidate: TableEntry) -> int:
    lengths = [m.prefix_length for m in candidate.matches if m and m.prefix_length is not None]
    return lengths[0] if lengths else candidate.priority


def canonical(kind: str, candidate: TableEntry) -> tuple[object, ...]:
    """Equal for entries that are the same to the table."""
    seen: list[object] = []
    for match in candidate.matches:
        if match is None:
            seen.append((0, 0) if kind != "range" or seen else (0, FULL))
        elif match.prefix_length is not None:
            mask = FULL ^ FULL >> match.prefix_length
            seen.append((match.value & mask, mask))
        elif match.high is not None:
            seen.append((match.value, match.high))
        else:
            seen.append((match.value, FULL if match.mask is None else match.mask))
    return (*seen, candidate.priority)


@pytest.fixture(scope="module")
def table_switches() -> dict[str, Switch]:
    from tests.v1model.switch.conftest import PARSER, PROGRAM
    from v1model.compile import compile_p4

    switches = {}
    for kind, keys in KEYS.items():
        parts = {"ingress_declarations": declarations(keys), "ingress": "t.apply();", "parser": PARSER}
        path = kept_program(PROGRAM.substitute({**dict.fromkeys(PROGRAM.get_identifiers(), ""), **parts}))
        switches[kind] = Switch(compile_p4(path, quick=True))
    return switches


@pytest.mark.parametrize("kind", KEYS)
@examples(8)
@given(data=st.data())
def test_tables_find_what_a_search_of_all_entries_finds(
    table_switches: dict[str, Switch], kind: str, data: st.DataObject
) -> None:
    switch = table_switches[kind]
    switch.reset()
    model: dict[tuple[object, ...], TableEntry] = {}
    for number in range(data.draw(st.integers(0, 40))):
        priority = data.draw(st.integers(1, 12)) if kind in ("ternary", "range") else 0
        new = entry(*data.draw(matches_of(kind)), port=number + 1, priority=priority)
        if canonical(kind, new) in model and data.draw(st.booleans()):
            switch.delete(new)
            del model[canonical(kind, new)]
        elif canonical(kind, new) in model:
            assert code(partial(switch.insert, new)) == "ALREADY_EXISTS"
        else:
            switch.insert(new)
            model[canonical(kind, new)] = new
    assert sorted(map(repr, switch.entries(TABLE))) == sorted(map(repr, model.values()))
    for _ in range(20):
        a, b = data.draw(values), data.draw(values)
        found = [e for e in model.values() if all(map(is_match, e.matches, (a, b)))]
        best = max(map(rank, found), default=None)
        allowed = {port_of(e) for e in found if rank(e) == best} or {0}
        (output,) = switch.inject(1, frame(a, b))
        assert output.port in allowed


def test_many_entries_come_and_go(make: Make) -> None:
    declared = declarations("hdr.h.d: exact;").replace("size = 64", "size = 20000")
    switch = make(ingress_declarations=declared, ingress="t.apply();")
    for i in range(20000):
        switch.insert(entry(KeyMatch(i * 7919), port=i % 500 + 1, x=i))
    full = lambda: switch.insert(entry(KeyMatch(5)))  # noqa: E731
    assert code(full) == "RESOURCE_EXHAUSTED"
    for i in range(0, 20000, 2):
        switch.delete(entry(KeyMatch(i * 7919)))
    for i in (1, 2, 777, 19998, 19999):
        (output,) = switch.inject(1, frame(d=i * 7919))
        assert output.port == (i % 500 + 1 if i % 2 else 0)


# --- errors and the rest of the control interface ---------------------------------------------------


def test_what_the_control_plane_gets_wrong(make: Make) -> None:
    switch = make(ingress_declarations=declarations("hdr.h.a: lpm; hdr.h.b: exact;"), ingress="t.apply();")
    good = entry(KeyMatch(1, prefix_length=8), KeyMatch(2))
    switch.insert(good)
    wrong: dict[str, list[Callable[[], object]]] = {
        "ALREADY_EXISTS": [lambda: switch.insert(good)],
        "NOT_FOUND": [
            lambda: switch.modify(entry(KeyMatch(1, prefix_length=7), KeyMatch(2))),
            lambda: switch.delete(entry(KeyMatch(1, prefix_length=8), KeyMatch(3))),
            lambda: switch.find(good._replace(table="nowhere")),
            lambda: switch.counter("nowhere", 0),
            lambda: switch.set_digest("nowhere", None),
            lambda: switch.insert_member("nowhere", Member(1, ActionCall(SET, (1, 2)))),
        ],
        "INVALID_ARGUMENT": [
            lambda: switch.insert(entry(KeyMatch(2))),
            lambda: switch.insert(entry(KeyMatch(300, prefix_length=8), KeyMatch(2))),
            lambda: switch.insert(entry(KeyMatch(2, prefix_length=9), KeyMatch(2))),
            lambda: switch.insert(entry(KeyMatch(2, prefix_length=8), None)),
            lambda: switch.insert(entry(KeyMatch(3, prefix_length=8), KeyMatch(3), port=512)),
            lambda: switch.modify(good._replace(action=ActionCall("nothing"))),
            lambda: switch.insert(TableEntry(TABLE, (None, KeyMatch(9)), ActionCall(SET, (1,)))),
            lambda: switch.insert(TableEntry(TABLE, (None, KeyMatch(9)), None)),
            lambda: switch.set_multicast_group(0, ()),
            lambda: switch.inject(600, b""),
        ],
    }
    for expected, calls in wrong.items():
        for call in calls:
            assert code(call) == expected
    assert list(switch.entries(TABLE)) == [good]


def test_modify_keeps_the_counter_and_find_gives_the_entry(make: Make) -> None:
    extra = "direct_counter(CounterType.packets_and_bytes) hits;"
    switch = make(
        ingress_declarations=declarations("hdr.h.a: exact;", extra, "counters = hits;"), ingress="t.apply();"
    )
    first, second = entry(KeyMatch(1), port=1), entry(KeyMatch(2), port=2)
    switch.insert(first)
    switch.insert(second)
    for a in (1, 1, 2, 3):
        switch.inject(1, frame(a))
    switch.modify(first._replace(action=ActionCall("MyIngress.other")))
    assert [o.port for o in switch.inject(1, frame(1))] == [400]
    assert switch.direct_counter(first) == CounterValue(3, 24)
    assert {e.matches: v.packets for e, v in switch.direct_counters(TABLE)} == {
        first.matches: 3,
        second.matches: 1,
    }
    switch.set_direct_counter(second, CounterValue(100, 5))
    switch.inject(1, frame(2))
    assert switch.direct_counter(second) == CounterValue(101, 13)
    assert switch.find(entry(KeyMatch(1))).action == ActionCall("MyIngress.other")
    switch.delete(first)
    switch.insert(first)
    assert switch.direct_counter(first) == CounterValue()


def test_direct_meters_colour_packets(make: Make) -> None:
    extra = "direct_meter<bit<8>>(MeterType.packets) m;"
    declared = f"""{extra}
    action mark() {{ m.read(hdr.h.b); }}
    table t {{ key = {{ hdr.h.a: exact; }} actions = {{ mark; NoAction; }} meters = m; }}"""
    switch = make(ingress_declarations=declared, ingress="t.apply();")
    metered = TableEntry(TABLE, (KeyMatch(1),), ActionCall("MyIngress.mark"))
    switch.insert(metered)

    def colour(at_us: int) -> int:
        return switch.inject(1, frame(1), timestamp_us=at_us)[0].data[1]

    assert colour(0) == 0
    switch.set_direct_meter(metered, MeterConfig(cir=0, cburst=1, pir=10, pburst=2))
    later = 10**9
    assert [colour(later) for _ in range(4)] == [0, 1, 2, 2]
    assert switch.direct_meter(metered) == MeterConfig(0, 1, 10, 2)
    assert colour(later + 200_000) == 1


def test_const_entries_and_defaults(make: Make) -> None:
    table = "const entries = { 1: set(5, 0); 2: other(); } const default_action = other();"
    switch = make(ingress_declarations=declarations("hdr.h.a: exact;", "", table), ingress="t.apply();")
    assert [switch.inject(1, frame(a))[0].port for a in (1, 2, 3)] == [5, 400, 400]
    assert code(lambda: switch.insert(entry(KeyMatch(9)))) == "PERMISSION_DENIED"
    assert code(lambda: switch.delete(entry(KeyMatch(1)))) == "PERMISSION_DENIED"
    assert code(lambda: switch.set_default(TABLE, ActionCall("NoAction"))) == "PERMISSION_DENIED"
    switch.reset()
    assert len(list(switch.entries(TABLE))) == 2


SELECTOR = """
    action_selector(HashAlgorithm.crc16, 16, 16) sel;
    action set(bit<9> port) { std.egress_spec = port; }
    table t {
        key = { hdr.h.a: exact; hdr.h.d: selector; hdr.h.c: selector; }
        actions = { set; NoAction; }
        implementation = sel;
    }"""


def test_action_selectors_spread_by_hash(make: Make) -> None:
    switch = make(ingress_declarations=SELECTOR, ingress="t.apply();")
    sel = "MyIngress.sel"
    for number in range(4):
        switch.insert_member(sel, Member(number, ActionCall(SET, (number + 10,))))
    switch.insert_group(sel, Group(1, ((0, 1), (1, 1), (2, 1))))
    switch.insert(TableEntry(TABLE, (KeyMatch(1),), None, group=1))
    switch.insert(TableEntry(TABLE, (KeyMatch(2),), None, member=3))
    ports = [switch.inject(1, frame(1, d=d))[0].port for d in range(64)]
    assert set(ports) == {10, 11, 12}
    assert ports == [switch.inject(1, frame(1, d=d))[0].port for d in range(64)]
    assert switch.inject(1, frame(2))[0].port == 13
    switch.modify_member(sel, Member(3, ActionCall(SET, (20,))))
    assert switch.inject(1, frame(2))[0].port == 20
    assert code(lambda: switch.delete_member(sel, 3)) == "FAILED_PRECONDITION"
    assert code(lambda: switch.delete_member(sel, 0)) == "FAILED_PRECONDITION"
    assert code(lambda: switch.delete_group(sel, 1)) == "FAILED_PRECONDITION"
    switch.modify_group(sel, Group(1, ()))
    assert switch.inject(1, frame(1))[0].port == 0
    switch.delete(TableEntry(TABLE, (KeyMatch(1),), None))
    switch.delete_group(sel, 1)
    switch.delete_member(sel, 0)
    assert [m.member_id for m in switch.members(sel)] == [1, 2, 3]


def test_weights_are_shares_and_cost_no_memory(make: Make) -> None:
    """A weight of 2147483647 took a list element for each unit of it: 20 GB."""
    switch = make(ingress_declarations=SELECTOR, ingress="t.apply();")
    sel = "MyIngress.sel"
    for number in range(3):
        switch.insert_member(sel, Member(number, ActionCall(SET, (number + 10,))))
    switch.insert(TableEntry(TABLE, (KeyMatch(1),), None, member=0))
    switch.insert_group(sel, Group(1, ((2, 3), (0, 1))))
    switch.insert(TableEntry(TABLE, (KeyMatch(2),), None, group=1))
    light = [switch.inject(1, frame(2, c=i, d=i * 0x9E3779B1 % 2**32))[0].port for i in range(400)]
    assert 60 < light.count(10) < 140
    assert light.count(10) + light.count(12) == 400
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    switch.modify_group(sel, Group(1, ((0, 2**31 - 1), (1, 2**31 - 1), (2, 1))))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000
    # crc16's values are all below the first weight.
    assert {switch.inject(1, frame(2, d=d))[0].port for d in range(50)} == {10}
    for weight in (0, -1, 2**31):
        assert code(partial(switch.modify_group, sel, Group(1, ((0, weight),)))) == "INVALID_ARGUMENT"


def test_idle_entries_are_reported_again_and_again_until_they_are_hit(make: Make) -> None:
    declared = declarations("hdr.h.a: exact;", "", "support_timeout = true;")
    switch = make(ingress_declarations=declared, ingress="t.apply();")
    short = entry(KeyMatch(1), idle_timeout_ns=1_000_000)
    switch.insert(short)
    switch.insert(entry(KeyMatch(2), idle_timeout_ns=3600 * 10**9))
    for _ in range(2):
        events: list[Event] = []
        while not events:
            events = switch.wait_events(1)
        assert set(events) == {short}
    assert switch.idle_time_ns(short) >= 1_000_000
    switch.modify(entry(KeyMatch(1), idle_timeout_ns=3600 * 10**9))
    switch.wait_events(0)
    assert switch.wait_events(0.15) == []


def test_an_entry_that_comes_during_a_long_wait_is_reported_when_it_is_idle(make: Make) -> None:
    declared = declarations("hdr.h.a: exact;", "", "support_timeout = true;")
    switch = make(ingress_declarations=declared, ingress="t.apply();")
    seen: list[object] = []
    waiter = threading.Thread(target=lambda: seen.extend(switch.wait_events(60)))
    waiter.start()
    short = entry(KeyMatch(1), idle_timeout_ns=1_000_000)
    switch.insert(short)
    waiter.join(10)
    assert not waiter.is_alive()
    assert seen == [short]


SAME_NAME = """
    @name(".set") action set_one(bit<8> value) { hdr.h.a = value; }
    @name(".set") action set_two(bit<8> value) { hdr.h.b = value; }
    @name(".one") table one { key = { hdr.h.a: exact; } actions = { set_one; } }
    @name(".two") table two { key = { hdr.h.a: exact; } actions = { set_two; } }
"""


def test_actions_that_share_a_name(make: Make) -> None:
    """p4c makes such actions of one P4_14 action: the control plane sees one, each table runs its own."""
    switch = make(ingress_declarations=SAME_NAME, ingress="two.apply(); one.apply();")
    assert [action.name for action in switch.program.actions].count("set") == 1
    switch.insert(TableEntry("one", (KeyMatch(1),), ActionCall("set", (7,))))
    switch.insert(TableEntry("two", (KeyMatch(1),), ActionCall("set", (8,))))
    (output,) = switch.inject(1, frame(a=1))
    assert output.data[:2] == b"\7\10"


def test_actions_that_share_a_name_need_the_same_parameters(make: Make) -> None:
    other = SAME_NAME.replace("set_two(bit<8> value) { hdr.h.b = value; }", "set_two(bit<16> value) { }")
    with pytest.raises(CompileError, match="two actions are called set"):
        make(ingress_declarations=other, ingress="two.apply(); one.apply();")


@pytest.mark.parametrize(("semantics", "fits"), [("sum_of_weights", False), ("sum_of_members", True)])
def test_the_size_of_a_group_is_what_its_selector_counts(make: Make, semantics: str, fits: bool) -> None:
    switch = make(
        ingress_declarations=f"""
            action set(bit<8> value) {{ hdr.h.a = value; }}
            @selector_size_semantics("{semantics}") @max_member_weight(9)
            action_selector(HashAlgorithm.crc16, 8, 16) selector;
            table t {{
                key = {{ hdr.h.a: exact; hdr.h.b: selector; }}
                actions = {{ set; NoAction; }} implementation = selector;
            }}""",
        ingress="t.apply();",
    )
    for member in (1, 2):
        switch.insert_member("MyIngress.selector", Member(member, ActionCall("MyIngress.set", (member,))))
    group = Group(1, ((1, 4), (2, 4)), max_size=2)
    if fits:
        switch.insert_group("MyIngress.selector", group)
    else:
        with pytest.raises(DataPlaneError, match="weights add up to 8, max_size is 2") as caught:
            switch.insert_group("MyIngress.selector", group)
        assert caught.value.code == "RESOURCE_EXHAUSTED"
    with pytest.raises(DataPlaneError, match=r"weight 10 is not within 1\.\.9"):
        switch.insert_group("MyIngress.selector", Group(2, ((1, 10),)))
