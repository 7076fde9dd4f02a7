"""make topo while its CLI waits for someone: the controller goes on saying how far it is."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands.command import Screen
from emulator.processes import READY_TIMEOUT_S, LineProcess, wait_for
from experiments.run.topo import listening

SAYS = """
import sys
print('{"event": "ready"}', flush=True)
for line in sys.stdin:
    if line == "die\\n":
        sys.exit("it is dead")
    if line == "stop\\n":
        break
    print('{"event": "progress", "count": %s}' % line.strip(), flush=True)
"""


@pytest.fixture
def controller(tmp_path: Path) -> LineProcess:
    command = [sys.executable, "-c", SAYS]
    process = LineProcess("controller", command, tmp_path / "controller.log", subprocess.Popen)
    wait_for("ready", [process], process.events, READY_TIMEOUT_S)
    return process


def test_progress_that_nobody_asked_for_is_taken(controller: LineProcess) -> None:
    with listening(Screen(), controller):
        for number in range(100):
            controller.send(str(number))
        controller.stop()
    assert controller.last_events["progress"]["count"] == 99
    assert controller.events.empty()


def test_a_controller_that_ends_is_said_so_at_once(
    controller: LineProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ""
    with listening(Screen(), controller):
        controller.send("die")
        until_s = time.monotonic() + READY_TIMEOUT_S
        while "it is dead" not in said and time.monotonic() < until_s:
            said += capsys.readouterr().err
            time.sleep(0.02)
    assert "controller" in said
    assert "it is dead" in said
