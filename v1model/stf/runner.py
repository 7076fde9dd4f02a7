"""Runs all STF tests below a folder, each in a process of its own, so that no crash or endless loop
of one harms the others."""

from __future__ import annotations

import json
import multiprocessing
import multiprocessing.connection
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.stf.executor import Executor
from v1model.stf.parser import parse
from v1model.stf.statements import StfError
from v1model.stf.target import EmbeddedTarget

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

TIMEOUT_S = 120.0  # of one test; compiling a large program takes most of it
PASSED, FAILED, REFUSED, SKIPPED = "passed", "failed", "refused", "skipped"

_V1MODEL = re.compile(r'^\s*#\s*include\s*[<"](?:.*/)?v1model\.p4[>"]', re.MULTILINE)
_fork = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Outcome:
    """`result` is one of PASSED, FAILED, REFUSED (by the compiler, `reason` says why), SKIPPED."""

    name: str
    result: str
    reason: str = ""
    duration_s: float = 0.0


def find_tests(root: Path) -> list[Path]:
    """The *.stf files below `root` (or `root` itself)."""
    return [root] if root.is_file() else sorted(root.rglob("*.stf"))


def run_all(root: Path, jobs: int, timeout_s: float = TIMEOUT_S) -> Iterator[Outcome]:
    """Outcomes in the order in which tests end."""
    waiting = [(path, _name(path, root)) for path in reversed(find_tests(root))]
    running: list[_Job] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                path, name = waiting.pop()
                if skipped := _skipped(path, name):
                    yield skipped
                else:
                    running.append(_Job(path, name, timeout_s))
            for job in _wait(running) if running else ():
                running.remove(job)
                yield job.outcome()
    finally:
        for job in running:
            job.kill()


def summary(outcomes: Iterable[Outcome]) -> dict[str, object]:
    """What results/stf/summary.json holds; skipped files are not part of it."""
    counted = sorted((o for o in outcomes if o.result != SKIPPED), key=lambda outcome: outcome.name)
    return {
        **{result: sum(o.result == result for o in counted) for result in (PASSED, FAILED, REFUSED)},
        "tests": {o.name: {"result": o.result, "reason": o.reason} for o in counted},
    }


def write_summary(outcomes: Iterable[Outcome], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary(outcomes), indent=2) + "\n")


def run_one(stf: Path) -> tuple[str, str]:
    """(result, reason) of one test, in this process."""
    try:
        statements = parse(stf.read_text(errors="replace"))
        with EmbeddedTarget(stf.with_suffix(".p4")) as target:
            Executor(target).run(statements)
    except CompileError as error:
        # A refusal names a place in the program; else the fault is the compiler's own.
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
    if not _V1MODEL.search(program.read_text(errors="replace")):
        return Outcome(name, SKIPPED, "not a v1model program")
    return None


class _Job:
    """One test in a process of its own."""

    def __init__(self, path: Path, name: str, timeout_s: float) -> None:
        self._name = name
        self._started = time.monotonic()
        self.deadline = self._started + timeout_s
        self.receiver, sender = _fork.Pipe(duplex=False)
        self._process: BaseProcess = _fork.Process(target=_work, args=(path, sender), daemon=True)
        self._process.start()
        sender.close()

    def outcome(self) -> Outcome:
        """To be called when `receiver` is ready or the deadline has passed; ends the process."""
        try:
            result, reason = self.receiver.recv() if self.receiver.poll() else (FAILED, "timed out")
        except EOFError:
            self._process.join()
            result, reason = FAILED, _death(self._process.exitcode)
        self.kill()
        return Outcome(self._name, result, reason, time.monotonic() - self._started)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self.receiver.close()


def _wait(running: list[_Job]) -> list[_Job]:
    """The jobs that are done or late; waits for at least one."""
    timeout_s = max(0.0, min(job.deadline for job in running) - time.monotonic())
    ready = multiprocessing.connection.wait([job.receiver for job in running], timeout_s)
    now = time.monotonic()
    return [job for job in running if job.receiver in ready or job.deadline <= now]


def _work(path: Path, sender: Connection) -> None:
    try:
        result = run_one(path)
    except Exception as error:  # a bug of ours: the other tests go on
        result = FAILED, f"{type(error).__name__}: {error}"
    sender.send(result)
    sender.close()


def _death(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"crashed: {signal.Signals(-exit_code).name}"
    return f"ended without a result (exit code {exit_code})"
