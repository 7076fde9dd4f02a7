"""Shapes in which many readers need one prefix at once."""

import json

import pytest

from workload.fan_in import FAN_IN, ShapeError
from workload.generate import GenerateError, generate, to_line
from workload.shapes import find_shape, played_shape
from workload.trace import Request
from workload.trace_lines import parse_trace


def episodes(shape: str, requests: int = 200) -> list[tuple[Request, list[Request]]]:
    """Writers and readers of whole episodes."""
    found: dict[int, list[Request]] = {}
    for request in generate(shape, 1, requests).requests:
        assert request.place is not None
        found.setdefault(request.place.session, []).append(request)
    readers = max(len(group) for group in found.values())
    return [(group[0], group[1:]) for group in found.values() if len(group) == readers]


@pytest.mark.parametrize("name", FAN_IN)
def test_readers_wait_for_their_writer_and_need_its_blocks(name: str) -> None:
    shape = FAN_IN[name]
    whole = episodes(name)
    assert whole
    for writer, readers in whole:
        assert len(readers) == shape.readers
        assert writer.place is not None
        full = writer.input_tokens // 512
        for reader in readers:
            assert reader.place is not None
            assert reader.place.after == (writer.place.number,)
            assert shape.lead_ms <= 1e3 * reader.place.think_s <= shape.lead_ms + shape.within_ms
            assert reader.blocks[:full] == writer.blocks[:full]
            assert (reader.blocks == writer.blocks) == (not shape.own_tokens)


def test_parameters_are_set_behind_the_name() -> None:
    ((_, readers), *_) = episodes("swarm:sub_agents=5,within_ms=0,common_tokens=512,prefix_tokens=1024", 60)
    assert len(readers) == 5
    assert len({reader.arrival_s for reader in readers}) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("swarm:agents=5", "swarm has no parameter 'agents': choose of sub_agents, within_ms"),
        ("swarm:sub_agents=0", "sub_agents must be from 1 to 1,024, not 0"),
        ("swarm:sub_agents=many", "sub_agents must be a number, not 'many'"),
        ("swarm:within_ms=nan", "within_ms must be from 0"),
        ("chat:turns=5", "chat has no parameters"),
        ("bees", "there is no 'bees': choose one of agents"),
    ],
)
def test_what_does_not_exist_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ShapeError, match=reason):
        find_shape(text)
    with pytest.raises(GenerateError, match=reason):
        generate(text, 1, 5)
    with pytest.raises(ShapeError):
        played_shape("flood")


def test_sessions_read_back() -> None:
    trace = generate("rollouts", 1, 40)
    read = parse_trace([to_line(request) for request in trace.requests], "t")
    assert read.requests == trace.requests
    assert json.loads(to_line(trace.requests[-1]))["session"]["after"]
