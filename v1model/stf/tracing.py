"""python -m v1model trace: trace the packets of an STF file, without interfaces and without root."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from v1model.backend import Tracing
from v1model.errors import CompileError
from v1model.frontend import render
from v1model.stf.executor import Executor
from v1model.stf.parser import parse
from v1model.stf.statements import StfError
from v1model.stf.target import EmbeddedTarget
from v1model.trace.events import TraceFilter
from v1model.trace.formats import as_json, as_text, choices_text
from v1model.trace.outcomes import Outcome, outcomes

if TYPE_CHECKING:
    from collections.abc import Sequence

OK, FAILURE, USAGE = 0, 1, 2


class _OutcomesTarget(EmbeddedTarget):
    """Target that shows all outcomes of each packet before it comes in."""

    def __init__(self, options: argparse.Namespace, wanted: TraceFilter, tracing: Tracing) -> None:
        super().__init__(options.program, options.externs, tracing, quick=True)
        self._json, self._wanted = options.json, wanted

    def send(self, port: int, data: bytes) -> None:
        if self._wanted.takes(port, data):
            for number, outcome in enumerate(outcomes(self.data_plane, port, data), start=1):
                self._show(number, outcome)
        super().send(port, data)

    def _show(self, number: int, outcome: Outcome) -> None:
        if not self._json:
            print(f"outcome {number}: {choices_text(outcome.choices)}")
        for event in outcome.events:
            print(as_json(event, number) if self._json else as_text(event))


def main(arguments: Sequence[str] | None = None) -> int:
    """Trace a file; returns 0 if its expectations are met, 1 if not or if the program is refused, 2 for
    usage.
    """
    options = _options(arguments)
    try:
        wanted = TraceFilter(options.port, options.frame)
        statements = parse(options.stf.read_text())
    except StfError as error:
        print(f"{options.stf}: {error}", file=sys.stderr)
        return USAGE
    except (ValueError, OSError) as error:
        print(f"trace: {error}", file=sys.stderr)
        return USAGE
    tracing = Tracing.ASSIGNMENTS if options.assignments else Tracing.STEPS
    try:
        if options.outcomes:
            target: EmbeddedTarget = _OutcomesTarget(options, wanted, tracing)
        else:
            target = EmbeddedTarget(options.program, options.externs, tracing, quick=True)
            show = as_json if options.json else as_text
            target.data_plane.trace(wanted, lambda event: print(show(event)))
        with target:
            Executor(target).run(statements)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except CompileError as error:
        print(render(error), file=sys.stderr)
        return FAILURE
    except StfError as error:
        print(f"{options.stf}: {error}", file=sys.stderr)
        return FAILURE
    return OK


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m v1model trace", description=__doc__)
    parser.add_argument("program", type=Path, help="a P4_16 program for v1model")
    parser.add_argument("stf", type=Path, help="entries and packets (docs/p4runtime.md, STF)")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of text")
    parser.add_argument("--assignments", action="store_true", help="with what is assigned to fields")
    parser.add_argument(
        "--outcomes", action="store_true", help="of each packet, what each member of a group would have done"
    )
    parser.add_argument("--port", type=int, metavar="N", help="only packets into this port")
    parser.add_argument(
        "--frame", default="", metavar="HEX", help="only frames that begin so; * is any digit"
    )
    parser.add_argument("--externs", type=Path, metavar="FILE.c", help="C of externs that are not v1model's")
    return parser.parse_args(arguments)
