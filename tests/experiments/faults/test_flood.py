"""The flood of frames from one port keeps to its rate."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time

import pytest

from experiments.faults import flood


def test_a_rate_need_not_be_a_whole_number_of_frames_a_period(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    back, quiet = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    back.setblocking(False)
    reader, writer = os.pipe()

    def end_after_thirty() -> None:
        for _ in range(30):
            far.recv(64)
        os.write(writer, b"\n")

    with out, far, back, quiet, open(reader, encoding="utf-8") as stdin, open(writer, "wb"):  # noqa: PTH123  (descriptors)
        monkeypatch.setattr(sys, "stdin", stdin)
        ender = threading.Thread(target=end_after_thirty)
        ender.start()
        began_s = time.monotonic()
        flood._flood(out, back, [b"frame"], 1.5)
        periods = (time.monotonic() - began_s) / flood.PERIOD_S
        ender.join()
    sent = json.loads(capsys.readouterr().out)["sent"]
    assert 30 <= sent <= 1.5 * (periods + 1) + 1
