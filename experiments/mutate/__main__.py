"""make mutate: change modules that keep the promises a little, and count the changes that tests notice.

The seed chooses the changes. Each is made in a copy of this checkout, and the module's tests
(experiments/mutate/promises.py) are run there until one fails.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass as declared

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Variable, Within
from commands.options import read
from emulator.result import ROOT, revision
from experiments.mutate.operators import Mutation, mutations
from experiments.mutate.promises import MODULES, files_of_tests

GOAL = 0.95


@declared(frozen=True, slots=True, kw_only=True, config=DECLARED)
class MutateOptions:
    """Options of `make mutate`, which counts small changes of modules that their tests notice."""

    mutations: Annotated[int, Within(1, 100_000)] = 40
    """Most mutations to try."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Seed of the choice of mutations."""
    modules: tuple[Annotated[str, OneOf(MODULES)], ...] = MODULES
    """Files to mutate."""
    minutes: Annotated[float, Within(0.1, 10_000)] = 60.0
    """Minutes after which no further mutation is tried."""
    timeout_s: Annotated[float, Within(1, 3600), Variable("TIMEOUT")] = 600.0
    """Seconds that a module's tests may take; a mutation with which they take longer counts as noticed."""
    results: Path = Path("results/mutate")
    """Folder for summary.json."""


@dataclass(frozen=True, slots=True)
class MutationResult:
    """Mutation that was tried, with its outcome."""

    module: str
    line: int
    before: str
    after: str
    noticed: bool
    by: str
    """First test that failed, or a note that tests took too long, or pytest's exit code."""


def main(arguments: Sequence[str]) -> int:
    """Run the experiment; returns its exit code.

    It is 0 if at least the share GOAL of the mutations was noticed, 1 if not, and 2 if it could not run.
    """
    program = "weir mutate"
    return run_command(
        arguments,
        lambda given: read(MutateOptions, given, program, __doc__ or ""),
        _run,
        interrupted="interrupted",
    )


def sample(modules: Sequence[str], count: int, seed: int) -> list[tuple[str, Mutation]]:
    """Return `count` mutations of these modules, or all if there are fewer; each is equally likely."""
    known = [
        (module, one) for module in modules for one in mutations((ROOT / module).read_text(encoding="utf-8"))
    ]
    return random.Random(seed).sample(known, min(count, len(known)))


def _run(screen: Screen, options: MutateOptions) -> int:
    tried: list[MutationResult] = []
    until_s = time.monotonic() + 60 * options.minutes
    chosen = sample(options.modules, options.mutations, options.seed)
    try:
        with tempfile.TemporaryDirectory() as scratch, screen.progress() as progress:
            copy = _copy(Path(scratch))
            bar = progress.add_task("mutations", total=len(chosen))
            for module, mutation in chosen:
                if time.monotonic() > until_s:
                    break
                tried.append(attempt(copy, module, mutation, options.timeout_s))
                progress.advance(bar)
                if not tried[-1].noticed:
                    screen.show(_line(tried[-1]))
    finally:  # an interrupted run also leaves its results
        _write(options, tried)
    noticed = sum(one.noticed for one in tried)
    share = noticed / len(tried) if tried else 0.0
    screen.show(f"{noticed} of {len(tried)} mutations were noticed ({share:.0%}; the goal is {GOAL:.0%})")
    return 0 if share >= GOAL else 1


def _copy(scratch: Path) -> Path:
    """Copy this checkout, with uncommitted changes and a link to its environment; returns the copy's path."""
    copy = scratch / "checkout"
    skipped = shutil.ignore_patterns(".git", ".venv*", "results", "build", "*_cache", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=skipped, symlinks=True)
    (copy / ".venv").symlink_to((ROOT / ".venv").resolve())
    return copy


def attempt(copy: Path, module: str, mutation: Mutation, timeout_s: float) -> MutationResult:
    """Make a mutation in the copy, run the module's tests, and undo the mutation."""
    path = copy / module
    source = path.read_text(encoding="utf-8")
    changed = mutation.apply(source)
    before, after = (text.splitlines()[mutation.line - 1].strip() for text in (source, changed))
    path.write_text(changed, encoding="utf-8")
    try:
        noticed, by = _tests_fail(copy, files_of_tests(module), timeout_s)
    finally:
        path.write_text(source, encoding="utf-8")
    return MutationResult(module, mutation.line, before, after, noticed, by)


def _tests_fail(copy: Path, tests: Sequence[str], timeout_s: float) -> tuple[bool, str]:
    """Return whether tests fail, and the first that does; a crash of pytest or a timeout is a failure too."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    process = subprocess.Popen(
        command, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return True, f"not done after {timeout_s:g} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return process.returncode != 0, failed[0] if failed else f"code {process.returncode}"


def _line(one: MutationResult) -> str:
    return f"not noticed: {one.module}:{one.line}: {one.before}  →  {one.after}".replace("[", r"\[")


def _write(options: MutateOptions, tried: Sequence[MutationResult]) -> None:
    options.results.mkdir(parents=True, exist_ok=True)
    summary = {
        "revision": revision(),
        "seed": options.seed,
        "tried": len(tried),
        "noticed": sum(one.noticed for one in tried),
        "mutations": [asdict(one) for one in tried],
    }
    (options.results / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
