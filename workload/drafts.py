"""What generated traces are made of: requests before their blocks are numbered, in sessions, by shape.

A session is the list of requests that one cause brings (a conversation's turns, an agent job's bursts and
steps); a prompt is a list of named segments, so equal segments in equal places make equal prefixes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple


class Draft(NamedTuple):
    """A request before its blocks are numbered; a segment is (name, tokens)."""

    arrival_s: float
    prompt: tuple[tuple[str, int], ...]
    output_tokens: int
    think_s: float = 0.0
    """Of a shape with sessions: from the answer to the session's first request on; 0 for that one."""


Sessions = Iterator[list[Draft]]


@dataclass(frozen=True)
class Shape:
    """A named shape: what it is like, how many requests a second it brings, and its sessions."""

    name: str
    what: str
    requests_per_s: float
    sessions: Callable[[Random, float], Sessions]
    retrieved: str | None = None
    """How names of segments begin that are looked up in a corpus: blocks of nothing else are chunks."""
    has_sessions: bool = False
    """Whether requests say which session they are of, and wait for the answer to its first one."""


def lognormal(rng: Random, median: float, sigma: float) -> int:
    """Return a positive whole number around `median`, sigma in log space."""
    return max(1, round(median * math.exp(rng.gauss(0.0, sigma))))


def zipf_weights(count: int, exponent: float) -> list[float]:
    """Weights of ranks 1..count."""
    return [rank**-exponent for rank in range(1, count + 1)]


def starts(rng: Random, per_s: float) -> Iterator[float]:
    """Poisson arrival times."""
    now_s = 0.0
    while True:
        now_s += rng.expovariate(per_s)
        yield now_s


def mixed(*streams: Sessions) -> Sessions:
    """Several streams of sessions as one, in order of start."""
    return heapq.merge(*streams, key=lambda session: session[0].arrival_s)
