"""Parser value sets: what the control plane puts into one is what select finds in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.v1model.switch.conftest import frame
from v1model.dataplane import DataPlaneError
from v1model.ir import KeyMatch
from v1model.switch import Switch

Make = Callable[..., Switch]

PARSER = """
    value_set<bit<8>>(2) known;
    value_set<range_t>(4) ranges;
    value_set<tuple<bit<8>, bit<32>>>(4) pairs;
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a, hdr.h.c, hdr.h.d) {
            (7, _, _): plain;
            default: sets;
        }
    }
    state sets {
        transition select(hdr.h.a) { known: found_known; default: two; }
    }
    state two {
        transition select(hdr.h.b, hdr.h.c) { ranges: found_range; default: three; }
    }
    state three {
        transition select(hdr.h.b, hdr.h.d) { pairs: found_pair; default: accept; }
    }
    state plain { meta.twice = 9; transition accept; }
    state found_known { meta.twice = 1; transition accept; }
    state found_range { meta.twice = 2; transition accept; }
    state found_pair { meta.twice = 3; transition accept; }
"""
TYPES = "struct range_t { @match(ternary) bit<8> b; @match(range) bit<16> c; }"


@pytest.fixture
def switch(make: Make) -> Switch:
    return make(types=TYPES, parser=PARSER, ingress="hdr.h.a = meta.twice;")


def kind(switch: Switch, a: int, b: int = 0, c: int = 0, d: int = 0) -> int:
    """Which set the parser found a packet in; 0: none."""
    (output,) = switch.inject(1, frame(a, b, c, d))
    return output.data[0]


def test_an_empty_set_has_no_members(switch: Switch) -> None:
    assert switch.value_set("MyParser.known") == ()
    assert kind(switch, a=5) == 0
    assert kind(switch, a=7) == 9


def test_exact_members(switch: Switch) -> None:
    switch.set_value_set("MyParser.known", [(KeyMatch(5),), (KeyMatch(6),)])
    assert [kind(switch, a=a) for a in (4, 5, 6)] == [0, 1, 1]
    switch.set_value_set("MyParser.known", [(KeyMatch(4),)])
    assert [kind(switch, a=a) for a in (4, 5, 6)] == [1, 0, 0]
    assert switch.value_set("MyParser.known") == ((KeyMatch(4),),)


def test_match_annotations_of_a_struct(switch: Switch) -> None:
    switch.set_value_set("MyParser.ranges", [(KeyMatch(0x10, mask=0xF0), KeyMatch(100, high=200))])
    assert kind(switch, a=1, b=0x1F, c=150) == 2
    assert kind(switch, a=1, b=0x2F, c=150) == 0
    assert kind(switch, a=1, b=0x1F, c=201) == 0


def test_tuples(switch: Switch) -> None:
    switch.set_value_set("MyParser.pairs", [(KeyMatch(3), KeyMatch(0xDEADBEEF))])
    assert kind(switch, a=1, b=3, d=0xDEADBEEF) == 3
    assert kind(switch, a=1, b=3, d=0xDEADBEEE) == 0


def test_a_member_given_twice_counts_once(switch: Switch) -> None:
    switch.set_value_set("MyParser.known", [(KeyMatch(5),)] * 3)
    assert switch.value_set("MyParser.known") == ((KeyMatch(5),),)


def test_what_cannot_be_a_member(switch: Switch) -> None:
    switch.set_value_set("MyParser.known", [(KeyMatch(5),)])
    for members, code in (
        ([(KeyMatch(256),)], "INVALID_ARGUMENT"),
        ([(KeyMatch(1), KeyMatch(2))], "INVALID_ARGUMENT"),
        ([(None,)], "INVALID_ARGUMENT"),
        ([(KeyMatch(value),) for value in range(3)], "RESOURCE_EXHAUSTED"),
    ):
        with pytest.raises(DataPlaneError) as caught:
            switch.set_value_set("MyParser.known", members)
        assert caught.value.code == code
    with pytest.raises(DataPlaneError, match=r"no value set MyParser\.other; there are: MyParser\.known"):
        switch.set_value_set("MyParser.other", [])
    assert kind(switch, a=5) == 1  # what was there before still is


def test_reset_empties_sets(switch: Switch) -> None:
    switch.set_value_set("MyParser.known", [(KeyMatch(5),)])
    switch.reset()
    assert switch.value_set("MyParser.known") == ()
    assert kind(switch, a=5) == 0
