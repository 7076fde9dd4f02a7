"""A few lines that ask for too much are refused, with the place, before they get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.v1model.refused_program import program
from v1model.errors import CompileError
from v1model.frontend import load
from v1model.midend import lower
from v1model.midend.frame import MAX_FRAMES, MAX_LOWERED_NODES

LEVELS = range(1, 20)
FUNCTIONS = "bit<8> f0(in bit<8> x) { return x + 1; }" + "".join(
    f"bit<8> f{i}(in bit<8> x) {{ return f{i - 1}(x) + f{i - 1}(x + 1); }}\n" for i in LEVELS
)
GENERICS = "T g0<T>(in T x) { return x; }" + "".join(
    f"T g{i}<T>(in T x) {{ return g{i - 1}(g{i - 1}(x)); }}\n" for i in LEVELS
)
CONTROLS = "control C0(inout bit<8> x) { apply { x = x + 1; } }" + "".join(
    f"control C{i}(inout bit<8> x) {{ C{i - 1}() a; C{i - 1}() b; apply {{ a.apply(x); b.apply(x); }} }}\n"
    for i in LEVELS
)
CONTROLS_APPLIED_TWICE = "control C0(inout bit<8> x) { apply { x = x + 1; } }" + "".join(
    f"control C{i}(inout bit<8> x) {{ C{i - 1}() a; apply {{ a.apply(x); a.apply(x); }} }}\n" for i in LEVELS
)
PARSERS = "parser P0(inout bit<8> x) { state start { x = x + 1; transition accept; } }" + "".join(
    f"parser P{i}(inout bit<8> x) {{ P{i - 1}() p; state start {{ p.apply(x); p.apply(x);"
    " transition accept; } }\n"
    for i in LEVELS
)
ACTIONS = "action a0() { meta.low = meta.low + 1; }" + "".join(
    f"action a{i}() {{ a{i - 1}(); a{i - 1}(); }}\n" for i in LEVELS
)
LONG_FUNCTION = f"bit<8> f0(in bit<8> x) {{ bit<8> y = x; {'y = y + 1; ' * 200} return y; }}" + "".join(
    f"bit<8> f{i}(in bit<8> x) {{ return f{i - 1}(x) + f{i - 1}(x); }}\n" for i in range(1, 14)
)
TOO_MUCH_TO_INLINE = f"more than {MAX_FRAMES} calls and instances to inline"

REFUSED = {
    "functions": (program(types=FUNCTIONS, apply="meta.low = f19(1);"), TOO_MUCH_TO_INLINE),
    "generic functions": (program(types=GENERICS, apply="meta.low = g19(meta.low);"), TOO_MUCH_TO_INLINE),
    "controls": (
        program(types=CONTROLS, locals="C19() c;", apply="c.apply(meta.low);"),
        TOO_MUCH_TO_INLINE,
    ),
    "controls applied twice": (
        program(types=CONTROLS_APPLIED_TWICE, locals="C19() c;", apply="c.apply(meta.low);"),
        TOO_MUCH_TO_INLINE,
    ),
    "parsers": (
        program(types=PARSERS, parser_locals="P19() p;", state="p.apply(meta.low);"),
        TOO_MUCH_TO_INLINE,
    ),
    "actions": (program(locals=ACTIONS, apply="a19();"), TOO_MUCH_TO_INLINE),
    "long functions": (
        program(types=LONG_FUNCTION, apply="meta.low = f13(1);"),
        f"more than {MAX_LOWERED_NODES} statements and expressions once calls are inlined",
    ),
    "a register": (
        program(locals="register<bit<32>>(1 << 40) r;", apply="r.write(0, 1);"),
        f"{1 << 40} does not fit bit<32>",
    ),
    "a large register": (
        program(locals="register<bit<32>>(1 << 29) r;", apply="r.write(0, 1);"),
        f"a size of {1 << 29}: not in 0..{1 << 28}",
    ),
    "many registers": (
        program(locals="".join(f"register<bit<64>>(1 << 27) r{i};" for i in range(3))),
        f"registers, counters and meters of more than {1 << 31} bytes",
    ),
    "a table": (
        program(
            locals=f"table t {{ key = {{ meta.low: exact; }} actions = {{ NoAction; }} size = {1 << 60}; }}",
            apply="t.apply();",
        ),
        f"table property size: {1 << 60} is more than {1 << 28}",
    ),
    "types of types": (
        program(types="".join(f"type {f't{i - 1}' if i else 'bit<8>'} t{i};" for i in range(2000)))
        .replace("bit<8> low;", "bit<8> low; t1999 deep;"),
        "an expression, statement or type that is nested too deeply",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_its_place(what: str, tmp_path: Path) -> None:
    text, message = REFUSED[what]
    source = tmp_path / "program.p4"
    source.write_text(text)
    with pytest.raises(CompileError) as caught:
        lower(load(source), "program.p4")
    assert caught.value.message == message
    assert caught.value.span is not None
    assert caught.value.span.file == str(source)
