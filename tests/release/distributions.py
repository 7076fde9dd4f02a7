"""The project's distributions: built of a copy of their sources, and installed where nothing else is."""

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
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from commands.command import OPTIONAL_PACKAGES
from emulator.result import ROOT
from experiments.versions import FOLDERS

BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
FOREIGN = (
    "mininet",
    "vllm",
    "torch",
    "transformers",
    "lmcache",
    "sglang",
    "mooncake",
    "safetensors",
    "msgspec",
)
"""Packages that no wheel can ask for: Debian's Mininet, and the inference engines' own."""
LABORATORYS = ("hostlib.storage",)
"""What the engines' package imports to test the pool's own connector, which takes the laboratory."""
IMPORT_ALL = f"""
import importlib, pkgutil, sys
absent = {(*FOREIGN, *LABORATORYS, *OPTIONAL_PACKAGES)!r}
count = 0
for top in sys.argv[1:]:
    package = importlib.import_module(top)
    for found in pkgutil.walk_packages(package.__path__, top + "."):
        try:
            importlib.import_module(found.name)
            count += 1
        except ModuleNotFoundError as error:
            if error.name not in absent and error.name.partition(".")[0] not in absent:
                raise
print(count)
"""
"""Imports all modules of packages, but for those that need what is absent. Prints how many."""


def project(name: str) -> dict[str, Any]:
    """Return the table [project] of a distribution."""
    table: dict[str, Any] = tomllib.loads((ROOT / FOLDERS[name] / "pyproject.toml").read_text())["project"]
    return table


def sources(name: str, into: Path) -> Path:
    """Return a folder with a copy of what a distribution is built of: no builds, as in a fresh clone."""
    folder = into / name
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=ROOT / FOLDERS[name], capture_output=True, text=True, check=True,
    )  # fmt: skip
    for line in listed.stdout.splitlines():
        path = ROOT / FOLDERS[name] / line
        if path.exists() and not line.startswith(("tests/", "docs/")):
            (folder / line).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, folder / line, follow_symlinks=False)
    return folder


def run(
    command: Sequence[str | Path], cwd: Path, fails: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program outside of the checkout, without what the environment says of Weir or Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WEIR_"))}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False, timeout=500,
        env={**kept, **environment},
    )  # fmt: skip
    assert (done.returncode != 0) == fails, f"{command}: {done.stdout}{done.stderr}"
    return done


def build_wheels(into: Path, names: Iterable[str]) -> Path:
    """Return a folder with the wheels of distributions, made of their sources by this Python."""
    dist = into / "dist"
    dist.mkdir()
    folders = [sources(name, into / "sources") for name in names]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda folder: run([sys.executable, "-c", BUILD, dist], folder), folders))
    return dist


def build_from_sdists(into: Path) -> Path:
    """Return a folder with sdists of all distributions, and the wheels that are made of these."""
    dist = into / "dist"
    for name in FOLDERS:
        folder = sources(name, into / "sources")
        run([sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, folder], into)
    return dist


def wheel(dist: Path, name: str) -> Path:
    """Return the wheel of a distribution."""
    (found,) = dist.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
    return found


def empty_environment(folder: Path, needs: Iterable[str] = ()) -> Path:
    """Return the python of a new virtual environment, without pip, with links to what packages need.

    `needs` names distributions whose dependencies, taken from this environment, are there.
    """
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in _closure([text for one in needs for text in _required(one)]):
        files = importlib.metadata.files(name) or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            origin = Path(str(importlib.metadata.distribution(name).locate_file(top)))
            if not (site / top).exists():
                (site / top).symlink_to(origin)
    return folder / "bin" / "python"


def _required(name: str) -> list[str]:
    return [text for text in project(name)["dependencies"] if not text.startswith("weir")]


def _closure(requirements: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        one = waiting.pop()
        name = re.sub("[-_.]+", "-", one.name).lower()
        if name not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
            found.add(name)
            waiting += map(Requirement, importlib.metadata.requires(name) or [])
    return found


def install(python: Path, dist: Path, names: Sequence[str], *options: str) -> None:
    """Install wheels of the folder; without `options` nothing else, as what they need is there.

    A name may have extras behind it, as in "weir-engines[conformance]".
    """
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "-q",
        "--disable-pip-version-check",
    ]
    how = options or ("--no-index", "--no-compile", "--no-deps")
    wheels = [f"{wheel(dist, name.partition('[')[0])}{''.join(name.partition('[')[1:])}" for name in names]
    run([*pip, *how, "--find-links", str(dist), *wheels], dist)


READ_SUFFIXES = {".py", ".pyi", ".c", ".h", ".p4", ".proto", ".toml", ".tsv", ".json", ".js", ".css"}


def missing_files(name: str, made: Path, scratch: Path) -> set[str]:
    """Return what programs import or read of a distribution's packages and its wheel has not."""
    folder = sources(name, scratch)
    packages = {path.parent for path in folder.rglob("__init__.py")} - {folder / "v1model"}
    inside = Path() if name == "weir" else Path(FOLDERS[name])
    tops = [path for path in folder.iterdir() if path in packages] if name == "weir" else [folder]
    wanted = {
        str(inside / path.relative_to(folder))
        for top in tops
        for path in top.rglob("*")
        if path.suffix in READ_SUFFIXES and path.name != "pyproject.toml" and path.is_file()
    }
    with zipfile.ZipFile(made) as archive:
        return wanted - set(archive.namelist())
