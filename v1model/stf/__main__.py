"""python -m v1model.stf DIR: p4c's STF tests on the embedded switch."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from v1model.stf.runner import FAILED, SKIPPED, TIMEOUT_S, find_tests, run_all, summary, write_summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests; returns 0 if none failed (refused programs don't count), 1 if some did, 2 for usage."""
    options = _options(arguments)
    if not options.dir.exists() or not find_tests(options.dir):
        print(f"no *.stf below {options.dir}", file=sys.stderr)
        return 2
    outcomes = []
    try:
        for outcome in run_all(options.dir, options.jobs, options.timeout, options.externs):
            outcomes.append(outcome)
            reason = f": {outcome.reason}" if outcome.reason else ""
            print(f"{outcome.result:8} {outcome.name} ({outcome.duration_s:.1f} s){reason}", flush=True)
    except KeyboardInterrupt:
        print("interrupted: what has run so far is in the summary", file=sys.stderr)
        return 130
    finally:
        write_summary(outcomes, options.summary)
    skipped = sum(outcome.result == SKIPPED for outcome in outcomes)
    counts = summary(outcomes)
    print(
        f"{counts['passed']} passed, {counts['failed']} failed, {counts['refused']} refused by the compiler; "
        f"{skipped} are not for v1model ({options.summary})"
    )
    return int(any(outcome.result == FAILED for outcome in outcomes))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m v1model.stf", description=__doc__)
    parser.add_argument("dir", type=Path, help="a folder with *.stf beside their *.p4, or one *.stf")
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="tests at a time (default: cores)"
    )
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_S, help="seconds for a test (default: %(default)g)"
    )
    parser.add_argument(
        "--externs", type=Path, metavar="FILE.c", help="the C of externs, for tests without a .c file"
    )
    parser.add_argument(
        "--summary", type=Path, default=Path("results/stf/summary.json"), help="where to write it"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
