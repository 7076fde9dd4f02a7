"""The simulator compiled says what its Python files say, and is used only where it is made of them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.simulate.kinds import kinds
from simulator import compiled
from simulator.simulation import prepare

needs_build = pytest.mark.skipif(
    not compiled.folder().is_dir(), reason="the simulator is not compiled: make compiled"
)
KINDS = (sys.executable, "-m", "experiments.simulate.kinds")


def said(*command: str, **environment: str) -> list[str]:
    """The lines that a program of its own prints, in such an environment."""
    settings = {**os.environ, "WEIR_COMPILED": "1", **environment}
    done = subprocess.run(
        command, env=settings, cwd=compiled.ROOT, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def says(code: str, **environment: str) -> list[str]:
    """What a line of Python prints."""
    return said(sys.executable, "-c", code, **environment)


@needs_build
def test_the_figures_of_all_kinds_of_scenarios_are_those_of_python_to_the_last_bit() -> None:
    in_python, in_c = said(*KINDS, WEIR_COMPILED="0"), said(*KINDS)
    assert (in_python[0], in_c[0]) == ("Python", "compiled")
    assert len(in_c) > 20
    assert in_c[1:] == in_python[1:]


@pytest.mark.parametrize("name", kinds())
def test_every_kind_of_scenario_can_be_played(name: str) -> None:
    prepare(kinds()[name])


@needs_build
def test_python_runs_where_that_is_asked_for() -> None:
    code = (
        "from simulator.compiled import core; import simulator.events as events;"
        "print(core()); print(events.__file__)"
    )
    source = str(compiled.source("simulator.events"))
    assert says(code, WEIR_PURE="1") == ["Python", source]
    assert says(code, WEIR_COMPILED="0") == ["Python", source]
    assert says(code)[0] == "compiled"


@needs_build
def test_scenarios_and_results_can_be_sent_between_processes() -> None:
    code = (
        "import pickle; from simulator.compiled import core;"
        "from scenario.tables import Scenario;"
        "from simulator.simulation import simulate;"
        "scenario = pickle.loads(pickle.dumps(Scenario().changed(workload={'requests': 20})));"
        "result = simulate(scenario); print(core(), pickle.loads(pickle.dumps(result)) == result)"
    )
    assert says(code) == ["compiled True"]


def test_what_was_imported_in_python_stays_in_python() -> None:
    """Half compiled, modules would meet types that were never made."""
    code = "import sys; sys.modules['simulator.events'] = sys; import simulator.compiled as c;"
    assert says(f"{code} print(c.core())") == ["Python"]


def test_a_build_belongs_to_its_sources_and_what_they_import_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*compiled.sources(), "requirements-all.lock"):
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((compiled.ROOT / name).read_bytes())
    here = compiled.folder()
    monkeypatch.setattr(compiled, "ROOT", tmp_path)
    assert compiled.folder() == here
    lock = tmp_path / "requirements-all.lock"
    edits = [
        (tmp_path / "simulator/client.py", b"", b"#"),
        (tmp_path / "controller/pool/hit_meter.py", b"", b"#"),  # its constants are compiled in
        (
            tmp_path / "hostlib/native/lane.py",
            b"float",
            b"int",
        ),  # the type of an option that compiled code reads
        (lock, b"mypy==", b"mypy==9."),
    ]
    for path, old, new in edits:
        before = path.read_bytes()
        path.write_bytes(before.replace(old, new, 1))
        assert path.read_bytes() != before
        assert compiled.folder() != here, path
        path.write_bytes(before)
        assert compiled.folder() == here
    lock.write_bytes(lock.read_bytes().replace(b"mypy-extensions==", b"mypy-extensions==9."))
    assert compiled.folder() == here


def test_what_is_compiled_imports_nothing_that_a_build_does_not_belong_to() -> None:
    """A type that changed elsewhere would leave the build as it is, which then refuses what Python plays."""
    known = set(compiled.sources())
    imported: set[str] = set()
    for module in compiled.MODULES:
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
            elif isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
    files = {
        compiled.source(module).relative_to(compiled.ROOT).as_posix()
        for module in (*imported, *compiled.MODULES)
    }
    there = {name for name in files if (compiled.ROOT / name).is_file()}
    assert len(there) > len(compiled.MODULES)
    assert there <= known


def test_a_build_that_is_used_is_not_one_that_nobody_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finders = [finder for finder in sys.meta_path if not isinstance(finder, compiled._Finder)]
    monkeypatch.setattr(sys, "meta_path", finders)
    monkeypatch.setattr(compiled, "MODULES", ())
    monkeypatch.setattr(compiled, "_load", lambda *_: None)
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path)
    monkeypatch.delenv("WEIR_PURE", raising=False)
    monkeypatch.setenv("WEIR_COMPILED", "1")
    os.utime(tmp_path, (0, 0))
    compiled.use()
    assert compiled.in_use()
    assert tmp_path.stat().st_mtime > 0


def test_no_constant_is_compiled_in_of_a_file_that_the_build_does_not_know() -> None:
    """mypyc copies the value of a Final: a change of it elsewhere would leave the build as it is."""
    known = {*compiled.MODULES, *compiled.CONSTANTS}
    for module in compiled.MODULES:
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module not in known:
                taken = {name.name for name in node.names}
                assert not taken & _finals(node.module), f"{module} has a constant of {node.module}"
                for whole in taken:
                    other = f"{node.module}.{whole}"
                    assert other in known or not _finals(other), f"{module} may have a constant of {other}"


def test_no_slice_calls_anything_but_len() -> None:
    """mypyc 2.4.1 evaluates the bounds of a Sequence's slice twice: a gate was asked, and counted, twice."""
    for module in compiled.MODULES:
        bounds = [node for node in ast.walk(_tree(module)) if isinstance(node, ast.Slice)]
        calls = {
            ast.unparse(node.func)
            for bound in bounds
            for node in ast.walk(bound)
            if isinstance(node, ast.Call)
        }
        assert calls <= {"len"}, f"{module}: name the result of {calls - {'len'}} first"


def _tree(module: str) -> ast.Module:
    return ast.parse(compiled.source(module).read_text())


def _finals(module: str) -> set[str]:
    """Names of a module's constants that are declared Final."""
    path = compiled.source(module)
    body = ast.parse(path.read_text()).body if path.is_file() else []
    declared = [
        node for node in body if isinstance(node, ast.AnnAssign) and "Final" in ast.unparse(node.annotation)
    ]
    return {node.target.id for node in declared if isinstance(node.target, ast.Name)}
