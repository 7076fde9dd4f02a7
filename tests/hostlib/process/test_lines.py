"""JSON lines between the programs of a run."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.process import lines
from hostlib.process.lines import in_lines, keys_in, read_lines, to_line
from hostlib.protocol.errors import LineError


@pytest.fixture(autouse=True)
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "KEYS_A_LINE", 3)


async def _read(data: bytes) -> list[dict[str, object]]:
    reader = asyncio.StreamReader(limit=1 << 12)
    reader.feed_data(data)
    reader.feed_eof()
    return [message async for message in read_lines(reader)]


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=20))
def test_keys_go_in_lines_of_bounded_length_and_come_back(keys: list[bytes]) -> None:
    sent = list(in_lines("held", keys))
    came = asyncio.run(_read(b"".join(map(to_line, sent))))
    assert [key for message in came for key in keys_in(message, "held")] == keys


def test_a_line_has_a_bounded_number_of_keys() -> None:
    assert [len(message["held"]) for message in in_lines("held", [bytes(16)] * 7)] == [3, 3, 1]


@given(st.binary(max_size=200))
def test_anything_else_is_refused_or_a_message(data: bytes) -> None:
    try:
        came = asyncio.run(_read(data + b"\n"))
    except LineError:
        return
    assert all(isinstance(message, dict) for message in came)


@pytest.mark.parametrize("keys", [3, "ab", ["0"], ["00" * 15], [None], {"a": 1}])
def test_what_is_no_list_of_keys_is_refused(keys: object) -> None:
    with pytest.raises(LineError, match="held: not a list of keys"):
        keys_in({"held": keys}, "held")
