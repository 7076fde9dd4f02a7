"""All distributions, built as a release is and installed with what they need, on every Python of theirs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.commands import PROGRAMS
from experiments.versions import FOLDERS
from tests.release.distributions import (
    IMPORT_ALL,
    build_from_sdists,
    install,
    missing_files,
    project,
    run,
    wheel,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("releases"), pytest.mark.timeout(1800)]

PYTHONS = ("3.11", "3.12", "3.13")
PACKAGES = {
    "weir": (
        "commands", "controller", "emulator", "engines", "experiments", "hostlib", "kvcodec", "scenario",
        "simulator", "topologies", "weir", "workload", "v1model",
    ),
    "weir-switch": ("v1model",),
    "weir-client": ("hostlib",),
    "weir-codec": ("kvcodec",),
    "weir-engines": ("engines", "hostlib"),
}  # fmt: skip
"""What can be imported after a distribution and its dependencies were installed."""
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
struct none_t { }
parser P(packet_in p, out none_t h, inout none_t m, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control C(inout none_t h, inout none_t m) { apply { } }
control I(inout none_t h, inout none_t m, inout standard_metadata_t sm) { apply { sm.egress_spec = 7; } }
control E(inout none_t h, inout none_t m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in none_t h) { apply { } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def interpreter(version: str) -> str | None:
    """Return a Python of a version: this one, one on PATH, or one of pyenv's."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    for candidate in filter(None, candidates):
        asked = [str(candidate), "-c", "import sys, venv, ssl; print(*sys.version_info[:2], sep='.')"]
        said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        if said.strip() == version:
            return str(candidate)
    return None


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_from_sdists(tmp_path_factory.mktemp("releases"))


def environment(folder: Path, version: str) -> Path:
    """Return the python of an empty environment of a version; skip where there is no such Python."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} on PATH or in pyenv")
    run([found, "-m", "venv", "--without-pip", folder], folder.parent)
    return folder / "bin" / "python"


@pytest.mark.parametrize("name", FOLDERS)
def test_wheels_of_sdists_have_every_file(name: str, dist: Path, tmp_path: Path) -> None:
    missing = missing_files(name, wheel(dist, name), tmp_path)
    if name == "weir-client":  # the rooms of its own; the others are the laboratory's
        rooms = ("client", "engine", "native", "protocol", "transport")
        missing = {path for path in missing if path.split("/")[1] in rooms}
    assert missing == set()


@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize("name", ["weir-client", "weir-codec", "weir-engines", "weir-switch"])
def test_a_part_works_by_itself(name: str, version: str, dist: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "env", version)
    extra = "[conformance]" if name == "weir-engines" else ""  # its command needs it
    install(python, dist, [name + extra], "--prefer-binary")
    assert int(run([python, "-c", IMPORT_ALL, *PACKAGES[name]], tmp_path).stdout) > 5
    commands = sorted(path.name for path in python.parent.glob("weir*"))
    scripts = project(name).get("scripts", {})
    assert set(scripts) <= set(commands)
    for command in scripts:
        assert "usage" in run([python.parent / command, "--help"], tmp_path).stdout.lower()
    if name == "weir-switch":
        (tmp_path / "prog.p4").write_text(PROGRAM)
        assert run([python.parent / "weir-p4c", "prog.p4", "-o", "prog.config"], tmp_path)


@pytest.mark.parametrize("version", PYTHONS)
def test_the_laboratory_works_away_from_a_checkout(version: str, dist: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "env", version)
    install(python, dist, ["weir"], "--prefer-binary")
    weir = python.parent / "weir"
    assert int(run([python, "-c", IMPORT_ALL, *PACKAGES["weir"]], tmp_path).stdout) > 300
    said = run([weir, "--help"], tmp_path).stdout
    assert all(re.search(rf"^  {name} ", said, re.MULTILINE) for name in PROGRAMS)
    assert run([weir, "--version"], tmp_path).stdout == f"weir {project('weir')['version']}\n"
    assert "--pool-blocks" in run([weir, "run", "--help"], tmp_path).stdout
    assert "did you mean policies?" in run([weir, "polices"], tmp_path, fails=True).stderr
    simulated = json.loads(run([weir, "simulate", "--requests=20", "--json"], tmp_path).stdout)
    assert simulated["completed"] == 20
    generated = run([weir, "trace", "generate", "--requests=50"], tmp_path).stdout
    (tmp_path / "made.jsonl").write_text(generated)
    assert "50" in run([weir, "trace", "describe", "made.jsonl"], tmp_path).stdout
    program = (
        "from emulator.result import PROGRAM; from v1model.compile import compile_p4; compile_p4(PROGRAM)"
    )
    run([python, "-c", program], tmp_path)
    for command in ("run", "incast"):  # no Mininet in this environment, and perhaps no root
        said = run([weir, command], tmp_path, fails=True).stderr
        assert said.startswith("error: ")
        assert re.search("root|Mininet|missing", said), said
        assert "Traceback" not in said
