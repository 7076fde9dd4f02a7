"""Digests of files, and the folder that keeps them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from engines import digests
from engines.digests import FileState, cache_folder, digest_of
from hostlib.protocol.errors import KeySpaceError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "weir" / "digests"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is older than what may change unnoticed."""
    monkeypatch.setattr(digests, "SETTLED_S", 0.0)
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"weights")
    return path


def digest(path: Path) -> str:
    return digest_of(path, FileState.of(path))


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    reads: list[int] = []
    read = digests._hash_chunk

    def counted(descriptor: int, start: int) -> bytes:
        reads.append(start)
        return read(descriptor, start)

    monkeypatch.setattr(digests, "_hash_chunk", counted)
    return reads


def test_a_file_is_read_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = count_reads(monkeypatch)
    assert digest(file) == digest(file)
    assert reads == [0]


def test_a_file_whose_time_of_modification_was_set_back_is_read_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same size, inode and mtime, as a copy that keeps times leaves it."""
    reads = count_reads(monkeypatch)
    before, times = digest(file), file.stat()
    time.sleep(0.02)
    file.write_bytes(b"WEIGHTS")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert file.stat().st_mtime_ns == times.st_mtime_ns
    assert digest(file) != before
    assert reads == [0, 0]


def test_a_file_that_has_just_changed_is_not_remembered(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It might change again within the same tick of the file system's clock."""
    monkeypatch.setattr(digests, "SETTLED_S", 3600.0)
    reads = count_reads(monkeypatch)
    assert digest(file) == digest(file)
    assert reads == [0, 0]


def test_a_file_in_another_state_than_was_seen_is_refused(file: Path) -> None:
    seen = FileState.of(file)
    file.write_bytes(b"longer weights")
    with pytest.raises(KeySpaceError, match="changes while it is read"):
        digest_of(file, seen)


def test_the_folder_is_the_users_alone(cache: Path, file: Path) -> None:
    digest(file)
    assert cache.stat().st_mode & 0o777 == 0o700
    (kept,) = cache.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_can_write_to_is_not_believed(cache: Path, file: Path) -> None:
    right = digest(file)
    (kept,) = cache.iterdir()
    state, _ = json.loads(kept.read_text())
    kept.write_text(json.dumps([state, "0" * 64]))
    assert digest(file) == "0" * 64  # so is what is kept there, if it is the user's own
    cache.chmod(0o777)
    assert cache_folder() is None
    assert digest(file) == right
    cache.chmod(0o700)
    kept.chmod(0o666)
    assert digest(file) == right


@pytest.mark.parametrize(
    "content", ["", "[", "[1]", '["other state", "' + "0" * 64 + '"]', '["s", 5]', "[" * 9000]
)
def test_what_is_kept_in_another_form_is_read_anew(cache: Path, file: Path, content: str) -> None:
    right = digest(file)
    (kept,) = cache.iterdir()
    kept.write_text(content)
    assert digest(file) == right


def test_a_link_in_the_folder_is_not_followed(cache: Path, file: Path, tmp_path: Path) -> None:
    right = digest(file)
    (kept,) = cache.iterdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(json.dumps([json.loads(kept.read_text())[0], "0" * 64]))
    kept.unlink()
    kept.symlink_to(elsewhere)
    assert digest(file) == right


def test_the_folder_does_not_grow_without_end(
    cache: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "MAX_KEPT", 10)
    for number in range(30):
        path = tmp_path / f"{number}.bin"
        path.write_bytes(b"weights %d" % number)
        digest(path)
    assert len(list(cache.iterdir())) <= 10


def test_without_a_place_for_digests_files_are_read_each_time(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = digest(file)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert digest(file) == right
