"""A folder of STF tests: outcomes, the summary, and that nothing harms the run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.experiments.summaries import assert_described
from v1model.stf import runner

ROOT = Path(__file__).parents[3]
ECHO = Path(__file__).with_name("echo.p4")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One test of each outcome, in a subfolder too."""
    cases = {
        "good": "packet 1 01\nexpect 2 01\n",
        "deep/bad": "packet 1 01\nexpect 2 02\n",
        "unparsable": "frobnicate\n",
    }
    for name, text in cases.items():
        path = tmp_path / f"{name}.stf"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        shutil.copy(ECHO, path.with_suffix(".p4"))
    for name, program in {
        "refused": "#include <v1model.p4>\nnonsense;\n",
        "other": "#include <psa.p4>\n",
    }.items():
        (tmp_path / f"{name}.p4").write_text(program)
        (tmp_path / f"{name}.stf").write_text("packet 1 01\n")
    (tmp_path / "orphan.stf").write_text("packet 1 01\n")
    return tmp_path


def test_outcomes_and_summary(folder: Path) -> None:
    outcomes = list(runner.run_all(folder, jobs=2))
    assert {outcome.name: outcome.result for outcome in outcomes} == {
        "good": runner.PASSED,
        "deep/bad": runner.FAILED,
        "unparsable": runner.FAILED,
        "refused": runner.REFUSED,
        "other": runner.SKIPPED,
        "orphan": runner.FAILED,
    }
    summary = runner.summary(outcomes)
    assert set(summary) == {"passed", "failed", "refused", "tests"}
    assert (summary["passed"], summary["failed"], summary["refused"]) == (1, 3, 1)
    tests = summary["tests"]
    assert isinstance(tests, dict)
    assert tests["good"] == {"result": "passed", "reason": ""}
    assert tests["refused"]["reason"].startswith(f"{folder}/refused.p4:2:")
    assert "differs at hex digit" in tests["deep/bad"]["reason"]
    assert "no orphan.p4" in tests["orphan"]["reason"]


def test_a_test_that_does_not_end(folder: Path) -> None:
    (outcome,) = runner.run_all(folder / "good.stf", jobs=1, timeout_s=0)
    assert (outcome.result, outcome.reason) == (runner.FAILED, "timed out")


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (lambda _, externs: os.kill(os.getpid(), signal.SIGKILL), "crashed: SIGKILL"),
        (lambda _, externs: os._exit(3), r"ended without a result (exit code 3)"),
        (lambda _, externs: 1 // 0, "ZeroDivisionError: integer division or modulo by zero"),
    ],
)
def test_a_test_that_dies(folder: Path, monkeypatch: pytest.MonkeyPatch, ending: object, reason: str) -> None:
    monkeypatch.setattr(runner, "run_one", ending)
    (outcome,) = runner.run_all(folder / "good.stf", jobs=1)
    assert (outcome.result, outcome.reason) == (runner.FAILED, reason)


def test_the_command(folder: Path) -> None:
    summary = folder / "results" / "summary.json"
    command = [sys.executable, "-m", "v1model.stf", str(folder), "--summary", str(summary), "--jobs", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) >= 7
    assert "1 passed, 3 failed, 1 refused by the compiler; 1 are not for v1model" in done.stdout
    assert json.loads(summary.read_text())["passed"] == 1
    assert_described("stf", summary)


def test_a_folder_without_tests(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "v1model.stf", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (2, f"no *.stf below {tmp_path}\n")
