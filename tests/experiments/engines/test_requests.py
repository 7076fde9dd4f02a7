"""What the engines are asked."""

from __future__ import annotations

from collections import Counter

from experiments.engines.options import parse_options
from experiments.engines.requests import NODES, make_asks

OPTIONS = parse_options(
    ["--requests", "200", "--prefixes", "4", "--prefix-tokens", "64", "--suffix-tokens", "5"]
)


def test_each_prefix_comes_first_once_and_the_engines_take_turns() -> None:
    asks = make_asks(OPTIONS)
    prefixes = [tuple(ask.tokens[:64]) for ask in asks.first]
    assert len(set(prefixes)) == 4
    assert {ask.node for ask in asks.first} == {NODES[0]}
    assert [ask.node for ask in asks.trace[:4]] == [NODES[1], NODES[0], NODES[1], NODES[0]]
    assert all(len(ask.tokens) == 69 for ask in (*asks.first, *asks.trace))
    uses = Counter(tuple(ask.tokens[:64]) for ask in asks.trace)
    assert set(uses) == set(prefixes)
    assert uses[prefixes[0]] > uses[prefixes[3]]  # Zipf's law


def test_suffixes_are_a_requests_own_and_the_seed_decides() -> None:
    asks = make_asks(OPTIONS)
    assert len({tuple(ask.tokens[64:]) for ask in asks.trace}) == len(asks.trace)
    assert make_asks(OPTIONS) == asks
    assert make_asks(parse_options(["--seed", "2"])) != make_asks(parse_options(["--seed", "1"]))
