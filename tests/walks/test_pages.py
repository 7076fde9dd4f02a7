"""A walk's copy of the repository has what git has, and the project's environment."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.walks import pages


def test_environments_that_are_links_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment, tree = tmp_path / "environment", tmp_path / "tree"
    environment.mkdir()
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    shutil.copyfile(pages.ROOT / ".gitignore", tree / ".gitignore")
    for name in (".venv", ".venv-blocks", ".venv-engines"):
        (tree / name).symlink_to(environment)
    monkeypatch.setattr(pages, "ROOT", tree)
    copy = pages.clone(tmp_path / "copy")
    assert {path.name for path in copy.iterdir()} == {".git", ".gitignore", ".venv"}
