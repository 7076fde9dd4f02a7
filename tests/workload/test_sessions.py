"""One session of an agent: what waits for what, and what is refused."""

import json
from typing import Any

import pytest

from workload.sessions import is_session, parse_session
from workload.trace import TraceError


def call(t: float, chain: list[int], **fields: Any) -> dict[str, Any]:
    made = {"t": t, "type": "n", "model": "opus", "in": 64 * len(chain), "out": 9, "hash_ids": chain}
    return made | {"api_time": 2.0} | fields


def session(*requests: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "a", "block_size": 64, "hash_id_scope": "local", "requests": list(requests)} | fields


def sub_agent(t: float, *requests: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"t": t, "type": "subagent", "duration_ms": 5000, "requests": list(requests)} | fields


def test_a_call_waits_for_the_answer_before_it() -> None:
    parsed = parse_session(session(call(0, [1, 2]), call(12, [1, 2, 3], think_time=9.0)), "a.json")
    first, second = parsed.calls
    assert (first.after, first.think_s) == ((), 0.0)
    assert (second.after, second.think_s) == ((0,), 9.0)
    assert list(second.chain) == [1, 2, 3]


def test_think_time_follows_from_times_where_it_is_not_said() -> None:
    parsed = parse_session(session(call(0, [1]), call(12, [1, 2])), "a.json")
    assert parsed.calls[1].think_s == 10.0


def test_sub_agents_run_beside_their_parent_which_waits_for_those_that_had_ended() -> None:
    parsed = parse_session(
        session(
            call(0, [1]),
            sub_agent(3, call(0, [7]), call(3, [7, 8]), tool_tokens=64),
            sub_agent(3, call(0, [9]), duration_ms=90_000),
            call(9, [1, 2], think_time=1.0),
        ),
        "a.json",
    )
    by_chain = {tuple(one.chain): (place, one) for place, one in enumerate(parsed.calls)}
    parent, first, last, other = (by_chain[chain] for chain in ((1,), (7,), (7, 8), (9,)))
    assert (first[1].t_s, first[1].after, first[1].think_s) == (3.0, (parent[0],), 1.0)
    assert other[1].after == (parent[0],)
    assert last[1].after == (first[0],)
    after = by_chain[1, 2][1]
    assert set(after.after) == {parent[0], last[0]}
    assert after.think_s == 1.0  # 9 s less the end of the sub-agent at 8 s
    assert parsed.streams[1].tool_tokens == 64


def test_times_of_sub_agents_may_count_from_the_start_of_the_session() -> None:
    parsed = parse_session(session(call(0, [1]), sub_agent(30, call(31, [7]), call(40, [7, 8]))), "a.json")
    assert [one.t_s for one in parsed.calls] == [0.0, 31.0, 40.0]


def test_blocks_are_joined_by_the_last_of_each() -> None:
    parsed = parse_session(session(call(0, [1, 2, 3, 4, 5])), "a.json", block_tokens=128)
    assert (parsed.block_tokens, list(parsed.calls[0].chain)) == (128, [2, 4, 5])


@pytest.mark.parametrize(
    ("record", "where", "reason"),
    [
        ([], "session", "expected a JSON object, found list"),
        (session(), "session", "no requests in it"),
        (session(call(0, [1]), block_size=0), "session", "block_size must be a whole number from 1"),
        ({"requests": []}, "session", "no field block_size"),
        (session(call(0, [1]), hash_id_scope="global"), "session", "hash_id_scope must be"),
        (session(call(0, [1]), tool_tokens=-1), "session", "tool_tokens must be a whole number from 0"),
        (session(call(0, [1]), tool_tokens=10**15), "session", "tool_tokens must be a whole number"),
        (session(3), "request 1", "expected a JSON object, found int"),  # type: ignore[arg-type]
        (
            session(call(0, [1]), call(5, [1]), call(4, [1])),
            "request 3",
            "comes at 4 s, before the one before",
        ),
        (session(call(-1, [1])), "request 1", "t must be seconds"),
        (session(call(1e15, [1])), "request 1", "t must be seconds"),
        (session(call(0, [1], type="x")), "request 1", "type must be"),
        (session(call(0, [1], model=7)), "request 1", "model must be a name"),
        (session(call(0, [1], model="m" * 300)), "request 1", "model must be a name"),
        (session(call(0, [1], think_time=float("inf"))), "request 1", "think_time must be seconds"),
        (session(sub_agent(3, call(5, [2]), duration_ms="1")), "request 1", "duration_ms must be milli"),
        (session(sub_agent(3, duration_ms=float("nan"))), "request 1", "duration_ms must be milliseconds"),
        (session(call(0, [])), "request 1", "in must be a whole number from 1"),
        (session(call(0, [], **{"in": 70})), "request 1", "hash_ids is empty"),
        (session(call(0, [1], **{"in": 640})), "request 1", "has 1 blocks, but 640 tokens fill 10 of 64"),
        (session(call(0, [1, 2], **{"in": 60})), "request 1", "has 2 blocks, but 60 tokens fill 0 of 64"),
        (session(call(0, [1], **{"in": 10**15})), "request 1", "in must be a whole number"),
        (session(call(0, [1], out=10**15)), "request 1", "out must be a whole number"),
        (session(call(0, [1, -2])), "request 1", "whole numbers from 0"),
        (session(call(0, [1, 2**64])), "request 1", "whole numbers from 0"),
        (session(call(0, [1, 1])), "request 1", "holds a block twice"),
        (session(call(0, [1, 2]), call(1, [3, 2])), "request 2", "block 2 follows another block"),
        (session(call(0, [1], api_time=-3)), "request 1", "api_time must be seconds"),
        (session(call(0, [1]), call(5, [1], think_time="x")), "request 2", "think_time must be seconds"),
        (
            session(sub_agent(3, call(5, [2]), call(4, [2]))),
            "request 1, request 2",
            "before the one before it",
        ),
        (session(sub_agent(3, sub_agent(1))), "request 1, request 1", "calls, not sub-agents"),
        (session(sub_agent(3, call(0, [1]), requests=4)), "request 1", "requests must be a list"),
    ],
)
def test_bad_sessions_are_refused_by_request(record: object, where: str, reason: str) -> None:
    with pytest.raises(TraceError) as error:
        parse_session(record, "bad.json")
    assert str(error.value).startswith(f"bad.json: {where}: ")
    assert reason in str(error.value)


@pytest.mark.parametrize("name", ["t", "model", "in", "out", "hash_ids", "type"])
def test_every_field_is_needed(name: str) -> None:
    broken = call(0, [1])
    del broken[name]
    with pytest.raises(TraceError, match="request 1"):
        parse_session(session(broken), "bad.json")


def test_a_session_is_told_from_a_request() -> None:
    assert is_session(json.loads(json.dumps(session(call(0, [1])))))
    assert not is_session({"timestamp": 0, "hash_ids": [1]})
