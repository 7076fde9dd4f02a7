"""The wheels of client and laboratory, used away from the checkout; test_releases.py has all of them."""

from __future__ import annotations

import re
import zipfile
from datetime import date
from pathlib import Path

import pytest

from emulator.result import ROOT
from experiments.commands import PROGRAMS
from experiments.versions import FOLDERS
from tests.release.distributions import (
    IMPORT_ALL,
    build_wheels,
    empty_environment,
    install,
    missing_files,
    project,
    run,
    wheel,
)

pytestmark = pytest.mark.xdist_group("wheels")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheels(tmp_path_factory.mktemp("wheels"), ["weir", "weir-client"])


def test_the_client_by_itself_imports_and_has_its_command(dist: Path, tmp_path: Path) -> None:
    python = empty_environment(tmp_path / "env")
    install(python, dist, ["weir-client"])
    assert int(run([python, "-c", IMPORT_ALL, "hostlib"], tmp_path).stdout) > 50
    weir = python.parent / "weir"
    assert "weir pool" in run([weir, "--help"], tmp_path).stdout
    assert "there is no command 'run' here" in run([weir, "run"], tmp_path, fails=True).stderr


def test_beside_the_client_the_laboratory_has_all_commands(dist: Path, tmp_path: Path) -> None:
    """Both install one program: all commands are there, whichever comes last."""
    python = empty_environment(tmp_path / "env", ["weir"])
    install(python, dist, ["weir", "weir-client"])
    weir = python.parent / "weir"
    said = run([weir, "--help"], tmp_path).stdout
    assert all(re.search(rf"^  {name} ", said, re.MULTILINE) for name in PROGRAMS)
    said = run([weir, "mutate"], tmp_path, fails=True).stderr
    assert said == "weir: mutate works in a checkout of Weir's repository alone: make mutate\n"


def test_the_laboratorys_wheel_has_every_file_that_programs_read(dist: Path, tmp_path: Path) -> None:
    assert missing_files("weir", wheel(dist, "weir"), tmp_path) == set()
    with zipfile.ZipFile(wheel(dist, "weir")) as made:
        assert made.read("weir/p4/weir.p4") == (ROOT / "p4" / "weir.p4").read_bytes()
        assert not [name for name in made.namelist() if name.startswith(("tests/", "v1model/"))]


def test_all_have_one_version() -> None:
    version = project("weir")["version"]
    assert {project(name)["version"] for name in FOLDERS} == {version}
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {version} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE)
    released = date.fromisoformat(changes.split(f"## {version} (")[1][:10])
    assert f"date-released: {released}\n" in (ROOT / "CITATION.cff").read_text()


def test_a_version_of_the_changelog_is_short_and_has_a_line_a_change() -> None:
    for version in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]:
        lines = version.splitlines()
        assert len(lines) <= 150, lines[0]
        changes = [line for line in lines if line.startswith("- ")]
        assert max(map(len, changes), default=0) <= 140, lines[0]
