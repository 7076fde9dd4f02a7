import random
from collections import Counter, OrderedDict
from dataclasses import replace

import pytest

from workload import schedule
from workload.generate import generate
from workload.schedule import PLANNED, ScheduleError, make_scheduler
from workload.trace import InSession, Request

# Chat has one system prompt: routing by prefix alone leaves it all to those who had it first.
BALANCING = [name for name in PLANNED if name not in ("pinned", "spread")]


@pytest.mark.parametrize("name", BALANCING)
def test_same_seed_same_nodes_and_all_nodes_work(name: str) -> None:
    # Four requests a session.
    requests = [
        replace(request, place=InSession(number // 4, number))
        for number, request in enumerate(generate("chat", 1, 400).requests)
    ]
    first, second = make_scheduler(name, 4, seed=9), make_scheduler(name, 4, seed=9)
    nodes = [first.assign(request).node for request in requests]
    assert nodes == [second.assign(request).node for request in requests]
    tokens: Counter[int] = Counter()
    for node, request in zip(nodes, requests, strict=True):
        tokens[node] += request.input_tokens
    assert set(tokens) == {0, 1, 2, 3}
    assert max(tokens.values()) < 2 * sum(tokens.values()) / 4


def test_a_session_stays_at_its_node() -> None:
    scheduler = make_scheduler("sessions", 4)
    nodes: dict[int, int] = {}
    for number, request in enumerate(generate("chat", 1, 60).requests):
        session = number % 15
        node = scheduler.assign(replace(request, place=InSession(session, number))).node
        assert nodes.setdefault(session, node) == node
    assert set(nodes.values()) == {0, 1, 2, 3}


def test_sessions_have_to_be_named() -> None:
    with pytest.raises(ScheduleError, match="needs a trace that says which requests are of one session"):
        make_scheduler("sessions", 4).assign(generate("chat", 1, 1).requests[0])


def test_balancing_shares_out_tokens_more_evenly_than_turns_do() -> None:
    requests = generate("agents", 1, 300).requests

    def spread(name: str) -> float:
        scheduler, tokens = make_scheduler(name, 8), Counter[int]()
        for request in requests:
            tokens[scheduler.assign(request).node] += request.input_tokens
        return max(tokens.values()) / min(tokens.values())

    assert spread("balanced") < 1.1 < spread("round_robin")


def test_locality_keeps_conversations_together() -> None:
    requests = generate("chat", 1, 600).requests

    def local_blocks(name: str) -> int:
        scheduler, held, local = make_scheduler(name, 8), [set[int]() for _ in range(8)], 0
        for request in requests:
            node = scheduler.assign(request).node
            local += sum(block in held[node] for block in request.blocks)
            held[node].update(request.blocks)
        return local

    assert local_blocks("locality") > 1.5 * local_blocks("random")


def test_locality_chooses_as_a_comparison_of_all_nodes_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LOCALITY_BLOCKS", 60)  # so that nodes forget
    requests = generate("agents", 2, 400).requests
    scheduler, lot = make_scheduler("locality", 12, seed=3), random.Random(3)
    seen, computed = [OrderedDict[int, None]() for _ in range(12)], [0] * 12

    def prefix(node: int, blocks: tuple[int, ...]) -> int:
        return next((at for at, block in enumerate(blocks) if block not in seen[node]), len(blocks))

    for request in requests:
        shares = [1 - prefix(node, request.blocks) / len(request.blocks) for node in range(12)]
        costs = [
            (computed[node] + round(shares[node] * request.input_tokens), lot.random(), node)
            for node in range(12)
        ]
        computed_tokens, _, node = min(costs)
        assert scheduler.assign(request).node == node
        computed[node] = computed_tokens
        for block in request.blocks:
            seen[node][block] = None
            seen[node].move_to_end(block)
        while len(seen[node]) > 60:
            seen[node].popitem(last=False)


def test_a_router_at_another_pace_learns_later() -> None:
    requests = [Request(at_s, 512, 10, (1,)) for at_s in (0.0, 0.1, 0.2)]
    for pace, nodes in ((1.0, [0, 0, 0]), (5.0, [0, 1, 0])):
        scheduler = make_scheduler("pinned", 3, pace=pace)
        assert [scheduler.assign(request).node for request in requests] == nodes


def test_a_prefix_is_pinned_to_its_first_known_holder_or_spread_over_all() -> None:
    def asked(at_s: float, *blocks: int) -> Request:
        return Request(at_s, 512 * len(blocks), 10, blocks)

    # Two at once before anything is known go to two nodes; both then hold the prefix 7.
    requests = [asked(0.0, 7, 1), asked(0.0, 7, 2), *(asked(1.0 + n, 7, 10 + n) for n in range(4))]
    pinned, spread = make_scheduler("pinned", 3), make_scheduler("spread", 3)
    assert [pinned.assign(request).node for request in requests] == [0, 1, 0, 0, 0, 0]
    assert [spread.assign(request).node for request in requests] == [0, 1, 0, 1, 0, 1]
    assert pinned.assign(asked(9.0, 99)).node == 2  # unknown: in turn


def test_the_longest_prefix_counts() -> None:
    pinned = make_scheduler("pinned", 3)
    chains = [(7, 1), (8, 1), (7, 2, 3)]
    first = [pinned.assign(Request(0.0, 512, 1, chain)).node for chain in chains]
    assert first == [0, 1, 2]
    assert pinned.assign(Request(1.0, 512, 1, (7, 2, 4))).node == 2


def test_errors() -> None:
    with pytest.raises(ScheduleError, match="random, round_robin, balanced, locality"):
        make_scheduler("x", 2)
    with pytest.raises(ScheduleError, match="at least one node"):
        make_scheduler("random", 0)
