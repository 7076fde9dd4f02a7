"""Files as people have them: compressed, with a byte order mark, as an array, too large, no file at all."""

import gzip
import json
import os
from pathlib import Path

import pytest

from workload import trace_files
from workload.trace import TraceError
from workload.trace_files import load_trace

REQUESTS = [
    {"timestamp": 1000 * second, "input_length": 700, "output_length": 9, "hash_ids": [0, second + 1]}
    for second in range(3)
]
LINES = "".join(json.dumps(request) + "\n" for request in REQUESTS)


@pytest.mark.parametrize(
    "content",
    [
        LINES.encode(),
        gzip.compress(LINES.encode()),
        b"\xef\xbb\xbf" + LINES.encode(),
        gzip.compress(b"\xef\xbb\xbf" + LINES.encode()),
        LINES.replace("\n", "\r\n").encode(),
        json.dumps(REQUESTS).encode(),
        json.dumps(REQUESTS, indent=2).encode(),
        LINES.rstrip("\n").encode(),
    ],
    ids=["lines", "gzip", "mark", "both", "crlf", "array", "array over lines", "no last newline"],
)
def test_the_same_trace_in_other_wrappings(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(content)
    trace = load_trace(path)
    assert [request.arrival_s for request in trace.requests] == [0.0, 1.0, 2.0]
    assert trace.warnings == ()


def test_times_count_from_the_first_request_where_it_comes_late(tmp_path: Path) -> None:
    path = tmp_path / "unix.jsonl"
    late = [{**request, "timestamp": request["timestamp"] + 1_700_000_000_000} for request in REQUESTS]  # type: ignore[operator]
    path.write_text("".join(json.dumps(request) + "\n" for request in late))
    trace = load_trace(path)
    assert [request.arrival_s for request in trace.requests] == [0.0, 1.0, 2.0]
    assert any("times count from the first request" in warning for warning in trace.warnings)
    chat = {"chat_id": 1, "parent_chat_id": -1, "turn": 1, "type": "text"}
    path.write_text("".join(json.dumps(request | chat) + "\n" for request in late))
    assert [request.arrival_s for request in load_trace(path).requests] == [0.0, 1.0, 2.0]


def test_a_node_keeps_the_times_of_its_part_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "node.jsonl"
    path.write_text(json.dumps({**REQUESTS[0], "timestamp": 90_000}) + "\n")
    assert load_trace(path, keeps_times=True).requests[0].arrival_s == 90.0


@pytest.mark.parametrize("field", ["input_length", "output_length"])
def test_lengths_that_no_model_takes_are_refused(field: str, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps(REQUESTS[0] | {field: 10**15}) + "\n")
    with pytest.raises(TraceError, match=rf"long\.jsonl:1: {field} must be at most 100,000,000"):
        load_trace(path)


def test_times_beyond_decades_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "late.jsonl"
    path.write_text(LINES + json.dumps(REQUESTS[0] | {"timestamp": 10**15}) + "\n")
    with pytest.raises(TraceError, match=r"late\.jsonl:4: arrives 1e\+12 s after the first"):
        load_trace(path)


def test_broken_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "broken"
    path.write_bytes(gzip.compress(LINES.encode())[:-9])
    with pytest.raises(TraceError, match="not a whole gzip file"):
        load_trace(path)
    path.write_text('[{"timestamp": 1},')
    with pytest.raises(TraceError, match="broken:1: not JSON"):
        load_trace(path)
    path.write_text(LINES)
    monkeypatch.setattr(trace_files, "MAX_FILE_BYTES", 50)
    with pytest.raises(TraceError, match="larger than"):
        load_trace(path)
    monkeypatch.setattr(trace_files, "MAX_FILE_BYTES", 1 << 20)
    monkeypatch.setattr(trace_files, "MAX_TEXT_CHARS", 50)
    with pytest.raises(TraceError, match="broken:1: longer than"):
        load_trace(path)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_files, "MAX_FILE_BYTES", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"\n" * (8 << 20)))
    with pytest.raises(TraceError, match="larger than"):
        load_trace(path)


def test_a_pipe_is_no_trace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(TraceError, match="not a regular file"):
        load_trace(tmp_path / "pipe.jsonl")
    with pytest.raises(TraceError, match="not a file"):
        load_trace(tmp_path)


def test_a_folder_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_files, "MAX_FILES", 1)
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(TraceError, match="more than 1 files"):
        load_trace(tmp_path)
