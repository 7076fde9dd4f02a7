"""The hosts' core in Python and compiled: the tests that use `either_core` are played with each."""

from __future__ import annotations

import pytest

from hostlib import native
from hostlib.native.build import BuildError, build


@pytest.fixture(scope="session")
def compiled() -> native.CompiledCore:
    try:
        return native.load(build())
    except BuildError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["python", "compiled"])
def either_core(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> native.Core:
    core: native.Core = native.PYTHON if request.param == "python" else request.getfixturevalue("compiled")
    monkeypatch.setattr(native, "core", lambda: core)
    return core
