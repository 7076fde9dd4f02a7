"""Ids and aliases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from v1model.errors import CompileError
from v1model.p4info.kinds import ACTION, TABLE
from v1model.p4info.symbols import SymbolTable, jenkins_one_at_a_time

NAMES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map(".".join)


def test_well_known_id_of_no_action() -> None:
    symbols = SymbolTable()
    symbols.add(ACTION, "NoAction")
    symbols.assign()
    assert symbols.id(ACTION, "NoAction") == 21257015  # in every P4Info of p4c


def test_hash_of_nothing_and_of_a_letter() -> None:
    """Known values of Bob Jenkins' function."""
    assert jenkins_one_at_a_time(b"") == 0
    assert jenkins_one_at_a_time(b"a") == 0xCA2E9442
    assert jenkins_one_at_a_time(b"The quick brown fox jumps over the lazy dog") == 0x519E91F5


def colliding() -> tuple[str, str]:
    """Two names whose hashes agree in the 24 bits that ids have."""
    seen: dict[int, str] = {}
    for number in range(1 << 20):
        name = f"t{number}"
        other = seen.setdefault(jenkins_one_at_a_time(name.encode()) & 0xFFFFFF, name)
        if other != name:
            return other, name
    raise AssertionError("no collision")


def test_collisions_take_the_next_id_in_the_order_of_names() -> None:
    names = colliding()
    symbols = SymbolTable()
    for name in reversed(names):
        symbols.add(TABLE, name)
    symbols.assign()
    first, second = sorted(names)
    assert symbols.id(TABLE, second) == symbols.id(TABLE, first) + 1


def test_a_given_id_is_not_taken_by_a_hash() -> None:
    symbols = SymbolTable()
    symbols.add(TABLE, "a", jenkins_one_at_a_time(b"b") & 0xFFFFFF)
    symbols.add(TABLE, "b")
    symbols.assign()
    assert symbols.id(TABLE, "b") == symbols.id(TABLE, "a") + 1


def test_one_id_for_two_objects_is_refused() -> None:
    symbols = SymbolTable()
    symbols.add(TABLE, "a", 4)
    with pytest.raises(CompileError, match="another object"):
        symbols.add(TABLE, "b", 4)


@given(st.sets(NAMES, min_size=1, max_size=12))
def test_aliases_are_suffixes_that_name_one_object(names: set[str]) -> None:
    symbols = SymbolTable()
    for name in names:
        symbols.add(TABLE, name)
    for name in names:
        alias = symbols.alias(name)
        assert name == alias or name.endswith(f".{alias}")
        others = [n for n in names if n != name and (n == alias or n.endswith(f".{alias}"))]
        assert alias == name or not others


@given(st.sets(NAMES, min_size=1, max_size=12))
def test_ids_do_not_depend_on_the_order_of_declaration(names: set[str]) -> None:
    tables = []
    for order in (sorted(names), sorted(names, reverse=True)):
        symbols = SymbolTable()
        for name in order:
            symbols.add(TABLE, name)
        symbols.assign()
        tables.append({name: symbols.id(TABLE, name) for name in names})
    assert tables[0] == tables[1]
    assert len(set(tables[0].values())) == len(names)
