"""Whatever a program calls its parts, the C that is made of it says the same."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from tests.v1model.refused_program import program
from v1model.backend import generate
from v1model.backend.names import comment, identifier, string
from v1model.frontend import load_text
from v1model.frontend.preprocess import preprocess
from v1model.midend import lower

HOSTILE = (
    'a"; int evil; "',
    'a\n#include "/etc/passwd"\n',
    '\r\n#include "/etc/passwd"\r\n',
    "*/ int evil; /*",
    "*\\\n/ int evil; /*",
    "??/",
    "%n%s%n",
    "\\",
    '\\"',
    "\\\n#define X\n",
    "\N{LATIN SMALL LETTER E WITH ACUTE}",
    "\N{LINE SEPARATOR}#include",
    "\x01\x1b[2J",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comment_is_one_line_and_ends_where_it_should(text: str) -> None:
    made = comment(text)
    assert "\n" not in made
    assert made.isascii()
    assert made.index("*/") == len(made) - 2


@pytest.mark.parametrize("text", HOSTILE)
def test_an_identifier_is_ascii(text: str) -> None:
    made = identifier(text)
    assert made.isascii()
    assert made.replace("_", "a").isalnum()


def test_strings_are_what_they_were(tmp_path: Path) -> None:
    values = ", ".join(map(string, HOSTILE))
    (tmp_path / "x.c").write_text(f"const char *const all[] = {{{values}}};\n")
    library = tmp_path / "x.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "x.c"], check=True)
    found = (ctypes.c_char_p * len(HOSTILE)).in_dll(ctypes.CDLL(str(library)), "all")
    assert [value.decode() for value in found if value is not None] == list(HOSTILE)


@pytest.mark.parametrize("text", HOSTILE)
def test_names_of_a_program_make_no_c(tmp_path: Path, text: str) -> None:
    """The C of a program with hostile names has as many lines as one with plain names, and its directives."""
    first, second, third = (f'@name("NAME{number}")' for number in range(3))
    source = tmp_path / "program.p4"
    source.write_text(
        program(
            locals=f"""{first} register<bit<8>>(4) r; {second} counter(4, CounterType.packets) c;
                {third} meter(4, MeterType.bytes) m; {first} action a(bit<8> x) {{ meta.low = x; }}
                {first} table t {{ key = {{ meta.low: exact {first}; }} actions = {{ a; }} }}""",
            apply='t.apply(); r.write(0, 1); c.count(0); log_msg("NAME"); assert(meta.low == 1);',
        )
    )
    plain = preprocess(source)
    in_p4 = text.replace("\\", "\\\\").replace('"', '\\"')
    of_hostile, of_plain = (
        generate(lower(load_text(read, "x.p4"), "x.p4")).source.splitlines()
        for read in (plain.replace("NAME", in_p4), plain)
    )
    assert len(of_hostile) == len(of_plain)
    assert directives(of_hostile) == directives(of_plain)


def directives(lines: list[str]) -> list[str]:
    return [line for line in lines if line.lstrip().startswith("#")]
