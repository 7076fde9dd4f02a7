"""A session with what does not answer."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from controller.costs import Costs
from controller.errors import ConnectionLostError
from controller.p4runtime_client import HANDSHAKE_TIMEOUT_S, SwitchClient


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
