"""Command line of the controller."""

from __future__ import annotations

import argparse
import gc
import logging
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from controller.config import load_config
from controller.errors import ControllerError
from controller.policies import POLICY_NAMES
from controller.process import ControllerProcess, write_results
from weir import logs
from weir.standard_input import follow_commands

if TYPE_CHECKING:
    from collections.abc import Sequence

GC_THRESHOLDS: Final = (50_000, 20, 20)

DESCRIPTION: Final = """
The controller of Weir's switches: connects to each over P4Runtime, installs program, routes, roles and
groups, and decides with a policy which blocks the pools hold.

stdout has one JSON object a line: {"event": "ready"} once all switches are as they should be, then
{"event": "progress", ...} every second; "report" on stdin is answered with {"event": "report", ...}, the
results so far. "stop" on stdin, its end, SIGTERM or SIGINT end the process; it then writes its results. With
stdin from /dev/null only signals end it. The switches go on without it, and a controller started later goes
on from what they hold. A switch that is not there, or goes away, is tried again until it answers.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller; exit code 2 for a configuration that can't be used, 1 for a later failure."""
    options = _parser().parse_args(arguments)
    logs.begin("controller")
    if options.verbose:
        logging.getLogger().setLevel(logging.DEBUG)
    try:
        config = load_config(options.config)
        if options.policy is not None:
            config = replace(config, policy=options.policy)
        controller = ControllerProcess(config, options.event_logs)
    except ControllerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with controller:
        return _run(controller, options.results)


def _run(controller: ControllerProcess, results: Path | None) -> int:
    # What is there by now stays; protobuf messages by the thousand are no cycles that a collector could find.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: controller.stop())
    follow_commands(partial(_obey, controller), controller.stop)
    try:
        controller.run()
        if results is not None:
            write_results(results, controller.results() | {"hottest": controller.hottest()})
    except ControllerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1  # whoever read our lines is gone
    return 0


def _obey(controller: ControllerProcess, line: str) -> bool:
    """Carry out a line of stdin; False for the last one."""
    if line == "report":
        controller.report()
    return line != "stop"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m controller", description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="configuration (docs/controller.md)"
    )
    parser.add_argument(
        "--policy", metavar="NAME", help=f"instead of the configuration's: {', '.join(POLICY_NAMES)}"
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="write the results there at the end")
    parser.add_argument(
        "--event-logs", type=Path, metavar="DIR",
        help="write what the policies are told to DIR/SWITCH.jsonl, for replays",
    )  # fmt: skip
    parser.add_argument("-v", "--verbose", action="store_true", help="log more, on stderr")
    return parser


if __name__ == "__main__":
    sys.exit(main())
