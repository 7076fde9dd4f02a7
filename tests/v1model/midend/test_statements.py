"""Statements: control flow, variables, assignments of composite values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.v1model.midend.interpreter import VALID, Machine
from tests.v1model.midend.programs import program
from v1model import ir
from v1model.errors import CompileError

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, body: str, **parts: str) -> Machine:
    return Machine(program(folder, body, **parts)).control()


@pytest.mark.parametrize(("value", "expected"), [(1, 10), (2, 10), (3, 30), (9, 99)])
def test_switch_on_a_value_falls_through_labels_without_body(
    tmp_path: Path, value: int, expected: int
) -> None:
    found = run(
        tmp_path,
        f"""
        meta.x = {value};
        switch (meta.x) {{ 1: 2: {{ meta.y = 10; }} 3: {{ meta.y = 30; }} default: {{ meta.y = 99; }} }}
        """,
    )
    assert found.metadata["y"] == expected


@pytest.mark.parametrize(("key", "expected"), [(1, 10), (2, 20), (3, 20), (4, 30)])
def test_switch_on_the_action_that_ran(tmp_path: Path, key: int, expected: int) -> None:
    found = run(
        tmp_path,
        f"""
        meta.x = {key};
        switch (t.apply().action_run) {{
            one: {{ meta.y = 10; }}
            two: three: {{ meta.y = 20; }}
            default: {{ meta.y = 30; }}
        }}
        """,
        locals_="""
            action one() {} action two() {} action three() {}
            table t {
                key = { meta.x : exact; }
                actions = { one; two; three; NoAction; }
                const entries = { 1 : one; 2 : two; 3 : three; }
            }
        """,
    )
    assert found.metadata["y"] == expected


def test_for_with_break_and_continue(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        for (bit<8> i = 0; i < 100; i = i + 1) {
            if (i == 2) { continue; }
            if (i == 5) { break; }
            meta.x = meta.x + i;
        }
        """,
    )
    assert found.metadata["x"] == 0 + 1 + 3 + 4


def test_for_in_range_reaches_the_last_value_of_its_type(tmp_path: Path) -> None:
    found = run(tmp_path, "for (bit<8> i in 250 .. 255) { meta.x = meta.x + 1; meta.y = i; }")
    assert (found.metadata["x"], found.metadata["y"]) == (6, 255)


def test_for_in_range_evaluates_its_bounds_once(tmp_path: Path) -> None:
    found = run(tmp_path, "meta.x = 3; for (bit<8> i in 1 .. meta.x) { meta.x = 200; meta.y = meta.y + 1; }")
    assert found.metadata["y"] == 3


def test_for_in_empty_range_does_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "for (bit<8> i in 3 .. 2) { meta.y = 1; }").metadata["y"] == 0


def test_for_in_stack_visits_every_element(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "hdr.s[0].a = 1; hdr.s[1].a = 2; hdr.s[2].a = 4; for (h_t e in hdr.s) { meta.x = meta.x + e.a; }",
    )
    assert found.metadata["x"] == 7


def test_for_in_list_of_integers_gives_them_the_width_of_the_variable(tmp_path: Path) -> None:
    found = run(tmp_path, "for (bit<8> i in (list<int>) { 3, 4 }) { meta.x = meta.x + i; }")
    assert found.metadata["x"] == 7


def test_headers_declared_in_a_loop_start_invalid_each_time(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        for (bit<8> i in 1 .. 3) {
            h_t fresh;
            if (fresh.isValid()) { meta.x = meta.x + 1; }
            fresh.setValid();
        }
        """,
    )
    assert found.metadata["x"] == 0


def test_shadowing_variables_are_different_ones(tmp_path: Path) -> None:
    found = run(tmp_path, "bit<8> v = 1; { bit<8> v = 2; meta.x = v; } meta.y = v;")
    assert (found.metadata["x"], found.metadata["y"]) == (2, 1)


def test_swap_through_a_list_reads_before_it_writes(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "meta.pair = {1, 2}; meta.pair = {meta.pair.second, meta.pair.first};",
    )
    assert found.metadata["pair"] == {"first": 2, "second": 1}


def test_struct_expression_and_defaults(tmp_path: Path) -> None:
    found = run(tmp_path, "meta.pair = {second = 9, ...}; hdr.h = {a = 1, b = 2}; hdr.g = {#};")
    assert found.metadata["pair"] == {"first": 0, "second": 9}
    assert found.headers["h"] == {VALID: True, "a": 1, "b": 2}
    assert found.headers["g"][VALID] is False


def test_slices_are_places_and_values(tmp_path: Path) -> None:
    found = run(tmp_path, "meta.w = 0xffffffff; meta.w[15:8] = 0x12; meta.x = meta.w[11:4];")
    assert (found.metadata["w"], found.metadata["x"]) == (0xFFFF12FF, 0x2F)


def test_valid_member_of_a_union_invalidates_the_others(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "hdr.h.setValid(); hdr.h.a = 5; hdr.u.one.setValid(); hdr.u.two = hdr.h;",
    )
    assert found.headers["u"]["one"][VALID] is False
    assert found.headers["u"]["two"] == {VALID: True, "a": 5, "b": 0}


def test_index_is_taken_before_the_right_side_changes_it(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "meta.x = 1; hdr.s[meta.x].a = bump(meta.x);",
        declarations="bit<8> bump(inout bit<8> p) { p = p + 1; return 77; }",
    )
    assert [element["a"] for element in found.headers["s"]] == [0, 77, 0]


def test_index_with_a_side_effect_writes_into_the_stack_itself(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "hdr.s[bump(meta.x)].a |= 3;",
        declarations="bit<8> bump(inout bit<8> p) { p = p + 1; return p; }",
    )
    assert [element["a"] for element in found.headers["s"]] == [0, 3, 0]
    assert found.metadata["x"] == 1


def test_equality_of_headers_and_lists(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        hdr.h.a = 1;
        if (hdr.h == hdr.g) { meta.x = 1; }
        hdr.h.setValid();
        if (hdr.h != hdr.g) { meta.y = 1; }
        if (meta.pair == {0, 0}) { meta.w = 1; }
        """,
    )
    assert (found.metadata["x"], found.metadata["y"], found.metadata["w"]) == (1, 1, 1)


def test_statements_after_exit_are_not_compiled(tmp_path: Path) -> None:
    ir_program = program(tmp_path, "meta.x = 1; exit; meta.x = 2;")
    assert Machine(ir_program).control().metadata["x"] == 1
    assert len(ir_program.ingress.body) == 1


def test_constant_conditions_keep_one_branch(tmp_path: Path) -> None:
    ir_program = program(
        tmp_path, "if (N > 3) { meta.x = 1; } else { meta.x = 2; }", declarations="const bit<8> N = 4;"
    )
    assert len(ir_program.ingress.body) == 1


def test_out_of_range_constant_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError):
        program(tmp_path, "hdr.s[3].a = 1;")


def test_tuples_and_nested_structs(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        tuple<bit<8>, pair_t> t = {3, {4, 5}};
        meta.x = t[0];
        meta.pair = t[1];
        nest n = {{1, 2}, meta.pair};
        meta.y = n.q.second;
        """,
        declarations="struct nest { pair_t p; pair_t q; }",
    )
    assert (found.metadata["x"], found.metadata["y"]) == (3, 5)
    assert found.metadata["pair"] == {"first": 4, "second": 5}


def test_generic_struct_shapes_are_distinct(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "box<bit<8>> p = {1}; box<bit<32>> q = {0x10000}; meta.x = p.v; meta.w = q.v;",
        declarations="struct box<T> { T v; }",
    )
    assert (found.metadata["x"], found.metadata["w"]) == (1, 0x10000)


def test_enums_errors_and_serializable_enums(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "E e = E.second; S s = S.big; if (e == E.second) { meta.x = (bit<8>)s; } "
        "if (std.parser_error == error.NoError) { meta.y = 1; }",
        declarations="enum E { first, second } enum bit<8> S { small = 1, big = 200 }",
    )
    assert (found.metadata["x"], found.metadata["y"]) == (200, 1)


def test_push_and_pop(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "hdr.s[0].setValid(); hdr.s[0].a = 1; hdr.s.push_front(2); hdr.s[0].setValid(); hdr.s.pop_front(1);",
    )
    assert [element[VALID] for element in found.headers["s"]] == [False, True, False]
    assert found.headers["s"][1]["a"] == 1


def test_an_int_of_run_time_values_that_is_cut_again(tmp_path: Path) -> None:
    """(bit<8>)((int) x + 1): sums, differences and products are the same in 8 bits."""
    ir_program = program(tmp_path, "meta.x = (bit<8>)((int) meta.y * 3 - 1 + (int) meta.x);")
    (assign,) = ir_program.ingress.body
    assert isinstance(assign, ir.Assign)
    assert assign.value.type == ir.Bits(8)
