"""A command that chooses a size of values is started again with it, once, with what it was told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from topologies.engines import Bmv2
from topologies.errors import EngineError

COMMAND = """
import sys
from commands.value_size import size_is_unset, restart_with_size
from hostlib.protocol.wire import VALUE_BYTES
print(VALUE_BYTES, sys.argv[1:], flush=True)
if size_is_unset():
    restart_with_size(8192)
"""


def test_it_starts_again_with_the_size_and_its_arguments(tmp_path: Path) -> None:
    program = tmp_path / "command.py"
    program.write_text(COMMAND)
    environment = {name: value for name, value in os.environ.items() if name != "WEIR_VALUE_BYTES"}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, str(program), "--seed", "a b"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["512 ['--seed', 'a b']", "8192 ['--seed', 'a b']"]


def test_bmv2_is_refused_larger_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topologies.engines.shutil.which", lambda tool: f"/usr/bin/{tool}")
    with pytest.raises(EngineError, match="VALUE_BYTES=512"):
        Bmv2().compile(tmp_path / "weir.p4", {"VALUE_SIZE": 8192}, tmp_path)
