"""What a controller sends is compiled within limits, and nothing else of the machine comes into it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.v1model.refused_program import program
from v1model import sandbox
from v1model.backend import building
from v1model.errors import CompileError
from v1model.frontend.preprocess import preprocess
from v1model.sandbox import Source, sandboxed_compile, sandboxed_finish


def source(tmp_path: Path, **gaps: str) -> Source:
    path = tmp_path / "program.p4"
    path.write_text(program(**gaps))
    return Source(preprocess(path), str(path))


def refusal(text: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        sandboxed_compile(Source(text, "hostile.p4"))
    return caught.value


def test_a_program_is_compiled_once_and_then_found(cache: Path, tmp_path: Path) -> None:
    wanted = source(tmp_path, types=f"const int never_seen_{os.getpid()} = {time.time_ns()};")
    assert wanted.find() is None
    compiled = sandboxed_compile(wanted)
    before = os.times().children_user
    assert sandboxed_compile(wanted).library == compiled.library
    assert os.times().children_user == before  # what the cache has takes no process
    assert compiled.quick
    assert building.is_intact(compiled.quick)
    full = sandboxed_finish(compiled)
    assert full.quick is None
    assert building.is_intact(full.library)


def test_an_error_has_its_place_and_its_hint() -> None:
    error = refusal('# 7 "user.p4"\n  const bit<8> wide = {1};\n')
    assert error.span is not None
    assert (error.span.file, error.span.line, error.span.column) == ("user.p4", 7, 23)


def test_files_that_a_text_names_are_not_opened(tmp_path: Path) -> None:
    """The frontend's tests have more of them (test_hostile_text.py)."""
    secret = tmp_path / "secret"
    secret.write_text("something: guess\n")
    error = refusal(f'# 1 "{secret}"\nguess\n')
    assert error.span is not None
    assert (error.span.line, error.span.column) == (1, 1)


def test_a_long_error_is_cut() -> None:
    """gRPC's clients take 8 KiB of it."""
    error = refusal(f'# 1 "{"f" * 100_000}"\n{"x" * 100_000}\n')
    assert len(error.render()) < 4 * sandbox.MAX_ERROR_CHARACTERS


def test_a_program_that_takes_too_much_cpu_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_CODE", f"import v1model.sandbox as s; s.MAX_CPU_S = 1\n{ENDLESS}")
    assert "s of CPU" in refusal("x").message


def test_a_program_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_CODE", SLEEP)
    monkeypatch.setattr(sandbox, "MAX_DURATION_S", 0.1)
    assert "took more than 0 s" in refusal("x").message


def test_a_program_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import v1model.sandbox as s; s.Source.compile = lambda _: bytearray(s.MAX_MEMORY_BYTES); s.main()"
    monkeypatch.setattr(sandbox, "_CODE", code)
    assert "takes more than 2048 MiB of memory" in refusal("x").message


def test_sigterm_ends_a_switch_that_compiles(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    (tmp_path / "program.p4").write_text(program())
    code = f"""
import v1model.sandbox as s
from v1model.cli import main
s._CODE = {waiting_with_a_compiler(alive)!r}
s.Source.find = lambda _: None
raise SystemExit(main([{str(tmp_path / "program.p4")!r}, "--", "--grpc-server-addr", "127.0.0.1:0"]))
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        with alive.open("rb") as held:
            assert held.readline() == b"compiling\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
            assert held.read() == b""
    finally:
        process.kill()
        process.wait()


def test_a_switch_that_is_killed_leaves_no_compiler(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    code = f"""
import v1model.sandbox as s
s._CODE = {f"import v1model.sandbox as s; s._set_limits(); f = open({str(alive)!r}, 'w'); {PRINT}; {SLEEP}"!r}
s._run(s.Source("x", "x"))
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        with alive.open("rb") as held:
            assert held.readline() == b"compiling\n"
            process.kill()
            assert held.read() == b""
    finally:
        process.kill()
        process.wait()


ENDLESS = "s._set_limits()\nwhile True: 3 ** 100_000"
PRINT = "print('compiling', file=f, flush=True)"
SLEEP = "import time; time.sleep(600)"


def waiting_with_a_compiler(alive: Path) -> str:
    """What a process does that waits for a child, both of which hold a pipe open."""
    return f"""
import subprocess, v1model.sandbox as s
from v1model.backend import building
building.stay_in_group()
f = open({str(alive)!r}, "w")
{PRINT}
building._start(["sh", "-c", {f"exec 3>{alive}; sleep 600"!r}]).wait()
"""


@pytest.mark.slow
def test_flags_that_are_set_later_are_those_of_both_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    for setting in ("", "1"):
        monkeypatch.setenv("WEIR_WERROR", setting)
        assert sandboxed_compile(source(tmp_path)).quick
