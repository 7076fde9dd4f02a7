"""Results are tried before the work, and belong to whom the checkout belongs afterwards."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from commands.errors import ExperimentError
from commands.results_folder import give_builds, results_folder

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, or mounts, which needs root")
NOBODY = 65534


def test_a_folder_is_made_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    with results_folder(tmp_path / "results" / "run"):
        assert list((tmp_path / "results" / "run").iterdir()) == []


def test_a_file_in_the_place_of_the_folder_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(
        ExperimentError, match=r"results can't be written to .*choose another folder with RESULTS"
    ):
        results_folder(tmp_path / "results").__enter__()


@needs_root
def test_a_read_only_tree_is_said_so_before_the_work(tmp_path: Path) -> None:
    """Found by what a mount refuses: root may write wherever permissions alone forbid it."""
    code = (
        "from pathlib import Path; from commands.results_folder import check_writable\n"
        f"check_writable(Path('{tmp_path}/tree/results'))"
    )
    (tmp_path / "tree").mkdir()
    script = f'mount -t tmpfs -o ro weir {tmp_path}/tree && exec {sys.executable} -c "$1"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", code],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "results can't be written to" in done.stderr
    assert "Read-only file system" in done.stderr


@needs_root
def test_what_root_writes_in_a_user_s_checkout_is_the_user_s(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    folder = tmp_path / "results" / "run"
    with suppress(KeyboardInterrupt), results_folder(folder):
        (folder / "traces").mkdir()
        (folder / "traces" / "one.json").write_text("{}")
        raise KeyboardInterrupt
    assert {path.stat().st_uid for path in tmp_path.rglob("*")} == {NOBODY}


@needs_root
def test_bytecode_and_builds_of_root_in_a_user_s_checkout_are_the_user_s(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    made = (tmp_path / "hostlib" / "model" / "__pycache__" / "gate.pyc", tmp_path / "build" / "setup.lock")
    for path in made:
        path.parent.mkdir(parents=True)
        path.write_text("")
    give_builds(tmp_path)
    assert all({one.stat().st_uid, one.parent.stat().st_uid} == {NOBODY} for one in made)


@needs_root
def test_what_root_writes_elsewhere_stays_root_s(tmp_path: Path) -> None:
    with results_folder(tmp_path / "results"):
        (tmp_path / "results" / "one.json").write_text("{}")
    assert (tmp_path / "results" / "one.json").stat().st_uid == 0


@needs_root
def test_results_of_another_user_are_found_before_the_work() -> None:
    """Root ran it once; the user's own run would end with a refusal after the whole replay."""
    with tempfile.TemporaryDirectory() as made:  # pytest's own folders are closed to other users
        results = Path(made)
        results.chmod(0o777)
        (results / "summary.json").write_text("{}")
        code = (
            "import os; from pathlib import Path; from commands.results_folder import check_writable\n"
            f"os.setuid({NOBODY})\n"
            f"check_writable(Path('{made}'))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert "belongs to another user" in done.stderr
