"""The fuzzer runs sanitized code, reaches deep states, and fails when there is something to report."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.p4.conftest import PROGRAM, ROOMY
from v1model.compile import compile_p4
from v1model.frontend.preprocess import preprocess
from v1model.fuzz import sources
from v1model.fuzz.__main__ import _programs
from v1model.fuzz.packets import packets
from v1model.fuzz.sources import SourceFuzzer
from v1model.switch import Switch

CONFORMANCE = Path(__file__).resolve().parents[2] / "conformance"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "v1model.fuzz", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=240, env={**os.environ, **environment}
    )


@pytest.mark.slow
def test_the_pool_program_survives() -> None:
    amounts = ("--packets", "4000", "--requests", "20", "--texts", "10")
    result = run(str(PROGRAM), *amounts, "-D", "POOL_SLOTS=64", "-D", "POOL_BLOCKS=16")
    assert result.returncode == 0, result.stderr
    assert "4000 packets, " in result.stdout
    assert "no report" in result.stdout


HARD = ("tables/matches", "tables/results", "switch/clones", "language/varbits", "externs/meters")
"""Conformance programs with selectors, direct resources, replication and lengths known at run time."""


@pytest.mark.slow
@pytest.mark.parametrize("name", HARD)
def test_conformance_programs_survive_packets_and_requests(name: str) -> None:
    program = str(CONFORMANCE / f"{name}.p4")
    result = run(program, "--packets", "3000", "--requests", "200", "--texts", "5")
    assert result.returncode == 0, result.stderr
    assert "no report" in result.stdout
    assert "(0 updates accepted)" not in result.stdout


def test_a_folder_stands_for_its_programs(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("inner/tested.p4", "inner/fragment.p4", "inner/tested.stf"):
        (tmp_path / name).write_text("")
    assert _programs(tmp_path) == [tmp_path / "inner/tested.p4"]
    assert _programs(tmp_path / "inner/fragment.p4") == [tmp_path / "inner/fragment.p4"]


def test_a_memory_error_is_reported() -> None:
    """The flags of the sanitized build do find an access behind the end of an array."""
    code = """
import ctypes, subprocess, sys, tempfile
from v1model.backend import building
source = "int weir_bug(int i) { int a[4] = {0}; return ((volatile int *) a)[i]; }"
with tempfile.TemporaryDirectory() as directory:
    bug = directory + "/bug"
    open(bug + ".c", "w").write(source)
    flags = [*building.FLAGS, *building.SANITIZE_FLAGS, "-fvisibility=default", "-shared"]
    subprocess.run([building.compiler(), *flags, bug + ".c", "-o", bug + ".so"], check=True)
    ctypes.CDLL(bug + ".so").weir_bug(5)
"""
    preload = " ".join(
        subprocess.run(
            ["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    )
    script = f"import os; os.environ.pop('LD_PRELOAD')\n{code}"
    environment = {**os.environ, "LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0:exitcode=99"}
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=240,
    )
    assert result.returncode != 0
    assert "AddressSanitizer" in result.stderr or "runtime error" in result.stderr


def test_changed_texts_are_programs_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = preprocess(CONFORMANCE / "tables" / "matches.p4")
    assert 0 < SourceFuzzer(text, random.Random(1)).run(20) < 20

    def fail(*_: object, **__: object) -> None:
        raise KeyError

    monkeypatch.setattr(sources, "load_text", fail)
    with pytest.raises(KeyError):
        SourceFuzzer(text, random.Random(1)).run(1)


def test_seeds_get_through_the_parser() -> None:
    """Every state of the pool's parser that a packet can end in is reached by some seed."""
    compiled = compile_p4(PROGRAM, defines=ROOMY)
    seeds = packets(compiled.program, 400, random.Random(1))
    with Switch(compiled) as switch:
        for seed in seeds:
            switch.inject(1, seed)
        malformed = switch.counter("ingress.outcomes", 0).packets
    assert {len(seed) // 100 for seed in seeds} >= {0, 1, 6}  # with and without a value
    assert malformed < len(seeds) / 2
    assert packets(compiled.program, 5, random.Random(1)) == seeds[:5]


def test_programs_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "p4").mkdir()
    result = subprocess.run(
        [sys.executable, "-m", "v1model.fuzz"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(PROGRAM.parents[1])},
        timeout=240,
    )
    assert result.returncode == 2
    assert "no program: no *.p4 in p4" in result.stderr


@pytest.mark.parametrize("source", ["this is not P4"])
def test_a_program_that_does_not_compile(tmp_path: Path, source: str) -> None:
    path = tmp_path / "bad.p4"
    path.write_text(source)
    result = run(str(path), "--packets", "1", "--texts", "1")
    assert result.returncode == 1
    assert "bad.p4:1" in result.stderr
