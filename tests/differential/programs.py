"""Random P4 programs in the style of Gauntlet (Ruffy et al., OSDI 2020), and what each of them means.

A program is one control over the harness's header: assignments, branches, slices, actions with all
directions, a table with entries, a sub-control, `exit` and `return`. Every node has its P4 text and
its meaning in Python, so that a program can be judged without any other switch.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.differential.expressions import FIELDS, Expression, Expressions, State, mask

LOCALS = {"x": 16, "y": 7, "z": 128, "w": 200, "s": 1}
READ_ONLY = ("i", "p")  # `in` parameters and action data
MAX_DEPTH = 3
MAX_STATEMENTS = 5


class Leave(Exception):
    """`exit`: no error, but how a control ends early."""


@dataclass(frozen=True, slots=True)
class Statement:
    text: str
    run: Callable[[State], None]


class Generator(Expressions):
    """One program."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._declarations: list[str] = []
        self._calls: list[Callable[[], Statement]] = []

    def program(self) -> tuple[str, Callable[[State], None]]:
        """The P4 text behind the harness's includes, and its meaning for a header's fields."""
        for kind in (self._action, self._table, self._sub_control):
            self._calls.append(kind())
        self._names |= LOCALS
        body = self._block(MAX_DEPTH)
        local = "".join(f"        bit<{width}> {name} = 0;\n" for name, width in LOCALS.items())
        control = "control Test(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {"
        apply = f"    apply {{\n{local}{body.text}\n    }}\n}}"
        lines = ['#include "shape.p4"', *self._outside, control, *self._declarations, apply]
        text = "\n".join([*lines, '#include "main.p4"', ""])

        def run(state: State) -> None:
            state.update(dict.fromkeys(LOCALS, 0))
            with contextlib.suppress(Leave):
                body.run(state)

        return text, run

    _outside: list[str]

    # --- statements

    def _block(self, depth: int) -> Statement:
        statements = [self._statement(depth) for _ in range(self._rng.randint(1, MAX_STATEMENTS))]

        def run(state: State) -> None:
            for statement in statements:
                statement.run(state)

        return Statement("\n".join(f"        {statement.text}" for statement in statements), run)

    def _statement(self, depth: int) -> Statement:
        chance = self._rng.random()
        if depth > 0 and chance < 0.25:
            return self._if(depth - 1)
        if self._calls and chance < 0.45:
            return self._rng.choice(self._calls)()
        if depth < MAX_DEPTH and chance < 0.5:
            return self._exit()
        return self._assignment()

    def _assignment(self) -> Statement:
        name = self._rng.choice([name for name in self._names if name not in READ_ONLY])
        width = self._names[name]
        if width > 1 and self._rng.random() < 0.3:
            low = self._rng.randrange(width)
            high = self._rng.randrange(low, width)
            part = self._expression(high - low + 1, MAX_DEPTH)
            hole = ~(mask(high - low + 1) << low)

            def insert(state: State) -> None:
                state[name] = state[name] & hole | part.value(state) << low

            return Statement(f"{name}[{high}:{low}] = {part.text};", insert)
        value = self._expression(width, MAX_DEPTH)

        def assign(state: State) -> None:
            state[name] = value.value(state)

        return Statement(f"{name} = {value.text};", assign)

    def _if(self, depth: int) -> Statement:
        condition, then, otherwise = self._condition(2), self._block(depth), self._block(depth)

        def run(state: State) -> None:
            (then if condition.value(state) else otherwise).run(state)

        text = f"if ({condition.text}) {{\n{then.text}\n        }} else {{\n{otherwise.text}\n        }}"
        return Statement(text, run)

    def _exit(self) -> Statement:
        def leave(_: State) -> None:
            raise Leave

        return Statement("exit;", leave)

    # --- what is called

    def _inner_body(self, params: dict[str, int]) -> Statement:
        """Assignments among a callee's parameters and the header."""
        outer, self._names = self._names, {**FIELDS, **params}
        calls, self._calls = self._calls, []
        body = [self._assignment() for _ in range(self._rng.randint(1, 3))]
        self._names, self._calls = outer, calls

        def run(state: State) -> None:
            for statement in body:
                statement.run(state)

        return Statement("\n".join(f"        {statement.text}" for statement in body), run)

    def _action(self) -> Callable[[], Statement]:
        """act(in, inout, out): copied in, run, copied out."""
        params = {"i": 16, "io": 32, "o": 9}
        body = self._inner_body(params)
        self._declarations.append(
            "    action act(in bit<16> i, inout bit<32> io, out bit<9> o) {\n"
            f"        o = 0;\n{body.text}\n    }}"
        )

        def call() -> Statement:
            given = self._expression(16, 2)
            written = self._rng.choice([name for name, width in self._names.items() if width == 32])
            out = [name for name, width in self._names.items() if width >= 9 and name != written]
            target = self._rng.choice(out)

            def run(state: State) -> None:
                state |= {"i": given.value(state), "io": state[written], "o": 0}
                body.run(state)
                state[written] = state["io"]
                state[target] = state[target] & ~mask(9) | state["o"]

            return Statement(f"act({given.text}, {written}, {target}[8:0]);", run)

        return call

    def _table(self) -> Callable[[], Statement]:
        """A table with entries of its own: exact on op, ternary on a."""
        bodies = {name: self._inner_body({"p": 32}) for name in ("one", "two", "none")}
        for name, body in bodies.items():
            self._declarations.append(f"    action {name}(bit<32> p) {{\n{body.text}\n    }}")
        entries = []
        for _ in range(self._rng.randint(1, 4)):
            mask = self._rng.choice((0, 0xFF, 0xFFFFFFFF, 0x80000000))
            entries.append(
                (
                    self._rng.randrange(4),
                    self._rng.randrange(8) & mask,
                    mask,
                    self._rng.choice(("one", "two")),
                    self._rng.getrandbits(32),
                )
            )
        default = self._rng.getrandbits(32)
        shown = "".join(
            f"            ({op}, 32w{value} &&& 32w{mask}) : {name}({p});\n"
            for op, value, mask, name, p in entries
        )
        self._declarations.append(
            "    table tab {\n        key = { hdr.h.op: exact; hdr.h.a: ternary; }\n"
            "        actions = { one; two; none; }\n"
            f"        const default_action = none({default});\n"
            f"        const entries = {{\n{shown}        }}\n    }}"
        )

        def run(state: State) -> None:
            found, argument = "none", default
            for op, value, mask, name, p in entries:
                if state["hdr.h.op"] == op and state["hdr.h.a"] & mask == value:
                    found, argument = name, p
                    break
            state["p"] = argument
            bodies[found].run(state)

        def call() -> Statement:
            """Once: BMv2's pipelines are graphs in which a table has one place."""
            self._calls.remove(call)
            return Statement("tab.apply();", run)

        return call

    def _sub_control(self) -> Callable[[], Statement]:
        """A control with parameters of all directions, which may return early."""
        params = {"i": 32, "io": 64, "o": 33}
        first, second = self._inner_body(params), self._inner_body(params)
        condition = self._in(params, lambda: self._condition(2))
        self._outside = [
            "control Sub(inout headers_t hdr, in bit<32> i, inout bit<64> io, out bit<33> o) {\n    apply {\n"
            f"        o = 0;\n{first.text}\n        if ({condition.text}) {{ return; }}\n{second.text}\n"
            "    }\n}"
        ]
        self._declarations.append("    Sub() sub;")

        def call() -> Statement:
            given = self._expression(32, 1)

            def run(state: State) -> None:
                state |= {"i": given.value(state), "io": state["hdr.h.r"], "o": 0}
                first.run(state)
                if not condition.value(state):
                    second.run(state)
                state["hdr.h.r"] = state["io"]
                state["z"] = state["z"] & ~mask(33) | state["o"]

            return Statement(f"sub.apply(hdr, {given.text}, hdr.h.r, z[32:0]);", run)

        return call

    def _in(self, params: dict[str, int], make: Callable[[], Expression]) -> Expression:
        outer, self._names = self._names, {**FIELDS, **params}
        made = make()
        self._names = outer
        return made


def fields_of(frame: bytes) -> State:
    """The harness's header as a program's state."""
    state, at = {}, 0
    for name, width in FIELDS.items():
        state[name] = int.from_bytes(frame[at : at + width // 8], "big")
        at += width // 8
    return state


def frame_of(state: State) -> bytes:
    return b"".join(state[name].to_bytes(width // 8, "big") for name, width in FIELDS.items())


def frames(rng: random.Random, count: int) -> Sequence[bytes]:
    """Headers with small, extreme and random numbers."""
    made = []
    for _ in range(count):
        state = {
            name: rng.choice((rng.randrange(4), mask(width), 1 << (width - 1), rng.getrandbits(width)))
            for name, width in FIELDS.items()
        }
        made.append(frame_of(state))
    return made
