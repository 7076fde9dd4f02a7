"""What of a checkout is copied to servers, with git and without."""

import subprocess
from pathlib import Path

from cluster.checkout import files_of

FILES = ("Makefile", "p4/weir.p4", "tests/test_a.py")
MADE = ("build/core.so", "results/run/summary.json", ".venv/bin/python", "tests/__pycache__/test_a.pyc")


def make_checkout(folder: Path) -> None:
    for name in (*FILES, *MADE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")
    (folder / "weir").mkdir()
    (folder / "weir" / "p4").symlink_to("../p4")


def test_without_git_all_is_copied_but_what_is_made(tmp_path: Path) -> None:
    make_checkout(tmp_path)
    assert files_of(tmp_path) == (*FILES, "weir/p4")


def test_with_git_new_files_are_copied_and_ignored_ones_are_not(tmp_path: Path) -> None:
    make_checkout(tmp_path)
    (tmp_path / ".gitignore").write_text("build/\nresults/\n.venv/\n__pycache__/\nnotes.txt\n")
    (tmp_path / "notes.txt").write_text("mine\n")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "Makefile", "weir"], check=True)
    assert files_of(tmp_path) == (".gitignore", *FILES, "weir/p4")


def test_a_file_that_git_knows_and_that_was_removed_is_left_out(tmp_path: Path) -> None:
    make_checkout(tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", *FILES, "weir"], check=True)
    (tmp_path / "Makefile").unlink()
    assert "Makefile" not in files_of(tmp_path)
