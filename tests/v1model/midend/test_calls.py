"""Calls: copy-in/copy-out, order of evaluation, exit and return."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.v1model.midend.interpreter import VALID, Machine
from tests.v1model.midend.programs import program

if TYPE_CHECKING:
    from pathlib import Path


def metadata(folder: Path, body: str, **parts: str) -> dict[str, int]:
    """The metadata after ingress has run `body`."""
    result: dict[str, int] = Machine(program(folder, body, **parts)).control().metadata
    return result


def test_inout_is_copied_in_and_out_once(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "meta.x = 1; twice(meta.x, meta.x);",
        declarations="void twice(inout bit<8> p, inout bit<8> q) { p = p + 10; q = q + 100; }",
    )
    assert found["x"] == 101  # both began with 1; q is copied out last


def test_in_argument_keeps_its_value_while_another_is_written(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "meta.x = 5; copy(meta.x, meta.x);",
        declarations="void copy(in bit<8> p, out bit<8> q) { q = 1; q = q + p; }",
    )
    assert found["x"] == 6


def test_out_parameter_starts_invalid(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "hdr.h.setValid(); hdr.h.a = 3; clear(hdr.h);",
        declarations="void clear(out h_t p) { }",
    )
    assert Machine(ir_program).control().headers["h"][VALID] is False


def test_arguments_are_evaluated_left_to_right(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "meta.x = 1; meta.y = add(meta.x, add(bump(meta.x), meta.x));",
        declarations="""
            bit<8> bump(inout bit<8> p) { p = p + 1; return p; }
            bit<8> add(in bit<8> p, in bit<8> q) { return (p << 4) + q; }
        """,
    )
    assert found["y"] == (1 << 4) + ((2 << 4) + 2)


@pytest.mark.parametrize(("first", "calls"), [("true", 1), ("false", 0)])
def test_and_evaluates_its_right_side_only_when_needed(tmp_path: Path, first: str, calls: int) -> None:
    found = metadata(
        tmp_path,
        f"meta.flag = {first}; if (meta.flag && touch(meta.x)) {{ meta.y = 1; }}",
        declarations="bool touch(inout bit<8> p) { p = p + 1; return true; }",
    )
    assert (found["x"], found["y"]) == (calls, calls)


def test_ternary_evaluates_one_side(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "meta.w = meta.flag ? (bit<32>)touch(meta.x) : (bit<32>)touch(meta.y);",
        declarations="bit<8> touch(inout bit<8> p) { p = p + 7; return p; }",
    )
    assert (found["x"], found["y"], found["w"]) == (0, 7, 7)


def test_return_leaves_a_function_in_the_middle(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "meta.x = first(3); meta.y = first(9);",
        declarations="bit<8> first(in bit<8> p) { if (p > 5) { return 1; } return 2; }",
    )
    assert (found["x"], found["y"]) == (2, 1)


def test_generic_function_is_instantiated_by_its_arguments(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "meta.x = pick(true, meta.x, 8w9); meta.w = pick(false, meta.w, 32w77);",
        declarations="T pick<T>(in bool c, in T p, in T q) { T r = p; if (!c) { r = q; } return r; }",
    )
    assert (found["x"], found["w"]) == (0, 77)


SUB = """
control sub(inout bit<8> p, in bit<8> step)(bit<8> factor) {
    action grow(bit<8> more) { p = p + more * factor; }
    table t {
        key = { p : exact; }
        actions = { grow; }
        const entries = { 1 : grow(10); 50 : grow(20); }
        const default_action = grow(1);
    }
    apply { p = p + step; t.apply(); }
}
"""


def test_control_applied_in_two_places_shares_its_table(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "meta.x = 0; meta.y = 49; one.apply(meta.x, 1); one.apply(meta.y, 1);",
        declarations=SUB,
        locals_="sub(2) one;",
    )
    assert [table.name for table in ir_program.tables] == ["ing.one.t"]
    found = Machine(ir_program).control().metadata
    assert (found["x"], found["y"]) == (21, 90)


def test_two_instances_have_tables_of_their_own(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "one.apply(meta.x, 1); two.apply(meta.x, 0); sub.apply(meta.x, 0);",
        declarations=SUB.replace("(bit<8> factor)", "").replace("* factor", ""),
        locals_='sub() one; @name(".other") sub() two;',
    )
    assert [table.name for table in ir_program.tables] == ["ing.one.t", "other.t", "ing.sub.t"]
    assert Machine(ir_program).control().metadata["x"] == 13


def test_sub_control_applied_once_works_on_the_caller_s_headers(tmp_path: Path) -> None:
    """No copies of header structs on the way into sub-controls."""
    ir_program = program(
        tmp_path,
        "s.apply(hdr, meta);",
        declarations="control deep(inout headers_t q, inout meta_t m) { apply { q.h.setValid(); m.x = 3; } }",
        locals_="deep() s;",
    )
    assert ir_program.ingress.locals == ()


def test_instance_given_to_constructors_is_one_instance(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "o1.apply(meta.x); o2.apply(meta.y);",
        declarations="""
            control inner_t(inout bit<8> v);
            control counted(inout bit<8> v) {
                counter(16, CounterType.packets) c;
                apply { v = v + 1; c.count(0); }
            }
            control outer(inout bit<8> v)(inner_t i) { apply { i.apply(v); v = v * 2; } }
        """,
        locals_="counted() only; outer(only) o1; outer(only) o2;",
    )
    assert [extern.name for extern in ir_program.externs] == ["ing.only.c"]
    found = Machine(ir_program).control()
    assert (found.metadata["x"], found.metadata["y"], len(found.calls)) == (2, 2, 2)


def test_exit_copies_out_through_every_call(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "meta.x = 1; s.apply(meta.x, meta.x); meta.y = 9;",
        declarations="""
            control stop(inout bit<8> p, inout bit<8> q) {
                action leave(inout bit<8> v) { v = 40; exit; }
                apply { p = 3; leave(q); q = 5; }
            }
        """,
        locals_="stop() s;",
    )
    assert (found["x"], found["y"]) == (40, 0)


def test_exit_in_a_table_s_action_ends_ingress(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "meta.x = 1; s.apply(meta.x); meta.y = 9;",
        declarations="""
            control stop(inout bit<8> p) {
                action leave() { p = p + 1; exit; }
                table t { actions = { leave; } const default_action = leave; }
                apply { t.apply(); p = 50; }
            }
        """,
        locals_="stop() s;",
    )
    assert (found["x"], found["y"]) == (2, 0)


def test_return_in_an_action_ends_the_action_only(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "t.apply(); meta.y = 4;",
        locals_="""
            action early() { meta.x = 1; if (meta.x == 1) { return; } meta.x = 2; }
            table t { actions = { early; } const default_action = early; }
        """,
    )
    assert (found["x"], found["y"]) == (1, 4)


def test_a_table_action_s_bound_arguments_are_copied(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "meta.x = 6; t.apply();",
        locals_="""
            action into(inout bit<8> target, in bit<8> plus, bit<8> data) {
                target = target + plus;
                target = target + data;
            }
            table t { actions = { into(meta.x, meta.x); } const default_action = into(meta.x, meta.x, 100); }
        """,
    )
    assert found["x"] == 112


def test_hit_inside_a_condition(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "meta.x = 7; if (t.apply().hit && !t.apply().miss) { meta.y = 1; } else { meta.y = 2; }",
        locals_="""
            action set(bit<8> v) { meta.x = v; }
            table t { key = { meta.x : exact; } actions = { set; NoAction; } const entries = { 7 : set(8); } }
        """,
    )
    assert (found["x"], found["y"]) == (8, 2)


def test_key_with_side_effects_is_computed_at_each_apply(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        "t.apply(); t.apply();",
        declarations="bit<8> next(inout bit<8> p) { p = p + 1; return p; }",
        locals_="""
            action hit(bit<8> v) { meta.y = meta.y + v; }
            table t {
                key = { next(meta.x) : exact @name("n"); }
                actions = { hit; NoAction; }
                const entries = { 1 : hit(1); 2 : hit(20); }
            }
        """,
    )
    assert (found["x"], found["y"]) == (2, 21)


def test_a_place_is_decided_before_the_callee_changes_its_index(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path,
        "meta.x = 1; move(hdr.s[meta.x].a, meta.x);",
        declarations="void move(inout bit<8> element, inout bit<8> index) { index = 2; element = 9; }",
    )
    found = Machine(ir_program).control()
    assert [element["a"] for element in found.headers["s"]] == [0, 9, 0]


def test_an_action_that_is_called_where_nothing_gets_is_listed_as_p4c_does(tmp_path: Path) -> None:
    ir_program = program(tmp_path, "exit; never();", locals_="action never() { meta.x = 1; }")
    assert [action.name for action in ir_program.actions] == ["ing.never"]


def test_a_table_behind_an_exit_is_there_for_the_control_plane(tmp_path: Path) -> None:
    locals_ = "action a() {} table t { key = { meta.x: exact; } actions = { a; } }"
    ir_program = program(tmp_path, "exit; if (meta.x == 1) { t.apply(); }", locals_=locals_)
    assert [table.name for table in ir_program.tables] == ["ing.t"]
    assert ir_program.ingress.body == ()
