"""p4runtime-shell, unchanged, as a user types it, in its own environment."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from google.protobuf import text_format

from tests.v1model.p4runtime.conftest import BOTH
from tests.v1model.p4runtime.engines import CPU_PORT, RunningSwitch
from tests.v1model.p4runtime.test_stream import LEARN, TO_CPU, flow

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-shell" / "bin" / "python"
COMMANDS = Path(__file__).with_name("shell_commands.py")
TIMEOUT_S = 120
CASES = {
    "table_entries": (),
    "ternary_range_and_optional_matches": (),
    "counters_meters_and_groups": (),
    "packets_and_digests": (flow(TO_CPU, address=9).hex(), flow(LEARN, address=9).hex(), str(CPU_PORT)),
}


@BOTH
@pytest.mark.parametrize("case", CASES)
def test_the_shell(case: str, switch: RunningSwitch, tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip("p4runtime-shell is not there: `make test` and `make shell` install it")
    p4info, config = tmp_path / "p4info.txtpb", tmp_path / "config"
    p4info.write_text(text_format.MessageToString(switch.artifacts.p4info))
    config.write_bytes(switch.artifacts.device_config)
    command: list[str | Path] = [PYTHON, COMMANDS, switch.address, p4info, config, case, *CASES[case]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
