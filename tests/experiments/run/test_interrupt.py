"""Ctrl-C while a command is still being imported ends it without a word, as it does later."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("module", ["numpy", "emulator.emulation"])
def test_it_ends_without_a_traceback_before_it_has_begun(module: str) -> None:
    """`module` is imported early and late."""
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "experiments.run", "--hosts", "2"],
        cwd=ROOT, env={**os.environ, "WEIR_COMPILED": "0"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as command:  # fmt: skip
        assert command.stderr is not None
        for line in command.stderr:
            if line.rpartition("|")[2].strip().startswith(module):
                break
        command.send_signal(signal.SIGINT)
        rest = command.stderr.read()
        assert command.stdout is not None
        said = command.stdout.read()
    assert command.returncode == 130
    assert "Traceback" not in rest
    assert said == ""
