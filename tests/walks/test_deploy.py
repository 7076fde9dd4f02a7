"""docs/deploy.md, done as it is written: a pool of plain programs in network namespaces."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.walks.deployment import remove
from tests.walks.pages import ROOT, clone, follow

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A copy of the repository; what the page started and a failure left is ended."""
    copy = clone(tmp_path / "weir")
    yield copy
    remove(copy)


def test_a_pool_is_deployed_as_the_page_says(folder: Path) -> None:
    follow(ROOT / "docs" / "deploy.md", folder)
