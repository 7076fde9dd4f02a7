"""Compiled programs share one cache for the whole test session."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from v1model.backend import RuntimeBuild, build
from v1model.ir import Program
from v1model.switch import Switch


@pytest.fixture(scope="session")
def runtime() -> Path:
    """The cache entry of the runtime, which takes seconds to build, in the usual cache."""
    (entry,) = {made.parent for made in RuntimeBuild().objects()}
    return entry


@pytest.fixture
def cache(runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that has the runtime and no program."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    shutil.copytree(runtime, tmp_path / "cache" / runtime.name)
    return tmp_path / "cache"


@pytest.fixture
def load() -> Iterator[Callable[[Program], Switch]]:
    """load(program): a switch that runs it, closed after the test."""
    switches: list[Switch] = []

    def load_program(program: Program) -> Switch:
        switches.append(Switch(build(program)))
        return switches[-1]

    yield load_program
    for switch in switches:
        switch.close()
