"""Programs that are forked from a process which has imported them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from topologies.errors import EngineError
from topologies.forkserver import ForkServer
from topologies.forkserver.client import ForkedProcess

PROGRAM = "json.tool"
"""Reads stdin to its end, so it runs as long as a test wants; exit code 1 for what is no JSON."""
TIMEOUT_S = 60.0
PIPE = subprocess.PIPE


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer([PROGRAM]) as server:
        yield server


def say(process: ForkedProcess, text: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(text)
    process.stdin.close()
    return process.stdout.read()


def test_a_program_has_its_streams_arguments_and_exit_code(server: ForkServer) -> None:
    process = server.start(PROGRAM, ["--compact"], stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.poll() is None
    assert say(process, b'{"a": [1, 2]}') == b'{"a":[1,2]}\n'
    assert process.wait(TIMEOUT_S) == process.poll() == 0


def test_a_program_that_fails_says_why(server: ForkServer) -> None:
    process = server.start(PROGRAM, [], stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert say(process, b"no JSON") == b""
    assert process.wait(TIMEOUT_S) == 1
    assert process.stderr is not None
    assert b"Expecting value" in process.stderr.read()


def test_streams_may_be_files_and_nothing(server: ForkServer, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        process = server.start(PROGRAM, [], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    assert process.wait(TIMEOUT_S) == 1  # an empty input is no JSON
    assert b"Expecting value" in (tmp_path / "out").read_bytes()


def test_a_program_that_is_ended_has_a_negative_code(server: ForkServer) -> None:
    process = server.start(PROGRAM, [], stdin=PIPE, stdout=PIPE, stderr=PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    assert process.wait(TIMEOUT_S) == -signal.SIGKILL
    process.terminate()  # nothing: it has ended


def test_each_has_a_session_of_its_own(server: ForkServer) -> None:
    process = server.start(PROGRAM, [], stdin=PIPE, stdout=PIPE, stderr=PIPE)
    deadline_s = time.monotonic() + TIMEOUT_S
    while os.getsid(process.pid) != process.pid and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert os.getsid(process.pid) == process.pid
    process.kill()


def test_many_at_once(server: ForkServer) -> None:
    def run(number: int) -> bytes:
        return say(server.start(PROGRAM, [], stdin=PIPE, stdout=PIPE, stderr=PIPE), b"%d" % number)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(run, range(40))) == [b"%d\n" % number for number in range(40)]


def test_what_still_runs_ends_with_the_server() -> None:
    with ForkServer([PROGRAM]) as server:
        process = server.start(PROGRAM, [], stdin=PIPE, stdout=PIPE, stderr=PIPE)
        running = psutil.Process(process.pid)
    assert process.wait(TIMEOUT_S) == -signal.SIGTERM
    running.wait(TIMEOUT_S)
    with pytest.raises(EngineError, match="is gone"):
        server.start(PROGRAM, [])


def test_what_begins_after_the_server_ended_does_not_run() -> None:
    late = (
        "import os, sys; from topologies.forkserver.server import _run; "
        f"sys.exit(_run({{'module': {PROGRAM!r}, 'arguments': [], 'namespace': None}}, [], os.getpid()))"
    )
    with subprocess.Popen([sys.executable, "-c", late], stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        try:
            assert process.wait(TIMEOUT_S) == 1  # else it reads what nobody writes
            assert process.stderr is not None
            assert not process.stderr.read()
        finally:
            process.kill()


def test_a_module_that_does_not_exist_is_an_error() -> None:
    def silenced(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        options["stderr"] = subprocess.DEVNULL
        return subprocess.Popen(command, **options)

    with pytest.raises(EngineError, match=r"no\.such\.module"):
        ForkServer(["no.such.module"], silenced).__enter__()
