"""The command: its results, its errors, and that nothing is left of it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from experiments.bench.switch.__main__ import main
from tests.experiments.conftest import Done
from tests.experiments.summaries import assert_described

COMMAND = (sys.executable, "-m", "experiments.bench.switch")
TWO_CPUS = len(os.sched_getaffinity(0)) >= 2
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not TWO_CPUS, reason="the benchmark needs root and two CPUs"
)


def environment(**changed: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    # Other tests run at the same time: they must have their share of the CPU.
    return {**kept, "WEIR_PRECEDENCE": "no", **{f"WEIR_{name}": value for name, value in changed.items()}}


def test_a_bad_option_is_one_line(play: Callable[..., Done]) -> None:
    done = play(main, "--engines", "tofino")
    assert done.returncode == 2
    assert done.stderr.strip() == "error: ENGINES: there is no 'tofino': choose one of echo, embedded, bmv2"
    assert not done.stdout


def is_load_generator(process: psutil.Process) -> bool:
    try:
        return process.name().endswith("-load")
    except psutil.NoSuchProcess:  # compilers and the like come and go
        return False


@pytest.mark.slow
@needs_root
@pytest.mark.root
def test_a_short_run_writes_its_summary(tmp_path: Path) -> None:
    given = environment(ENGINES="echo", WORKLOADS="hits", ROUNDS="1", SECONDS="0.05", RESULTS=str(tmp_path))
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False, env=given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_described("bench switch", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    hits = summary["workloads"]["hits"]["echo"]
    assert hits["lossless_per_s"]["median"] > 0
    assert len(hits["rounds"]) == summary["rounds"] == 1
    assert summary["generator_sink_per_s"] > 0
    assert "GET hits" in done.stdout


@pytest.mark.slow
@needs_root
@pytest.mark.root
def test_an_interrupted_run_leaves_no_process(tmp_path: Path) -> None:
    given = environment(ENGINES="echo", WORKLOADS="hits", SECONDS="10", RESULTS=str(tmp_path))
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, env=given) as bench:
        started: list[psutil.Process] = []
        while not any(is_load_generator(child) for child in started):
            assert bench.poll() is None
            started = psutil.Process(bench.pid).children(recursive=True)
        bench.send_signal(signal.SIGINT)
        said, _ = bench.communicate(timeout=60)
    assert bench.returncode == 130
    assert "interrupted" in said
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive
