"""The build cache: hits, damage, several processes, and a missing compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.v1model.backend.harness import Build, header
from v1model import backend
from v1model.backend import build, generate
from v1model.compile import compile_p4
from v1model.errors import CompileError
from v1model.switch import Switch

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
struct h_t {} struct m_t {}
parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control C(inout h_t h, inout m_t m) { apply {} }
control I(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply { s.egress_spec = PORT; } }
control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in h_t h) { apply {} }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM)
    return path


def works(compiled: backend.CompiledProgram, port: int) -> bool:
    with Switch(compiled) as switch:
        return [output.port for output in switch.inject(1, b"x")] == [port]


def test_generated_code_is_always_the_same() -> None:
    def made() -> str:
        made = Build((("h", header("h_t", a=8, b=24)),))
        return generate(made.program()).source

    assert made() == made()


def test_a_hit_needs_no_compiler(cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_p4(source, defines={"PORT": "7"})
    monkeypatch.setattr(backend.building, "compile_shared", lambda *_, **__: pytest.fail("compiled again"))
    assert compile_p4(source, defines={"PORT": "7"}).library == first.library
    assert works(first, 7)


def test_what_differs_is_compiled_anew(cache: Path, source: Path) -> None:
    assert works(compile_p4(source, defines={"PORT": "7"}), 7)
    assert works(compile_p4(source, defines={"PORT": "8"}), 8)


@pytest.mark.parametrize("pattern", ["*.pickle", "program.so", "program.sha256"])
@pytest.mark.parametrize("damage", [b"", b"nonsense"])
def test_a_damaged_cache_is_rebuilt(cache: Path, source: Path, pattern: str, damage: bytes) -> None:
    compile_p4(source, defines={"PORT": "7"})
    for path in cache.rglob(pattern):
        path.write_bytes(damage)
    assert works(compile_p4(source, defines={"PORT": "7"}), 7)


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\xff", None])
def test_a_quick_build_is_finished_without_its_source(
    cache: Path, source: Path, damage: bytes | None
) -> None:
    quick = compile_p4(source, defines={"PORT": "7"}, quick=True).quick
    assert quick
    path = quick.with_name(backend.SOURCE)
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    full = compile_p4(source, defines={"PORT": "7"})
    assert full.quick is None
    assert works(full, 7)


@pytest.mark.slow
def test_damaged_objects_of_the_runtime_are_made_again(cache: Path, source: Path) -> None:
    compile_p4(source, defines={"PORT": "7"})
    for path in cache.rglob("table.o"):
        path.write_bytes(b"")
    assert works(compile_p4(source, defines={"PORT": "8"}), 8)


def test_the_runtime_stays_as_long_as_programs_are_built(cache: Path, source: Path) -> None:
    compile_p4(source, defines={"PORT": "7"})
    (runtime,) = (path.parent for path in cache.rglob("table.o"))
    long_ago = time.time() - 2 * backend.building.UNUSED_DAYS * 86400
    os.utime(runtime, (long_ago, long_ago))
    compile_p4(source, defines={"PORT": "8"})
    assert runtime.is_dir()


def test_a_removed_library_is_rebuilt(cache: Path, source: Path) -> None:
    compile_p4(source, defines={"PORT": "7"}).library.unlink()
    assert works(compile_p4(source, defines={"PORT": "7"}), 7)


def test_processes_build_at_the_same_time(cache: Path, source: Path) -> None:
    compiled = f"compile_p4({str(source)!r}, defines={{'PORT': '3'}})"
    code = f"from v1model.compile import compile_p4; print({compiled}.library)"
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    libraries = {process.communicate(timeout=240)[0].strip() for process in running}
    assert all(process.returncode == 0 for process in running)
    assert len(libraries) == 1
    assert not list(cache.glob(".new-*"))


def test_without_a_compiler_the_error_says_so(
    cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(CompileError, match="no-such-compiler is not on PATH"):
        compile_p4(source, defines={"PORT": "7"})


@pytest.mark.slow
def test_the_sanitized_build_is_another() -> None:
    program = Build((("h", header("h_t", a=8)),)).program()
    plain, sanitized = build(program), build(program, sanitize=True)
    assert b"__asan_" not in plain.library.read_bytes()
    assert b"__asan_" in sanitized.library.read_bytes()
