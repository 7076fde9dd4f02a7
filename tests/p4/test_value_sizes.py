"""The same program and hosts with larger values: each size is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostlib.protocol.value_size import DEFAULT_BYTES, SIZES, VARIABLE
from tests.slow import rest_slow

ROOT = Path(__file__).resolve().parents[2]
CORE = tuple(f"tests/hostlib/test_native{of}.py" for of in ("", "_storage", "_puts"))
OTHERS = [size for size in SIZES if size != DEFAULT_BYTES]
SERVED = ("tests/p4/test_serve.py",)


@pytest.mark.parametrize("size_bytes", rest_slow(SIZES[-1:], OTHERS))
def test_the_program_serves_values_of_every_size(size_bytes: int) -> None:
    run(size_bytes, *SERVED)


@pytest.mark.slow
@pytest.mark.parametrize("size_bytes", OTHERS)
def test_the_core_does_what_python_does_at_every_size(size_bytes: int) -> None:
    run(size_bytes, *CORE)


def run(size_bytes: int, *files: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    environment = {**os.environ, VARIABLE: str(size_bytes)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout[-4000:]
