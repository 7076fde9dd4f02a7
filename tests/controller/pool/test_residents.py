"""What the controller tells a router of the pools."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from controller.block_id import block_id
from controller.pool.residents import KEYS_A_LINE, ResidentsReport

if TYPE_CHECKING:
    from pathlib import Path

KEYS = [number.to_bytes(16, "big") for number in range(KEYS_A_LINE + 1)]
IDS = [block_id(0, key) for key in KEYS]


def listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.settimeout(30)
    listener.bind(str(path))
    listener.listen()
    return listener


def messages(listener: socket.socket) -> list[dict[str, Any]]:
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as lines:
        return [json.loads(line) for line in lines]


def test_only_what_changed_is_told(tmp_path: Path) -> None:
    report = ResidentsReport(str(tmp_path / "router"))
    with listening(tmp_path / "router") as listener, ThreadPoolExecutor() as reader:
        told = reader.submit(messages, listener)
        report.tell({"s1": IDS[:2], "s2": []})
        report.tell({"s1": IDS[:2], "s2": []})
        report.tell({"s1": IDS[1:3], "s2": []})
        report.close()
        first, came, went = told.result()
    assert first["switch"] == "s1"
    assert set(first["held"]) == {key.hex() for key in KEYS[:2]}
    assert (came["held"], went["gone"]) == ([KEYS[2].hex()], [KEYS[0].hex()])


def test_lines_are_bounded_and_a_router_that_comes_later_is_told_all(tmp_path: Path) -> None:
    report = ResidentsReport(str(tmp_path / "router"))
    report.tell({"s1": IDS[:5]})  # nobody listens
    with listening(tmp_path / "router") as listener, ThreadPoolExecutor() as reader:
        told = reader.submit(messages, listener)
        report.tell({"s1": IDS})
        report.close()
        assert [len(line["held"]) for line in told.result()] == [KEYS_A_LINE, 1]
