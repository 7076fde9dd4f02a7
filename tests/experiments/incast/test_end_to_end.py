"""The whole experiment, small: two leaves and a spine, so that requests and pushes pass several switches."""

import json
import os
import socket
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from experiments.incast.__main__ import main
from tests.experiments.summaries import assert_described

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

SMALL = (
    *("--topo", "leafspine", "--leaves", "2", "--spines", "1"),
    *("--nodes", "2", "--patterns", "same", "--blocks", "4", "--modes", "none,push"),
)
FILES = {"summary.json", "table.md", "block_p99.svg", "storage_bytes.svg", "log.jsonl", "report.html"}


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port: int = tried.getsockname()[1]
        return port


def scrape(url: str, seen: set[str], over: Event) -> None:
    """Names of the metrics that are there at any time until it is over."""
    while not over.wait(0.3):
        with suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:
            seen |= {line.split("{")[0] for line in answer.read().decode().splitlines() if "{" in line}


@pytest.mark.slow
def test_points_are_measured_on_several_switches(tmp_path: Path) -> None:
    port = free_port()
    seen: set[str] = set()
    over = Event()
    scraping = Thread(target=scrape, args=(f"http://127.0.0.1:{port}/metrics", seen, over))
    scraping.start()
    try:
        done = subprocess.run(
            [
                sys.executable, "-m", "experiments.incast", *SMALL, "--results", str(tmp_path),
                "--metrics", str(port),
            ],
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
    finally:
        over.set()
        scraping.join()
    assert done.returncode == 0, done.stdout + done.stderr
    for metric in ("client_blocks_fetched", "store_messages", "switch_packets", "controller_digests"):
        assert f"weir_{metric}_total" in seen
    assert_described("incast", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    none, push = summary["points"]
    assert (summary["switches"], none["mode"], push["mode"]) == (3, "none", "push")
    assert none["copies"] >= 1.9
    assert push["copies"] < none["copies"]
    assert push["control"]["subscriptions"] > 0
    for point in (none, push):
        assert (point["errors"], point["corrupt"]) == ({}, 0)
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_bad_options_are_refused_before_anything_is_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nodes", "1,64"]) == 2
    assert "a star has 63 ports at most" in capsys.readouterr().err
