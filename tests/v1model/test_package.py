"""The switch's own distribution: built, installed where nothing else of the project is, and used."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "v1model"
# grpcio needs typing_extensions; the three are taken from this environment, so that no registry is needed.
DEPENDENCIES = ("grpcio", "protobuf", "typing-extensions")
LABORATORY = ("dask", "matplotlib", "libcachesim", "scapy", "numpy", "controller", "hostlib", "experiments")
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
USE = f"""
import importlib.util
from v1model.compile import compile_p4
from v1model.p4runtime.server import P4RuntimeServer
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.switch import Switch

with Switch(compile_p4("prog.p4")) as switch:
    (output,) = switch.inject(1, b"a packet")
assert (output.port, output.data) == (7, b"a packet")
server = P4RuntimeServer("127.0.0.1:0", 0, EmbeddedEngine({{}}, 510))
server.start()
server.stop()
found = [name for name in {LABORATORY!r} if importlib.util.find_spec(name)]
assert not found, found
"""


def run(command: Sequence[str | Path], cwd: Path, **environment: str) -> str:
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **environment},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist of a copy of the folder, and the wheel that is made of that sdist."""
    directory = tmp_path_factory.mktemp("build")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    shutil.copytree(PACKAGE, directory / "source", ignore=ignored)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory / "dist")]
    run([*build, str(directory / "source")], directory)
    (sdist,) = (directory / "dist").glob("weir_switch-*.tar.gz")
    (wheel,) = (directory / "dist").glob("weir_switch-*.whl")
    return {"sdist": sdist, "wheel": wheel}


def environment(directory: Path) -> Path:
    """An environment with the switch's dependencies and nothing else; its python."""
    venv.create(directory)
    (site,) = directory.glob("lib/python*/site-packages")
    for name in DEPENDENCIES:
        for file in importlib.metadata.files(name) or []:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), site / file)
    return directory / "bin" / "python"


@pytest.mark.slow
@pytest.mark.timeout(600)  # seconds on an idle machine
def test_it_works_where_nothing_else_is_installed(built: dict[str, Path], tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index"]
    run(
        [*install, "--disable-pip-version-check", str(built["wheel"])], tmp_path
    )  # pip finds what it needs there
    (tmp_path / "prog.p4").write_text(PROGRAM)
    run([python, "-c", USE], tmp_path)
    for program in ("weir-switch", "weir-p4c", "weir-cli", "weir-playground"):
        assert "usage" in run([python.parent / program, "--help"], tmp_path).lower()


def test_the_wheel_has_all_that_is_needed_and_asks_for_little(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        names = set(wheel.namelist())
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        lines = wheel.read(metadata).decode().splitlines()
    required = {line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist")}
    assert {re.split("[^a-z-]", requirement)[0] for requirement in required} == {"grpcio", "protobuf"}
    suffixes = {".py", ".pyi", ".c", ".h", ".p4", ".proto"}
    wanted = {
        str(Path("v1model") / path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*")
        if path.suffix in suffixes and not {"build", "__pycache__"} & set(path.relative_to(PACKAGE).parts)
    }
    assert wanted <= names
    assert "v1model/protos/LICENSE" in names


def test_its_list_of_packages_is_complete() -> None:
    listed = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = [path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")]
    assert set(listed) == {
        ".".join(("v1model", *folder.parts)) for folder in folders if "build" not in folder.parts
    }


def test_without_a_c_compiler_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "prog.p4").write_text(PROGRAM)
    result = subprocess.run(
        [sys.executable, "-m", "v1model", "compile", "prog.p4"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={
            **os.environ,
            "PATH": "",
            "PYTHONPATH": str(PACKAGE.parent),
            "WEIR_CACHE": str(tmp_path / "cache"),
        },
    )
    assert result.returncode == 1
    assert "no C compiler" in result.stderr
    assert "install gcc" in result.stderr
