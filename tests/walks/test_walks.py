"""The walks of docs/walks, done as they are written (tests.walks.pages)."""

import os
from pathlib import Path

import pytest

from tests.walks.pages import MOST_S, ROOT, clone, follow

NEED_ENGINES = ("vllm",)
"""Walks that tests/engines/live does."""
WALKS = [walk for walk in sorted((ROOT / "docs" / "walks").glob("*.md")) if walk.stem not in NEED_ENGINES]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.timeout(2 * MOST_S),
]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.stem)
def test_a_walk_goes_as_it_says(walk: Path, tmp_path: Path) -> None:
    follow(walk, clone(tmp_path / "weir"))


def test_there_are_four_walks_without_an_engine() -> None:
    assert [walk.stem for walk in WALKS] == ["incast", "p4", "policy", "scenario"]
