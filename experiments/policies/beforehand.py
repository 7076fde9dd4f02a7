"""What `reuse` may know of reuse beforehand when a trace is replayed: nothing that was counted on that trace.

`controller/policies/known.npz` has counts of mixes of drawn services, and of the whole conversation trace
published with Mooncake. A replay of that trace, or of a piece of it, goes without its counts. What it is made
of is known by some of its requests (`conversation_requests.txt`), by how many tokens these ask for and get:
cut out, thinned out, told from another second on or with other numbers for its blocks, a piece still has
those."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from controller.policies.reuse_prior import CONVERSATION, Counts, shipped
from workload.trace import Request, Trace

COUNTED_ON = Path(__file__).with_name("conversation_requests.txt")
"""`marks` of the conversation trace."""
MARKED = 16
"""One request in so many is known. Of 124 pieces of the trace, all along it, one of 100 requests each is not
recognised, of 200 requests all are."""


def marks(requests: Sequence[Request]) -> list[str]:
    """Of one request in MARKED, whichever trace it is in."""
    lengths = (f"{request.input_tokens} {request.output_tokens}" for request in requests)
    digests = (sha256(both.encode()).hexdigest()[:8] for both in lengths)
    return [digest for digest in digests if int(digest, 16) % MARKED == 0]


@cache
def counted_on() -> frozenset[str]:
    """Of the requests that the counts come from."""
    return frozenset(COUNTED_ON.read_text().split())


def is_counted(trace: Trace) -> bool:
    """Whether the counts that `reuse` comes with were made on this very trace, or more than it: half of the
    requests that could be known are."""
    found = marks(trace.requests)
    return bool(found) and 2 * sum(mark in counted_on() for mark in found) >= len(found)


def known_of_others() -> list[Counts]:
    """What `reuse` comes with, but for counts of the conversation trace."""
    return [counts for name, counts in shipped().items() if name != CONVERSATION]


def known_for(trace: Trace) -> list[Counts]:
    """What `reuse` comes with, but for counts of this very trace."""
    return known_of_others() if is_counted(trace) else list(shipped().values())


def in_words(trace: Trace) -> str:
    """What `reuse` knows beforehand in a replay of the trace."""
    drawn = (
        f"{trace.name}: what reuse knows beforehand was counted on {len(known_of_others())} mixes of drawn "
        "services"
    )
    if is_counted(trace):
        return (
            f"{drawn}; counts of the conversation trace are left out, as this is that trace or a piece of it"
        )
    return f"{drawn} and on the conversation trace published with Mooncake"
