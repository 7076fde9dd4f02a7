"""python -m v1model.fuzz [PROGRAM.p4 | DIR ...]: fuzz v1model programs; exit status 0 means no report.

Random, truncated and mutated packets and hostile P4Runtime requests go through the library form of any
v1model program, built with AddressSanitizer and UBSan. Changed texts of the program go through the compiler.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from v1model.errors import CompileError
from v1model.frontend import render
from v1model.fuzz.run import fuzz

SANITIZED = "WEIR_FUZZ_SANITIZED"  # set in the process that has the sanitizers' runtime loaded


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m v1model.fuzz", description=__doc__)
    parser.add_argument(
        "programs",
        nargs="*",
        metavar="PROGRAM.p4 | DIR",
        help="of a folder: every *.p4 below it with an *.stf beside it, or else those in it (default: p4)",
    )
    packets = int(os.environ.get("WEIR_PACKETS") or 1_000_000)
    parser.add_argument(
        "--packets", type=int, default=packets, help="for each program (default: WEIR_PACKETS or 1000000)"
    )
    requests = int(os.environ.get("WEIR_REQUESTS") or 2_000)
    parser.add_argument(
        "--requests", type=int, default=requests, help="for each program (default: WEIR_REQUESTS or 2000)"
    )
    texts = int(os.environ.get("WEIR_TEXTS") or 500)
    parser.add_argument(
        "--texts",
        type=int,
        default=texts,
        help="changed texts of each program (default: WEIR_TEXTS or 500)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers (default: %(default)s)")
    parser.add_argument("-D", dest="defines", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args(arguments)


def _programs(given: Path) -> list[Path]:
    if not given.is_dir():
        return [given]
    tested = sorted(path for path in given.rglob("*.p4") if path.with_suffix(".stf").exists())
    return tested or sorted(given.glob("*.p4"))


def _run_again_with_sanitizers(arguments: Sequence[str]) -> int:
    """Run the command in a new process, which loads the sanitizers' runtime first; returns its exit code."""
    names = ("libasan.so", "libubsan.so")
    paths = [
        subprocess.run(
            [os.environ.get("CC", "cc"), f"-print-file-name={name}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for name in names
    ]
    environment = {
        **os.environ,
        SANITIZED: "1",
        "LD_PRELOAD": " ".join(paths),
        # Python itself leaves memory to the end of the process.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
    }
    return subprocess.run(
        [sys.executable, "-m", "v1model.fuzz", *arguments], env=environment, check=False
    ).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz programs; returns 0 if nothing was found, 1 for a finding, 2 if there is no program."""
    options = _options(arguments)
    if SANITIZED not in os.environ:
        return _run_again_with_sanitizers(sys.argv[1:] if arguments is None else arguments)
    os.environ.pop("LD_PRELOAD", None)  # only for this process, not for the C compiler
    defines = dict(define.partition("=")[::2] for define in options.defines)
    programs = [program for given in options.programs or ["p4"] for program in _programs(Path(given))]
    if not programs:
        print(f"no program: no *.p4 in {' or '.join(options.programs) or 'p4'}", file=sys.stderr)
        return 2
    for path in programs:
        started = time.monotonic()
        try:
            taken, accepted = fuzz(
                path, defines, options.packets, options.seed, options.requests, options.texts
            )
        except CompileError as error:
            print(render(error), file=sys.stderr)
            return 1
        rate = options.packets / (time.monotonic() - started)
        requests = f"{options.requests} requests ({accepted} updates accepted)"
        done = f"{taken} packets, {requests}, {options.texts} changed texts"
        print(f"{path}: {done}, no report ({rate:,.0f} packets/s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
