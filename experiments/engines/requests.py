"""Requests to the engines: first each prefix once, to the first engine, then a trace over both. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.engines.model import VOCABULARY

if TYPE_CHECKING:
    from experiments.engines.options import EnginesOptions

NODES = ("node1", "node2")


@dataclass(frozen=True, slots=True)
class Request:
    """Request to the engine on a node."""

    node: str
    tokens: list[int]


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of a run, the same in every mode."""

    first: list[Request]
    """First request of each prefix, which node1 computes in every mode."""
    trace: list[Request]
    """Requests to the engines in turns, one after the other, with prefixes by Zipf's law."""


def make_requests(options: EnginesOptions) -> Requests:
    """Make the requests from the seed alone."""
    choice = random.Random(options.seed)

    def tokens(count: int) -> list[int]:
        return [choice.randrange(2, VOCABULARY) for _ in range(count)]

    prefixes = [tokens(options.prefix_tokens) for _ in range(options.prefixes)]
    weights = [1 / rank for rank in range(1, options.prefixes + 1)]
    first = [Request(NODES[0], prefix + tokens(options.suffix_tokens)) for prefix in prefixes]
    trace = []
    for index in range(options.requests):
        (prefix,) = choice.choices(prefixes, weights)
        trace.append(Request(NODES[(index + 1) % len(NODES)], prefix + tokens(options.suffix_tokens)))
    return Requests(first, trace)
