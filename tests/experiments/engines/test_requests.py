"""What the engines are asked."""

from __future__ import annotations

from collections import Counter

from experiments.engines.options import parse_options
from experiments.engines.requests import NODES, make_requests

OPTIONS = parse_options(
    ["--requests", "200", "--prefixes", "4", "--prefix-tokens", "64", "--suffix-tokens", "5"]
)


def test_each_prefix_comes_first_once_and_the_engines_take_turns() -> None:
    requests = make_requests(OPTIONS)
    prefixes = [tuple(request.tokens[:64]) for request in requests.first]
    assert len(set(prefixes)) == 4
    assert {request.node for request in requests.first} == {NODES[0]}
    assert [request.node for request in requests.trace[:4]] == [NODES[1], NODES[0], NODES[1], NODES[0]]
    assert all(len(request.tokens) == 69 for request in (*requests.first, *requests.trace))
    uses = Counter(tuple(request.tokens[:64]) for request in requests.trace)
    assert set(uses) == set(prefixes)
    assert uses[prefixes[0]] > uses[prefixes[3]]  # Zipf's law


def test_suffixes_are_a_requests_own_and_the_seed_decides() -> None:
    requests = make_requests(OPTIONS)
    assert len({tuple(request.tokens[64:]) for request in requests.trace}) == len(requests.trace)
    assert make_requests(OPTIONS) == requests
    assert make_requests(parse_options(["--seed", "2"])) != make_requests(parse_options(["--seed", "1"]))
