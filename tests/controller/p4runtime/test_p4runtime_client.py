"""A session with what does not answer."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import grpc
import pytest

from controller.costs import Costs
from controller.errors import ConnectionLostError
from controller.p4runtime.channel import let_threads_sleep, open_channel
from controller.p4runtime.p4runtime_client import HANDSHAKE_TIMEOUT_S, SwitchClient
from v1model.protos.p4.v1 import p4runtime_pb2_grpc


def open_files() -> set[str]:
    """Sockets of this process."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(entry.readlink()))
        except OSError:  # that of the listing itself
            continue
    return {name for name in found if name.startswith("socket:")}


def test_a_switch_that_never_answers_is_given_up_and_leaves_no_socket_open(tmp_path: Path) -> None:
    path = tmp_path / "switch.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        accepted: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    accepted.append(listening.accept()[0])
                except OSError:
                    return

        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        before = open_files()
        began_s = time.monotonic()
        with pytest.raises(ConnectionLostError):
            SwitchClient(1, f"unix:{path}", (0, 1), lambda message: None, lambda: None, Costs())
        assert time.monotonic() - began_s < 10 * HANDSHAKE_TIMEOUT_S
        until_s = time.monotonic() + 5 * HANDSHAKE_TIMEOUT_S
        while True:
            own = {f"socket:[{os.fstat(one.fileno()).st_ino}]" for one in accepted}
            if not open_files() - before - own:
                break
            assert time.monotonic() < until_s
            time.sleep(0.05)
        listening.shutdown(socket.SHUT_RDWR)
        acceptor.join(5)
        for one in accepted:
            one.close()


def test_threads_that_wait_for_a_stream_sleep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty switches would have them wake two hundred times a second."""
    monkeypatch.setattr("grpc._common.MAXIMUM_WAIT_TIMEOUT", 0.1)  # and back behind the test
    let_threads_sleep()
    path = tmp_path / "switch.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        channel = open_channel(f"unix:{path}", None)
        asked: queue.SimpleQueue[None] = queue.SimpleQueue()
        stream = p4runtime_pb2_grpc.P4RuntimeStub(channel).StreamChannel(iter(asked.get, None))

        def wait() -> None:
            with suppress(grpc.RpcError):
                next(stream)

        thread = threading.Thread(target=wait)
        thread.start()
        status = Path(f"/proc/self/task/{thread.native_id}/status")
        wakes = []
        for _ in range(2):
            line = next(line for line in status.read_text().splitlines() if line.startswith("voluntary"))
            wakes.append(int(line.split()[1]))
            time.sleep(1.0)
        stream.cancel()
        asked.put(None)
        thread.join(10)
        channel.close()
    assert not thread.is_alive()
    assert wakes[1] - wakes[0] < 6
