"""docs/walks/vllm.md, done as it is written, on a pool that docs/deploy.md has started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="make test-engines")

from tests.walks.deployment import remove
from tests.walks.pages import ROOT, clone, do, follow, parts_of

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.timeout(900),
]
STARTING = ("1. The network", "2. The switch", "3. The storage node", "4. The controller")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A copy of the repository in which the deployment page's first steps were done."""
    copy = clone(tmp_path / "weir")
    (copy / ".venv-engines").symlink_to(ROOT / ".venv-engines")
    try:
        parts = parts_of(ROOT / "docs" / "deploy.md")
        for part in STARTING:
            do(parts[part], copy)
        yield copy
    finally:
        remove(copy)


def test_two_engines_share_a_prompt_as_the_walk_says(folder: Path) -> None:
    follow(ROOT / "docs" / "walks" / "vllm.md", folder)
