import json
from pathlib import Path

import pytest

from workload.generate import generate, to_line
from workload.trace import BAILIAN, MOONCAKE, TraceError
from workload.trace_files import load_trace
from workload.trace_lines import parse_trace

GOOD = {"timestamp": 1500, "input_length": 700, "output_length": 9, "hash_ids": [0, 1]}
CHAT = {
    "chat_id": 3,
    "parent_chat_id": -1,
    "timestamp": 2.5,
    "turn": 1,
    "input_length": 30,
    "output_length": 4,
    "type": "text",
    "hash_ids": [5, 6],
}


def lines(*records: object) -> list[str]:
    return [json.dumps(record) for record in records]


def test_mooncake_line() -> None:
    trace = parse_trace(lines(GOOD), "t")
    assert trace.schema is MOONCAKE
    (request,) = trace.requests
    assert (request.arrival_s, request.input_tokens, request.output_tokens) == (1.5, 700, 9)
    assert request.blocks == (0, 1)
    assert trace.warnings == ()


def test_bailian_line() -> None:
    trace = parse_trace(lines(CHAT), "t")
    assert trace.schema is BAILIAN
    assert trace.block_tokens == 16
    assert trace.requests[0].arrival_s == 2.5
    assert trace.requests[0].parent_chat_id == -1


@pytest.mark.parametrize("line", [GOOD | {"chunk_ids": [8, None]}, CHAT | {"chunk_ids": [8, None]}])
def test_chunks_are_named_beside_the_chain(line: dict[str, object]) -> None:
    trace = parse_trace(lines(line), "t")
    assert trace.requests[0].chunks == (8, None)
    assert trace.has_chunks
    assert trace.warnings == ()


def test_two_chunks_in_one_block_are_warned_of() -> None:
    trace = parse_trace(lines(*(GOOD | {"chunk_ids": [chunk, None]} for chunk in (8, 8, 7))), "t")
    assert trace.warnings == ("t: a block has two different chunk ids: line 3, block 0",)


def test_a_trace_may_have_no_chunks() -> None:
    trace = parse_trace(lines(GOOD), "t")
    assert trace.requests[0].chunks == ()
    assert not trace.has_chunks


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "expected a JSON object, found list"),
        (json.dumps({"timestamp": 1}), "no field hash_ids, input_length, output_length"),
        (json.dumps({"chat_id": 1}), "bailian schema: no field"),
        (json.dumps(CHAT), "bailian schema, but the lines above are mooncake"),
        (json.dumps(GOOD | {"hash_ids": []}), "hash_ids is empty"),
        (json.dumps(GOOD | {"hash_ids": [1, -1]}), "whole numbers"),
        (json.dumps(GOOD | {"hash_ids": [1, 1 << 64]}), "whole numbers from 0 to 2^64 - 1"),
        (json.dumps(GOOD | {"hash_ids": [1, 1]}), "holds a block twice"),
        (json.dumps(GOOD | {"hash_ids": "12"}), "must be a list"),
        (json.dumps(GOOD | {"input_length": 0}), "input_length must be a whole number, 1 or more, not 0"),
        (json.dumps(GOOD | {"output_length": 1.5}), "output_length must be a whole number"),
        (json.dumps(GOOD | {"timestamp": -1}), "timestamp must be a number, 0 or more"),
        (json.dumps(GOOD | {"timestamp": "1"}), "timestamp must be a number"),
        (
            '{"timestamp": NaN, "input_length": 1, "output_length": 1, "hash_ids": [1]}',
            "timestamp must be a number",
        ),
        (json.dumps(GOOD | {"timestamp": 1499}), "before the line above"),
        (json.dumps(GOOD | {"chunk_ids": 1}), "chunk_ids must be a list of whole numbers"),
        (json.dumps(GOOD | {"chunk_ids": [1.0, None]}), "chunk_ids must be a list of whole numbers"),
        (json.dumps(GOOD | {"chunk_ids": [-1, None]}), "chunk_ids must be a list of whole numbers"),
        (json.dumps(GOOD | {"chunk_ids": [1 << 64, None]}), "chunk_ids must be a list of whole numbers"),
        (json.dumps(GOOD | {"chunk_ids": [1]}), "one entry for each of the 2 blocks of hash_ids, not 1"),
        (json.dumps(GOOD | {"chunk_ids": []}), "one entry for each of the 2 blocks of hash_ids, not 0"),
        (json.dumps(GOOD | {"chunk_ids": [None, 4]}), "only the 1 full blocks of the input can be chunks"),
    ],
)
def test_bad_line_is_named(line: str, reason: str) -> None:
    with pytest.raises(TraceError) as error:
        parse_trace([*lines(GOOD), line], "some.jsonl")
    assert str(error.value).startswith("some.jsonl:2: ")
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("second", "warning"),
    [
        (GOOD | {"extra": 1}, "unknown field 'extra' ignored: line 2"),
        (GOOD | {"output_length": 0}, "output_length is 0: line 2"),
        (GOOD | {"timestamp": 99_000}, "gap without arrivals: line 2, 98 s"),
        (GOOD | {"input_length": 5000}, "chain does not fit input_length: line 2, 2 blocks, 5000 tokens"),
        (GOOD | {"hash_ids": [4, 1]}, "a block follows two different blocks: line 2, block 1"),
    ],
)
def test_oddities_are_warned_of(second: dict[str, object], warning: str) -> None:
    trace = parse_trace(lines(GOOD, second), "t")
    assert len(trace.requests) == 2
    assert trace.warnings == (f"t: {warning}",)


def placed(number: int, *after: int) -> dict[str, object]:
    place = {"session": 0, "number": number, "after": list(after), "think_s": 1.0}
    return GOOD | {"timestamp": 2000, "session": place}


@pytest.mark.parametrize("bad", [placed(4), placed(3), placed(5, 5), placed(6, 4, 7)])
def test_a_request_waits_for_earlier_ones_alone(bad: dict[str, object]) -> None:
    assert len(parse_trace(lines(placed(4, 1), placed(7, 4)), "t").requests) == 2
    with pytest.raises(TraceError, match=r"^t:2: session: (number|after) must"):
        parse_trace(lines(placed(4), bad), "t")


def test_many_warnings_are_counted() -> None:
    trace = parse_trace(lines(*[GOOD | {"extra": 1}] * 5), "t")
    assert trace.warnings == ("t: unknown field 'extra' ignored: line 1; line 2; line 3 (and 2 more)",)


def test_files(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        load_trace(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(TraceError, match="no requests"):
        load_trace(tmp_path / "empty.jsonl")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(TraceError, match="UTF-8"):
        load_trace(tmp_path / "binary.jsonl")


def test_generated_trace_reads_back(tmp_path: Path) -> None:
    trace = generate("agents", seed=3, requests=50)
    path = tmp_path / "agents.jsonl"
    path.write_text("".join(to_line(request) + "\n" for request in trace.requests))
    read = load_trace(path)
    assert read.requests == trace.requests
    assert read.warnings == ()


def test_blocks_are_cut() -> None:
    lines = [
        '{"timestamp": 0, "input_length": 1000, "output_length": 1, "hash_ids": [7, 18446744073709551615]}',
        '{"timestamp": 9, "input_length": 513, "output_length": 1, "hash_ids": [7, 3]}',
        '{"timestamp": 9, "input_length": 90, "output_length": 1, "hash_ids": [8]}',
        '{"timestamp": 9, "input_length": 9, "output_length": 1, "hash_ids": [7, 5, 6]}',
    ]
    cut = parse_trace(lines, "small").cut(128)
    assert cut.block_tokens == 128
    assert [len(request.blocks) for request in cut.requests] == [8, 5, 1, 9]
    first, second, third, odd = (request.blocks for request in cut.requests)
    assert first[:4] == second[:4] == odd[:4] == tuple(range(4))
    blocks = [block for blocks in (first, second[4:], third, odd[4:]) for block in blocks]
    assert len(set(blocks)) == len(blocks)
    assert max(blocks) < 4 * 6
    assert cut.cut(128) is cut


def test_chunks_are_cut_with_their_blocks() -> None:
    whole = generate("rag", 1, 60)
    for one, other in zip(whole.requests, whole.cut(256).requests, strict=True):
        for place, chunk in enumerate(other.chunks):
            assert (chunk is None) == (one.chunks[place // 2] is None)


def test_blocks_are_joined_by_the_last_of_each() -> None:
    joined = parse_trace(lines(GOOD | {"input_length": 1300, "hash_ids": [4, 9, 6]}), "t").cut(1024)
    assert joined.block_tokens == 1024
    assert joined.requests[0].blocks == (9, 6)


@pytest.mark.parametrize("tokens", [0, 100, 1000])
def test_blocks_are_cut_and_joined_evenly_only(tokens: int) -> None:
    with pytest.raises(TraceError, match=f"blocks of {tokens} tokens can't be made of blocks of 512"):
        generate("chat", requests=5).cut(tokens)


def test_window_keeps_the_past_and_compresses_time() -> None:
    trace = generate("chat", seed=1, requests=200)
    start_s = trace.requests[100].arrival_s
    window = trace.window(start_s, limit=20, speed=4.0)
    assert len(window.requests) == 20
    assert [r.blocks for r in window.past] == [r.blocks for r in trace.requests if r.arrival_s < start_s]
    assert window.requests[0].arrival_s == 0.0
    expected_s = (trace.requests[119].arrival_s - start_s) / 4.0
    assert window.requests[19].arrival_s == pytest.approx(expected_s)


@pytest.mark.parametrize("wrong", [{"start_s": 1e9}, {"start_s": -1.0}, {"limit": 0}, {"speed": 0.0}])
def test_window_refuses(wrong: dict[str, float]) -> None:
    with pytest.raises(TraceError):
        generate("chat", requests=5).window(**wrong)  # type: ignore[arg-type]


def test_seconds_where_milliseconds_are_read_are_warned_of() -> None:
    seconds = lines(*(GOOD | {"timestamp": second} for second in range(100)))
    (warning,) = parse_trace(seconds, "t").warnings
    assert warning == "t: 100 requests within 0.099 s: is `timestamp` in ms?"
    assert parse_trace(seconds[:99], "t").warnings == ()
    assert parse_trace(lines(*[GOOD] * 100), "t").warnings == ()
