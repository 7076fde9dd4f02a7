"""finsy, another P4Runtime client, unchanged: where FINSY_PYTHON names an interpreter that has it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from google.protobuf import text_format

from tests.v1model.p4runtime.engines import RunningSwitch

COMMANDS = Path(__file__).with_name("finsy_commands.py")
SAID = """\
entry [5] {'base': 3, 'generation': 2}
counter 7 70
group 2
register 77
refused ALREADY_EXISTS
"""


def test_finsy(switch: RunningSwitch, tmp_path: Path) -> None:
    python = os.environ.get("FINSY_PYTHON")
    if not python:
        pytest.skip(
            "finsy needs an environment of its own: python -m venv F; F/bin/pip install finsy==0.30.0; "
            "FINSY_PYTHON=F/bin/python"
        )
    p4info, config = tmp_path / "p4info.txtpb", tmp_path / "config"
    p4info.write_text(text_format.MessageToString(switch.artifacts.p4info))
    config.write_bytes(switch.artifacts.device_config)
    command: list[str | Path] = [python, COMMANDS, switch.address, p4info, config]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == SAID
