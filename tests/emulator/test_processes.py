"""Children that speak in JSON lines: waited for by what they say, heard out when they fail."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.errors import CrashError
from emulator.processes import LineProcess, ProcessError, ask_all, wait_for

TALKS = """
import sys
print('{"event": "ready"}', flush=True)
print('not JSON', flush=True)
for line in sys.stdin:
    if line == 'go\\n':
        print('{"event": "progress", "completed": 3}', flush=True)
        print('{"event": "finished"}', flush=True)
    if line == 'report\\n':
        print('{"event": "report", "asked": 1}', flush=True)
    if line == 'stop\\n':
        break
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[LineProcess]:
    process = LineProcess("child", [sys.executable, "-c", TALKS], tmp_path / "log", subprocess.Popen)
    yield process
    process.process.kill()
    process.process.wait()


def test_events_are_waited_for(child: LineProcess) -> None:
    seen = []
    wait_for("ready", [child], child.events, 60)
    child.send("go")
    wait_for("finished", [child], child.events, 60, lambda: seen.append(child.progress.get("completed")))
    assert 3 in seen
    child.stop()
    assert child.process.returncode == 0


def test_all_are_asked_and_who_is_silent_is_left_out(child: LineProcess, tmp_path: Path) -> None:
    silent = LineProcess("silent", ["sleep", "60"], tmp_path / "silent", subprocess.Popen)
    try:
        for _ in range(2):  # an answer to an earlier question is none to this one
            assert ask_all([child], 60) == {"child": {"event": "report", "asked": 1}}
        wait_for("ready", [child], child.events, 60)
        assert child.events.empty()
        assert set(ask_all([silent], 0.05)) == set()
    finally:
        silent.process.kill()
        silent.process.wait()


def test_silence_is_an_error_that_names_who_is_waited_for(child: LineProcess) -> None:
    wait_for("ready", [child], child.events, 60)
    with pytest.raises(ProcessError, match="waiting for 'finished' of child"):
        wait_for("finished", [child], child.events, 0.05)


def test_a_child_that_dies_is_quoted(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('the port is taken')"]
    child = LineProcess("store1", command, tmp_path / "log", subprocess.Popen)
    with pytest.raises(
        CrashError, match=r"store1 ended with exit code 1\. The last that it said:\n  the port is taken"
    ):
        wait_for("ready", [child], child.events, 60)
