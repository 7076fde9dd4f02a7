"""python -m v1model.testgen DIR: P4Testgen's tests of v1model programs, on the embedded switch.

P4Testgen (p4testgen on PATH, part of p4lang's p4c) executes a program symbolically. For each way through it,
it gives a packet that takes this way and the expected output: an oracle that knows nothing of this switch.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from v1model import isolation
from v1model.corpus.survey import find_programs
from v1model.stf.runner import FAILED, TIMEOUT_S, run_one, summary, write_summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from v1model.isolation import Outcome

GENERATOR = "p4testgen"
OK, FAILURE, USAGE = 0, 1, 2


def generate(program: Path, into: Path, tests: int, seed: int, timeout_s: float) -> list[Path]:
    """Let P4Testgen write up to `tests` STF files for a program into a folder; returns their paths.

    Raises ValueError with its output if it made none.
    """
    into.mkdir(parents=True, exist_ok=True)
    command = [
        *(GENERATOR, "--target", "bmv2", "--arch", "v1model", "--test-backend", "STF"),
        *("--max-tests", str(tests), "--seed", str(seed), "--out-dir", str(into)),
        *(f"-I{program.parent}", str(program)),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        said = f"exit code {done.returncode}: {done.stderr[-400:].strip()}"
    except subprocess.TimeoutExpired:
        said = f"it took more than {timeout_s:g} s"
    if found := sorted(into.glob("*.stf")):
        return found
    raise ValueError(said)


def run_generated(program: Path, tests: Sequence[Path], jobs: int, timeout_s: float) -> Iterator[Outcome]:
    """Run tests of one program; yields outcomes in the order in which they end."""
    named = [(path.stem, path) for path in tests]
    return isolation.run_all(named, partial(run_one, program=program, quick=True), FAILED, jobs, timeout_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate and run tests; returns 0 if none failed, 1 if some did, 2 for usage or without P4Testgen."""
    options = _options(arguments)
    if shutil.which(GENERATOR) is None:
        print(f"{GENERATOR} is not on PATH: it comes with p4lang's p4c", file=sys.stderr)
        return USAGE
    if not options.dir.exists() or not (programs := find_programs(options.dir)):
        print(f"no v1model program below {options.dir}", file=sys.stderr)
        return USAGE
    outcomes: list[Outcome] = []
    without = 0
    for number, program in enumerate(programs):
        try:
            into = options.out / f"{number}-{program.stem}"
            tests = generate(program, into, options.tests, options.seed, options.timeout)
        except ValueError as error:
            without += 1
            print(f"no tests {program}: {error}", flush=True)
            continue
        for outcome in run_generated(program, tests, options.jobs, options.timeout):
            outcomes.append(outcome)
            reason = f": {outcome.reason}" if outcome.reason else ""
            print(f"{outcome.result:8} {into / outcome.name}.stf{reason}", flush=True)
    write_summary(outcomes, options.out / "summary.json")
    counts = summary(outcomes)
    print(
        f"{counts['passed']} passed, {counts['failed']} failed, {counts['refused']} refused by the compiler; "
        f"no tests for {without} of {len(programs)} programs ({options.out / 'summary.json'})"
    )
    return FAILURE if counts["failed"] else OK


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m v1model.testgen",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dir", type=Path, help="a folder with programs, or one")
    parser.add_argument("--tests", type=int, default=20, help="of a program, at most (default: %(default)d)")
    parser.add_argument("--seed", type=int, default=1, help="P4Testgen's (default: %(default)d)")
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="tests at a time (default: cores)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT_S,
        help="seconds for a program and a test (default: %(default)g)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results/testgen"), help="where to write (default: %(default)s)"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
