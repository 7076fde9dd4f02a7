"""weir-playground as a process."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.v1model.playground.test_server import ask
from v1model.playground.__main__ import FAILURE, main
from v1model.playground.server import PlaygroundServer


def test_it_says_where_it_is_and_ends_with_an_interrupt() -> None:
    command = [sys.executable, "-m", "v1model", "playground", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        assert ask(url)[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr
        assert process.stderr.read() == ""


def test_a_port_that_is_taken() -> None:
    with PlaygroundServer() as server:
        assert main(["--no-browser", "--port", str(server.server_port)]) == FAILURE
