"""What a crashed network left is ended; what still runs is left alone."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from topologies import run_records


@pytest.fixture
def run_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_records, "RUN_DIRECTORY", tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def left_behind(run_directory: Path, work: Path, owner: str, pid: int, started: str) -> Path:
    work.mkdir()
    record = run_directory / "1" / work.name
    record.parent.mkdir(parents=True)
    record.write_text(f"directory {work}\n{owner}\n{pid} {started}\n")
    return record


def test_processes_and_files_of_a_dead_owner_are_removed(
    run_directory: Path, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    record = left_behind(
        run_directory, tmp_path / "work", "1 0", sleeper.pid, run_records.start_time(sleeper.pid)
    )
    assert run_records.clean(run_directory) == 1
    assert not psutil.pid_exists(sleeper.pid)
    assert not record.exists()
    assert not (tmp_path / "work").exists()


def test_a_process_that_got_the_pid_later_is_spared(
    run_directory: Path, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    left_behind(run_directory, tmp_path / "work", "1 0", sleeper.pid, "12")
    assert run_records.clean(run_directory) == 1
    assert sleeper.poll() is None


def test_a_running_network_is_left_alone(
    run_directory: Path, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    with run_records.RunRecord(tmp_path) as mine:
        mine.add_process(sleeper.pid)
        assert run_records.clean(run_directory) == 0
        assert sleeper.poll() is None
        assert run_records.running(run_directory) == [tmp_path]
        assert str(os.getpid()) in str(mine.path)
    assert run_records.running(run_directory) == []


def test_networks_that_go_while_we_look_are_passed_over(
    run_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Networks come and go beside us: their directory may vanish between listing it and reading it."""
    gone = run_directory / "7" / "gone"
    gone.parent.mkdir(parents=True)
    (run_directory / "8").mkdir()
    gone.write_text("")
    iterdir = Path.iterdir

    def vanishing(path: Path) -> Iterator[Path]:
        if path == run_directory / "8":
            path.rmdir()
        found = list(iterdir(path))
        gone.unlink(missing_ok=True)
        return iter(found)

    monkeypatch.setattr(Path, "iterdir", vanishing)
    assert run_records.clean(run_directory) == 0
    assert run_records.running(run_directory) == []


def test_a_record_that_is_just_being_written_is_passed_over(run_directory: Path) -> None:
    record = run_directory / "7" / "new"
    record.parent.mkdir(parents=True)
    record.write_text("directory /tmp/new\n")
    assert run_records.clean(run_directory) == 0
    assert record.exists()
