"""Watching a network in a terminal of 80 and of 120 columns, and not watching it. Needs root."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.experiments.live.pseudo_terminal import run_in_terminal

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
RUN = (
    sys.executable, "-m", "experiments.run", "--live", "1", "--modes", "pool", "--requests", "30",
    "--hosts", "2", "--stores", "1", "--speed", "3", "--scale", "10000",
)  # fmt: skip
INCAST = (
    sys.executable, "-m", "experiments.incast", "--live", "1", "--modes", "both", "--patterns", "same",
    "--nodes", "2", "--blocks", "8",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("command", "columns"), [(INCAST, 80), (RUN, 120)])
def test_links_tiers_pool_and_decisions_are_seen_while_it_runs(
    command: tuple[str, ...], columns: int, tmp_path: Path
) -> None:
    code, frames = run_in_terminal((*command, "--results", str(tmp_path)), columns, 40)
    assert code in (0, 1), frames[-1]
    live = [frame for frame in frames if "Links of" in frame]
    assert len(live) > 1
    seen = live[-1]
    for what in ("├ node1", "├ store1", "Switch", "occupied", "merged", "Policy:", "+ s1 "):
        assert what in seen
    # Nodes say once a second where blocks came from; in a short play that is rarely in the last picture.
    assert any("Blocks came from" in frame for frame in live) == (command is RUN)
    body = seen.split("Links of")[1].splitlines()
    assert max(len(line) for line in body if line.startswith(("│", "╰", "╭"))) == columns


@pytest.mark.slow
def test_without_a_terminal_nothing_changes(tmp_path: Path) -> None:
    done = subprocess.run(
        (*INCAST, "--results", str(tmp_path)), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    assert "Links of" not in done.stdout
    assert "\x1b" not in done.stdout
