"""Packages whose version does not name their code."""

from __future__ import annotations

import base64
import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from engines.software import plugin_packages, without_name


def install(
    site: Path, name: str, version: str = "1.0", origin: object = None, plugin: str | None = None
) -> None:
    """Write the files that pip writes for an installed package."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if origin is not None:
        (folder / "direct_url.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))
    if plugin is not None:
        (folder / "entry_points.txt").write_text(f"[weir.test_plugins]\nmine = {plugin}:register\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


ARCHIVE = {"url": "file:///wheels/an_engine.whl", "archive_info": {"hash": "sha256=00"}}


@pytest.mark.parametrize("origin", [None, ARCHIVE, {"url": "https://there", "vcs_info": {"commit_id": "0"}}])
def test_a_package_of_a_registry_or_a_commit_is_named_by_its_version(site: Path, origin: object) -> None:
    install(site, "an-engine", origin=origin)
    assert without_name(["an-engine", "nothing-of-this-name"], ["weir.test_plugins"]) == []


@pytest.mark.parametrize(
    ("version", "origin", "why"),
    [
        ("1.0", {"url": "file:///src", "dir_info": {"editable": True}}, "1.0 was installed from a folder"),
        ("1.0", {"url": "file:///src", "dir_info": {}}, "1.0 was installed from a folder"),
        ("1.0", "{", "1.0 does not say where it was installed from"),
        ("1.1.dev3+gabcdef0.d20261126.cu128", None, "was built from changed sources"),
    ],
)
def test_sources_that_may_change_are_said(site: Path, version: str, origin: object, why: str) -> None:
    install(site, "an-engine", version, origin)
    (said,) = without_name(["an-engine"], [])
    assert said.startswith("an-engine ")
    assert why in said


def test_a_plugin_is_looked_at_like_an_engine(site: Path) -> None:
    """A plugin may register code that the engine runs."""
    folder = {"url": "file:///src", "dir_info": {"editable": True}}
    install(site, "a-plugin", origin=folder, plugin="a_plugin.models")
    assert plugin_packages(["weir.test_plugins"]) == {"a_plugin"}
    (said,) = without_name([], ["weir.test_plugins"])
    assert said.startswith("a-plugin 1.0 was installed from a folder")


@pytest.mark.parametrize("same_length", [False, True])
def test_a_package_whose_files_were_edited_since_is_said(site: Path, same_length: bool) -> None:
    """Some programs edit vLLM so, and its version stays the same."""
    install(site, "an-engine")
    source, content = site / "an_engine.py", b"scale = 1"
    source.write_bytes(content)
    digest = base64.urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
    written = site / "an_engine-1.0.dist-info" / "RECORD"
    written.write_text(
        f"an_engine.py,sha256={digest},{len(content)}\ngone.py,sha256={digest},9\n"
        "an_engine-1.0.dist-info/RECORD,,\n"
    )
    assert without_name(["an-engine"], []) == []
    later_s = written.stat().st_mtime + 9
    os.utime(source, (later_s, later_s))
    assert without_name(["an-engine"], []) == []
    source.write_bytes(b"scale = 2" if same_length else b"scale = 0.5")
    os.utime(source, (later_s, later_s))
    (said,) = without_name(["an-engine"], [])
    assert said == "an_engine.py of an-engine 1.0 has changed since it was installed"
