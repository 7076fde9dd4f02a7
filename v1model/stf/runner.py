"""Runner of all STF tests below a folder."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING

from v1model import isolation
from v1model.errors import CompileError
from v1model.isolation import Outcome
from v1model.stf.executor import Executor
from v1model.stf.parser import parse
from v1model.stf.statements import StfError
from v1model.stf.target import EmbeddedTarget

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

TIMEOUT_S = 120.0  # for one test; compiling a large program takes most of it
# Results. REFUSED is by the compiler; the reason says why.
PASSED, FAILED, REFUSED, SKIPPED = "passed", "failed", "refused", "skipped"

V1MODEL = re.compile(r'^\s*#\s*include\s*[<"](?:.*/)?v1model\.p4[>"]', re.MULTILINE)


def find_tests(root: Path) -> list[Path]:
    """Return the *.stf files below `root` (or `root` itself)."""
    return [root] if root.is_file() else sorted(root.rglob("*.stf"))


def run_all(
    root: Path, jobs: int, timeout_s: float = TIMEOUT_S, externs: Path | None = None
) -> Iterator[Outcome]:
    """Yield the tests that cannot be run first, then outcomes in the order in which tests end."""
    tests = []
    for path in find_tests(root):
        name = _name(path, root)
        if skipped := _skipped(path, name):
            yield skipped
        else:
            tests.append((name, path))
    yield from isolation.run_all(tests, partial(run_one, externs=externs), FAILED, jobs, timeout_s)


def summary(outcomes: Iterable[Outcome]) -> dict[str, object]:
    """Return the contents of results/stf/summary.json; skipped files are not part of it."""
    counted = sorted((o for o in outcomes if o.result != SKIPPED), key=lambda outcome: outcome.name)
    return {
        **{result: sum(o.result == result for o in counted) for result in (PASSED, FAILED, REFUSED)},
        "tests": {o.name: {"result": o.result, "reason": o.reason} for o in counted},
    }


def write_summary(outcomes: Iterable[Outcome], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary(outcomes), indent=2) + "\n")


def run_one(
    stf: Path, externs: Path | None = None, program: Path | None = None, *, quick: bool = False
) -> tuple[str, str]:
    """Return (result, reason) of one test, run in this process.

    Its program is `program`, or the one beside it. Its own externs are in the C file beside it, or in
    `externs`. `quick` is EmbeddedTarget's.
    """
    try:
        statements = parse(stf.read_text(errors="replace"))
        own = stf.with_suffix(".c")
        found = own if own.is_file() else externs
        with EmbeddedTarget(program or stf.with_suffix(".p4"), found, quick=quick) as target:
            Executor(target).run(statements)
    except CompileError as error:
        # A refusal names a place in the program; otherwise the fault is the compiler's own.
        return (REFUSED if error.span else FAILED), error.render()
    except StfError as error:
        return FAILED, str(error)
    return PASSED, ""


def _name(path: Path, root: Path) -> str:
    return path.stem if root.is_file() else path.relative_to(root).with_suffix("").as_posix()


def _skipped(path: Path, name: str) -> Outcome | None:
    program = path.with_suffix(".p4")
    if not program.is_file():
        return Outcome(name, FAILED, f"there is no {program.name} beside it")
    if not V1MODEL.search(program.read_text(errors="replace")):
        return Outcome(name, SKIPPED, "not a v1model program")
    return None
