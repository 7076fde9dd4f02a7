"""Settings that name something on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.paths import is_path


def test_files_folders_and_links_are_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scales.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    monkeypatch.chdir(tmp_path)
    for value in (tmp_path, tmp_path / "link", str(tmp_path), "scales.json", "./scales.json"):
        assert is_path(value)


@pytest.mark.parametrize(
    "value", [None, 3, "", ".", "/", "auto", "0.32.0", "a/model", "a\0/b", "x/" * 5000, ["/etc"], Path("a/b")]
)
def test_other_values_are_none(value: object) -> None:
    assert not is_path(value)
