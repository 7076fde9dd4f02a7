"""Parts of generated traces: requests before their blocks are numbered, in sessions, by shape.

A session is the list of requests with one cause: a conversation's turns, or an agent job's bursts and steps.
A prompt is a list of named segments, so equal segments in equal places make equal prefixes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple


class Draft(NamedTuple):
    """Request before its blocks are numbered; a segment is (name, tokens)."""

    arrival_s: float
    prompt: tuple[tuple[str, int], ...]
    output_tokens: int
    think_s: float = 0.0
    """Seconds from the answer to the session's first request until this one, if the shape has sessions; 0 for
    the first."""


Sessions = Iterator[list[Draft]]


@dataclass(frozen=True)
class Shape:
    """Named shape: its description, its requests per second, and its sessions."""

    name: str
    what: str
    requests_per_s: float
    sessions: Callable[[Random, float], Sessions]
    retrieved: str | None = None
    """Prefix of names of segments that are looked up in a corpus: full blocks of only those are chunks."""
    has_sessions: bool = False
    """Whether requests name their session and wait for the answer to its first request."""


def lognormal(rng: Random, median: float, sigma: float) -> int:
    """Return a positive whole number from a lognormal distribution with this median and sigma."""
    return max(1, round(median * math.exp(rng.gauss(0.0, sigma))))


def zipf_weights(count: int, exponent: float) -> list[float]:
    """Return the Zipf weights of the ranks 1 to `count`."""
    return [rank**-exponent for rank in range(1, count + 1)]


def starts(rng: Random, per_s: float) -> Iterator[float]:
    """Yield Poisson arrival times in seconds."""
    now_s = 0.0
    while True:
        now_s += rng.expovariate(per_s)
        yield now_s


def mixed(*streams: Sessions) -> Sessions:
    """Merge streams of sessions into one, in order of start."""
    return heapq.merge(*streams, key=lambda session: session[0].arrival_s)
