"""make bench WHAT=...: measure one part of the system.

weir bench hosts --help     # the options of one benchmark
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Final

from commands.declarations import PREFIX

BENCHMARKS: Final = {
    "switch": "packets per second of the switch, against a bare echo, and BMv2 where it is on PATH",
    "values": "what a byte costs by the size of values: switch, echo, hosts, bare UDP",
    "tables": "what large tables cost the switch: routes and access lists",
    "hosts": "CPU time and latency of a block at client and storage node",
    "emulation": "the largest load that this machine keeps up with, by nodes",
}
"""Text about each benchmark, by its name."""


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that the first argument, or WEIR_WHAT, names.

    Returns its exit code; 2 if there is no such benchmark.
    """
    given = list(arguments)
    what = given.pop(0) if given and not given[0].startswith("-") else os.environ.get(f"{PREFIX}WHAT", "")
    if what not in BENCHMARKS:
        print(_usage(what), file=sys.stderr if what else sys.stdout)
        return 2 if what or "--help" not in given else 0
    run: Callable[[Sequence[str]], int] = import_module(f"experiments.bench.{what}.__main__").main
    return run(given)


def _usage(what: str) -> str:
    near = get_close_matches(what, BENCHMARKS, 1)
    wrong = (
        f"WHAT: there is no benchmark {what!r}{f': did you mean {near[0]}?' if near else ''}\n"
        if what
        else ""
    )
    lines = [f"  {name:12} {text}" for name, text in BENCHMARKS.items()]
    return f"{wrong}weir bench NAME, or make bench WHAT=NAME, where name is one of\n" + "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
