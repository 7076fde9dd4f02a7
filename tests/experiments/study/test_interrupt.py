"""Ctrl-C at a terminal reaches every process of a study: it ends with one line, and what it has is kept."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WAIT_S = 120.0


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_an_interrupted_study_ends_quietly_and_keeps_its_points(tmp_path: Path) -> None:
    points = tmp_path / "points"
    command = [sys.executable, "-m", "experiments.study", "--quick=1", "--workers=1"]
    study = subprocess.Popen(
        [*command, "--requests=20", f"--results={tmp_path}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=Path(__file__).parents[3],
        start_new_session=True,
    )
    try:
        deadline_s = time.monotonic() + WAIT_S
        while not list(points.glob("*.json")):
            assert study.poll() is None, study.communicate()[0]
            assert time.monotonic() < deadline_s, "took too long"
            time.sleep(0.05)
        os.killpg(study.pid, signal.SIGINT)
        said, _ = study.communicate(timeout=WAIT_S)
    finally:
        if study.poll() is None:
            os.killpg(study.pid, signal.SIGKILL)
            study.wait()
    assert study.returncode == 130, said
    assert "what was computed is kept" in said
    assert "Traceback" not in said
    assert list(points.glob("*.json"))
