"""Code of a program, or of another package, in the place of an engine's own."""

from __future__ import annotations

import functools
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engines import replaced
from engines.replaced import replaced_functions

SOURCE = """
class Layer:
    def forward(self): ...
    @property
    def scale(self): ...
    @classmethod
    def make(cls): ...

def rotate(): ...
"""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, ModuleType]:
    """Return an engine, and a package of another project, which are installed."""
    made = {}
    for name in ("an_engine", "another_package"):
        folder = tmp_path / "site-packages"
        folder.mkdir(exist_ok=True)
        module = made[name] = ModuleType(name)
        module.__file__ = str(folder / f"{name}.py")
        monkeypatch.setitem(sys.modules, name, module)
        exec(SOURCE, vars(module))
    return made


def mine(_: Any) -> None: ...


class Mine: ...


def found() -> list[tuple[str, str]]:
    return list(replaced_functions(["an_engine", "an_engine.of_a_gpu"], lambda module: module == "an_engine"))


def test_an_engine_as_it_was_installed_has_none(
    engine: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = engine["an_engine"], engine["another_package"]
    monkeypatch.setitem(sys.modules, "an_engine.of_a_gpu", None)  # as of what can not be imported
    own.imported, own.Imported, own.path = other.rotate, other.Layer, Path  # type: ignore[attr-defined]
    assert found() == []


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("rotate", mine), ("Layer", Mine), ("Layer.forward", mine), ("Layer.scale", property(mine)),
        ("Layer.make", classmethod(mine)),
    ],
)  # fmt: skip
def test_code_of_a_program_is_found(
    engine: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, place: str, code: Any
) -> None:
    monkeypatch.setattr(f"an_engine.{place}", code)
    assert found() == [(f"an_engine.{place}", __name__)]


def test_a_wrapper_counts_as_what_it_is(engine: dict[str, ModuleType]) -> None:
    plain = engine["an_engine"].rotate

    @functools.wraps(plain)
    def wrapper() -> None: ...

    engine["an_engine"].rotate = wrapper  # type: ignore[attr-defined]
    assert found() == [("an_engine.rotate", __name__)]


def test_in_a_class_code_of_another_package_is_found_too(engine: dict[str, ModuleType]) -> None:
    """A module imports functions of many packages, but a class has its own."""
    engine["an_engine"].Layer.forward = engine["another_package"].rotate
    assert found() == [("an_engine.Layer.forward", "another_package")]


def test_the_connectors_own_listeners_do_not_count(engine: dict[str, ModuleType]) -> None:
    engine["an_engine"].Layer.forward = replaced.replaced_functions
    assert found() == []


@pytest.mark.parametrize(("started", "count"), [("engines.program", 0), ("a.program", 1), (None, 1)])
def test_a_program_of_the_connectors_is_theirs_also_when_it_was_started_by_its_name(
    engine: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, started: str | None, count: int
) -> None:
    program = ModuleType("__main__")
    program.__spec__ = None if started is None else ModuleSpec(started, None)
    exec("def mine(): ...", vars(program))
    monkeypatch.setitem(sys.modules, "__main__", program)
    engine["an_engine"].Layer.forward = program.mine
    assert len(found()) == count
