"""Many sessions at once: when they start, what they share, what waits for what."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.workload.test_sessions import call, session, sub_agent
from workload.session_service import Service, Source, serve_sessions
from workload.trace import Trace, TraceError
from workload.trace_files import load_trace

ONE = session(call(0, [1, 2, 3]), call(9, [1, 2, 3, 4], think_time=5.0), tool_tokens=64, system_tokens=70)


def sources(*records: dict[str, Any]) -> list[Source]:
    def read(number: int, record: dict[str, Any]) -> Iterator[tuple[str, object]]:
        yield f"{number}.json", record

    return [partial(read, number, record) for number, record in enumerate(records)]


def serve(*records: dict[str, Any], **how: Any) -> Trace:
    return serve_sessions("folder", sources(*records), Service(**({"sessions_per_hour": 40.0} | how)))


def by_session(trace: Trace) -> dict[int, list[tuple[int, ...]]]:
    chains: dict[int, list[tuple[int, ...]]] = {}
    for request in trace.requests:
        assert request.place is not None
        chains.setdefault(request.place.session, []).append(request.blocks)
    return chains


def test_sessions_start_by_seed() -> None:
    trace = serve(ONE, ONE)
    assert trace.requests == serve(ONE, ONE).requests
    assert trace.requests != serve(ONE, ONE, seed=2).requests
    assert [r.arrival_s for r in trace.requests] == sorted(r.arrival_s for r in trace.requests)
    assert 20 < len(by_session(trace)) < 60
    assert trace.block_tokens == 64
    assert trace.requests[-1].arrival_s < 3600


def test_sessions_share_whole_blocks_of_tools_and_system_prompt_of_the_same_model_and_counts() -> None:
    chains = list(by_session(serve(ONE, ONE)).values())
    first, second = chains[0], chains[1]
    assert first[1][:3] == first[0]
    assert first[0][:2] == second[0][:2]  # 134 tokens are two blocks of 64
    assert not set(first[1][2:]) & set(second[1][2:])


@pytest.mark.parametrize(
    "other",
    [
        session(call(0, [1, 2, 3], model="haiku"), tool_tokens=64, system_tokens=70),
        session(call(0, [1, 2, 3]), tool_tokens=64, system_tokens=71),
        session(call(0, [1, 2, 3]), tool_tokens=65, system_tokens=70),
        session(call(0, [1, 2, 3])),
    ],
)
def test_others_share_nothing(other: dict[str, Any]) -> None:
    seen: dict[int, set[tuple[int, ...]]] = {}
    for chains in by_session(serve(ONE, other)).values():
        for chain in chains:
            seen.setdefault(len(chains), set()).add(chain)
    ones = {block for chain in seen[2] for block in chain}
    others = {block for chain in seen[1] for block in chain}
    assert not ones & others


def test_everything_may_be_private() -> None:
    blocks = [block for chains in by_session(serve(ONE, shares_prefix=False)).values() for block in chains[0]]
    assert len(set(blocks)) == len(blocks)


def test_a_sub_agent_shares_what_its_session_says_and_its_own_prefix_with_others() -> None:
    with_sub = session(call(0, [1]), sub_agent(3, call(0, [7, 8]), tool_tokens=64), call(9, [1, 8]))
    del with_sub["requests"][2]
    chains = list(by_session(serve(with_sub)).values())
    assert chains[0][1][0] == chains[1][1][0]
    assert chains[0][1][1] != chains[1][1][1]
    assert chains[0][0] != chains[1][0]  # the parent names no shared prefix


def test_another_model_computes_another_block_of_the_same_text() -> None:
    changed = session(call(0, [1, 2]), call(9, [1, 2], model="haiku"))
    first, second = next(iter(by_session(serve(changed)).values()))
    assert not set(first) & set(second)


def test_requests_name_those_before_them_by_number() -> None:
    trace = serve(ONE)
    numbers = {r.place.number: r for r in trace.requests if r.place}
    assert sorted(numbers) == list(range(len(trace.requests)))
    follower = next(r for r in trace.requests if r.place and r.place.after)
    assert follower.place is not None
    (before,) = follower.place.after
    assert numbers[before].blocks == follower.blocks[:3]
    assert follower.place.think_s == 5.0
    assert all(r.place is not None and not r.place.after for r in trace.open_loop().requests)
    assert [r.blocks for r in trace.open_loop().requests] == [r.blocks for r in trace.requests]


def test_think_time_is_as_fast_as_the_trace() -> None:
    fast = serve(ONE).window(0.0, None, 5.0)
    assert {r.place.think_s for r in fast.requests if r.place and r.place.after} == {1.0}


def test_blocks_are_joined_and_cut() -> None:
    joined = serve(ONE, block_tokens=128)
    assert joined.block_tokens == 128
    assert joined.cut(32).block_tokens == 32
    assert [len(r.blocks) for r in joined.requests] == [-(-len(r.blocks) // 2) for r in serve(ONE).requests]


def test_what_makes_no_service_is_refused() -> None:
    with pytest.raises(TraceError, match=r"no session starts in 0\.001 h"):
        serve(ONE, hours=0.001)
    other = {**ONE, "block_size": 32, "requests": [call(0, [1], **{"in": 32})]}
    with pytest.raises(TraceError, match=r"\.json: blocks of (32|64) tokens, but others have (32|64)"):
        serve(ONE, other)


def test_a_folder_of_sessions_is_a_trace(tmp_path: Path) -> None:
    for name in ("b.json", "a.json"):
        (tmp_path / name).write_text(json.dumps(ONE, indent=1))
    (tmp_path / "notes.txt").write_text("not a session")
    trace = load_trace(tmp_path, Service(40.0))
    assert trace.has_sessions
    lines = tmp_path.parent / "sessions.jsonl"
    lines.write_text(f"{json.dumps(ONE)}\n{json.dumps(ONE)}\n")
    assert len(load_trace(lines, Service(40.0)).requests) == len(trace.requests)


def test_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no sessions in it: there is no file named \*\.json"):
        load_trace(tmp_path)
    (tmp_path / "broken.json").write_text('{"requests": [')
    with pytest.raises(TraceError, match=r"broken\.json:1: not JSON"):
        load_trace(tmp_path)
    (tmp_path / "broken.json").write_text(json.dumps(session(call(5, [1]), call(1, [1]))))
    with pytest.raises(TraceError, match=r"broken\.json: request 2: comes at 1 s"):
        load_trace(tmp_path)
    (tmp_path / "broken.json").write_text("")
    with pytest.raises(TraceError, match=r"broken\.json: no session in it"):
        load_trace(tmp_path)
    (tmp_path / "link.json").symlink_to(tmp_path / "broken.json")
    with pytest.raises(TraceError, match=r"link\.json: a symbolic link"):
        load_trace(tmp_path)
