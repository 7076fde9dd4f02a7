"""Externs that are not v1model's, implemented by a C file of the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.v1model.refused_program import program
from v1model.compile import compile_p4
from v1model.errors import CompileError, UnsupportedError
from v1model.switch import Switch

Build = Callable[[str, str], Switch]

DECLARATIONS = """
extern bit<8> twice(in bit<8> x);
extern void swap(inout bit<8> a, inout bit<8> b);
extern void widest(in bit<128> a, in bit<200> b, out bit<200> c);
extern Tally { Tally(bit<32> start, bit<32> step); void add(in bit<8> x); bit<8> total(); }
"""
C = r"""
#include <stdlib.h>
static uint64_t p4_twice(uint64_t x) { return 2 * x; }
static void p4_swap(uint64_t *a, uint64_t *b) { uint64_t kept = *a; *a = *b; *b = kept; }
static void p4_widest(u128 a, const uint8_t *b, uint8_t *c) {
    memcpy(c, b, 25);
    c[24] = (uint8_t)(a >> 120);
}
struct tally { uint64_t total, step; };
static void *p4_Tally_new(uint64_t start, uint64_t step) {
    struct tally *tally = malloc(sizeof *tally);
    if (tally) *tally = (struct tally){start, step};
    return tally;
}
static void p4_Tally_free(void *object) { free(object); }
static void p4_Tally_add(void *object, uint64_t x) {
    struct tally *tally = object;
    tally->total += x * tally->step;
}
static uint64_t p4_Tally_total(void *object) { return ((struct tally *)object)->total; }
"""


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    """build(locals, apply): a switch with DECLARATIONS and C."""
    switches: list[Switch] = []
    (tmp_path / "externs.c").write_text(C)

    def make(local: str, apply: str) -> Switch:
        path = tmp_path / f"program{len(switches)}.p4"
        text = program(types=DECLARATIONS, metadata="bit<200> wide;", locals=local, apply=apply)
        path.write_text(text)
        switches.append(Switch(compile_p4(path, externs=tmp_path / "externs.c")))
        return switches[-1]

    yield make
    for switch in switches:
        switch.close()


def sent(switch: Switch, data: bytes) -> bytes:
    (output,) = switch.inject(1, data)
    return output.data


def test_a_result_is_cut_to_its_width(build: Build) -> None:
    switch = build("", "hdr.byte.value = twice(hdr.byte.value) + 1;")
    assert sent(switch, b"\x05") == b"\x0b"
    assert sent(switch, b"\x85") == b"\x0b"


def test_inout_arguments_are_written_back(build: Build) -> None:
    switch = build(
        "", "meta.low = 7; swap(hdr.byte.value, meta.low); hdr.byte.value = hdr.byte.value + meta.low;"
    )
    assert sent(switch, b"\x05") == b"\x0c"


def test_slices_can_be_written(build: Build) -> None:
    switch = build("", "bit<16> word = 0x0102; swap(word[15:8], word[7:0]); hdr.byte.value = word[15:8];")
    assert sent(switch, b"\x05") == b"\x02"


def test_wide_values_are_bytes(build: Build) -> None:
    apply = "widest(0xAB << 120, 5, meta.wide); hdr.byte.value = meta.wide[7:0];"
    assert sent(build("", apply), b"\x05") == b"\xab"


def test_each_switch_has_objects_of_its_own(build: Build, tmp_path: Path) -> None:
    local, apply = "Tally(3, 2) tally;", "tally.add(hdr.byte.value); hdr.byte.value = tally.total();"
    switch = build(local, apply)
    assert [sent(switch, b"\x01") for _ in range(3)] == [b"\x05", b"\x07", b"\x09"]
    with Switch(switch.compiled) as other:
        assert sent(other, b"\x01") == b"\x05"


def test_without_the_c_file_they_are_refused_with_what_to_do(tmp_path: Path) -> None:
    for text in (
        program(types=DECLARATIONS, apply="hdr.byte.value = twice(1);"),
        program(types=DECLARATIONS, locals="Tally(1, 2) tally;", apply="tally.add(1);"),
    ):
        (tmp_path / "program.p4").write_text(text)
        with pytest.raises(UnsupportedError) as caught:
            compile_p4(tmp_path / "program.p4")
        assert "--externs FILE.c" in caught.value.hint


def test_an_error_in_the_c_file_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "program.p4").write_text(program(types=DECLARATIONS, apply="hdr.byte.value = twice(1);"))
    (tmp_path / "wrong.c").write_text("\nint x = nowhere;\n")
    with pytest.raises(CompileError, match=r"wrong\.c:2:9: error: .*nowhere"):
        compile_p4(tmp_path / "program.p4", externs=tmp_path / "wrong.c")
    with pytest.raises(CompileError, match=r"missing\.c: No such file"):
        compile_p4(tmp_path / "program.p4", externs=tmp_path / "missing.c")


def test_what_c_cannot_take(tmp_path: Path) -> None:
    (tmp_path / "externs.c").write_text(C)
    for declaration, call in (
        ("extern void take(in byte_t x);", "take(hdr.byte);"),
        ("extern bit<200> give();", "meta.wide = give();"),
    ):
        (tmp_path / "program.p4").write_text(
            program(types=declaration, metadata="bit<200> wide;", apply=call)
        )
        with pytest.raises(UnsupportedError) as caught:
            compile_p4(tmp_path / "program.p4", externs=tmp_path / "externs.c")
        assert caught.value.span is not None
