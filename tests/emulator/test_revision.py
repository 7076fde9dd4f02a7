"""What a result says of the revision that it was made with."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from emulator import result
from emulator.result import revision, version


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, which is where the program thinks that it lies."""
    folder = tmp_path / "weir"
    folder.mkdir()
    (folder / "file").write_text("1")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    monkeypatch.setattr(result, "ROOT", folder)
    return folder


def test_it_is_the_commit_and_whether_it_was_changed(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "--short=12", "HEAD")
    assert revision() == commit
    (checkout / "file").write_text("2")
    assert revision() == f"{commit}+"


def test_without_git_it_is_unknown(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert revision() == "unknown"


def test_of_what_is_installed_it_is_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result, "ROOT", tmp_path / "site-packages")
    assert revision() == version()


def test_a_tarball_inside_another_repository_has_not_that_one_s_revision(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = checkout / "weir-1.0"
    unpacked.mkdir()
    monkeypatch.setattr(result, "ROOT", unpacked)
    assert revision() == "unknown"
    shutil.rmtree(checkout / ".git")
    assert revision() == "unknown"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a checkout away, which needs root")
def test_root_in_a_user_s_checkout_has_its_revision(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with sudo or in a container: git refuses what belongs to others, unless it is told."""
    for path in (checkout, *checkout.rglob("*")):
        os.chown(path, 65534, 65534)
    monkeypatch.setenv("HOME", str(checkout.parent))
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert revision() == git(checkout, "-c", f"safe.directory={checkout}", "rev-parse", "--short=12", "HEAD")
