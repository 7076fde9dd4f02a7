"""Generated code and the runtime must compile without a warning; a cache for a test's own programs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from v1model.backend import RuntimeBuild

os.environ.setdefault("WEIR_WERROR", "1")


@pytest.fixture(scope="session")
def runtime() -> Path:
    """The cache entry of the runtime, which takes seconds to build, in the usual cache."""
    (entry,) = {made.parent for made in RuntimeBuild().objects()}
    return entry


@pytest.fixture
def cache(runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that has the runtime and no program."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    shutil.copytree(runtime, tmp_path / "cache" / runtime.name)
    return tmp_path / "cache"
