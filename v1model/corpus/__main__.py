"""python -m v1model.corpus DIR: compile every v1model program below a folder and summarise the results."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from v1model.corpus.survey import COMPILED, RESULTS, TIMEOUT_S, find_programs, summary, survey


def main(arguments: Sequence[str] | None = None) -> int:
    """Survey a folder; returns 0 whatever the programs are, 1 if there is none, 130 if interrupted."""
    options = _options(arguments)
    programs = find_programs(options.dir) if options.dir.exists() else []
    if not programs:
        print(f"no v1model program (one that instantiates V1Switch) below {options.dir}", file=sys.stderr)
        return 1
    outcomes, interrupted = [], False
    try:
        for outcome in survey(options.dir, options.jobs, options.include, options.timeout):
            outcomes.append(outcome)
            if outcome.result != COMPILED or options.verbose:
                reason = f": {outcome.reason}" if outcome.reason else ""
                print(f"{outcome.result} {outcome.name}{reason}", flush=True)
            if len(outcomes) % 25 == 0:
                print(f"[{len(outcomes)}/{len(programs)}]", flush=True)
    except KeyboardInterrupt:
        interrupted = True
    found = summary(outcomes)
    options.summary.parent.mkdir(parents=True, exist_ok=True)
    options.summary.write_text(json.dumps(found, indent=2) + "\n")
    reasons = found["reasons"]
    assert isinstance(reasons, dict)
    for reason, count in reasons.items():
        print(f"{count:5}  {reason}")
    counts = ", ".join(f"{found[result]} {result}" for result in RESULTS if found[result])
    print(f"{found['programs']} programs: {counts} ({options.summary})")
    return 130 if interrupted else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m v1model.corpus", description=__doc__)
    parser.add_argument("dir", type=Path, help="a folder with P4 programs anywhere below it, or one program")
    parser.add_argument("-I", dest="include", action="append", type=Path, default=[], metavar="DIR")
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="programs at a time (default: cores)"
    )
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_S, help="seconds for a program (default: %(default)g)"
    )
    parser.add_argument("--verbose", action="store_true", help="a line for each program that compiles, too")
    parser.add_argument(
        "--summary", type=Path, default=Path("results/corpus/summary.json"), help="where to write it"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
