"""docs/deploy.md, done as it is written: a pool of plain programs in network namespaces."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.walks.pages import ROOT, clone, follow

NAMESPACES = ("weir-node1", "weir-node2", "weir-store1", "weir-switch")

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.xdist_group("end-to-end"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A copy of the repository; what the page started and a failure left is ended."""
    copy = clone(tmp_path / "weir")
    yield copy
    with suppress(OSError, ValueError, ProcessLookupError):
        os.kill(int((copy / "deploy" / "controller.pid").read_text()), signal.SIGKILL)
    for name in NAMESPACES:
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
        for pid in pids.stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def test_a_pool_is_deployed_as_the_page_says(folder: Path) -> None:
    follow(ROOT / "docs" / "deploy.md", folder)
