"""Hostile device configs against the compiler: a program's text changed at random.

Some words become words that ask for much. The compiler must give C or an error with a reason; anything else
is a report.
"""

from __future__ import annotations

import re
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from v1model.backend import generate
from v1model.errors import CompileError
from v1model.frontend import load_text
from v1model.midend import lower

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

MAX_CPU_S = 60  # the sandbox's (v1model/sandbox.py), without sanitizers
_WORD = re.compile(r"\w+|\"[^\"\n]*\"|\s+|.")
GREEDY = (
    "1 << 8000", "0x" + "f" * 3000, "9" * 5000, "99999999w1", "4294967295", "-1", ">>", "<", "((((((((",
    "{", "}",
    '\n# 1 "/dev/zero"\n', '\n#include "/etc/passwd"\n', '@name("a\\"; int x; /*")', "@pragma x ",
    '"' + "x" * 70_000 + '"', "bit<2048>", "tuple<tuple<bit<8>>>", "register<bit<64>>(1 << 40) hostile;",
    "for (bit<32> i = 0; ; ) {}",
)  # fmt: skip


class SourceFuzzer:
    """Random changes of one preprocessed text."""

    def __init__(self, text: str, source: random.Random) -> None:
        self._words, self._random = _WORD.findall(text), source

    def run(self, count: int) -> int:
        """Compile `count` changed texts to C; returns how many of them were programs."""
        return sum(self._is_program(self._changed()) for _ in range(count))

    def _is_program(self, text: str) -> bool:
        try:
            with _limited():
                generate(lower(load_text(text, "fuzz.p4"), "fuzz.p4"))
        except CompileError:
            return False
        return True

    def _changed(self) -> str:
        words = list(self._words)
        for _ in range(self._random.choice((1, 1, 2, 5))):
            first = self._random.randrange(len(words))
            last = min(len(words), first + self._random.choice((1, 1, 3, 20)))
            part = words[first:last]
            match self._random.randrange(5):
                case 0:
                    words[first:last] = []
                case 1:
                    words[first:first] = part * self._random.choice((1, 10, 1000))
                case 2:
                    words[first] = self._random.choice(self._words)
                case 3:
                    words[first] = self._random.choice(GREEDY)
                case _:
                    words[first:first] = [self._random.choice(GREEDY), " "]
        return "".join(words)


@contextmanager
def _limited() -> Iterator[None]:
    """Raise TimeoutError after MAX_CPU_S of the block; only in the main thread."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"a text took more than {MAX_CPU_S} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MAX_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
