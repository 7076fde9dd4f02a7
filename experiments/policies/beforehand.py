"""What `reuse` may know of reuse beforehand when a trace is replayed: nothing that was counted on that trace.

`controller/policies/conversation.csv` has counts of the whole conversation trace published with Mooncake. A
replay of that trace, or of a piece of it, goes without them. What it is made of is known by some of its
requests (`conversation_requests.txt`), by how many tokens these ask for and get: cut out, thinned out, told
from another second on or with other numbers for its blocks, a piece still has those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from controller.policies.reuse_parts import Parts
from workload.trace import Request, Trace

COUNTED_ON = Path(__file__).with_name("conversation_requests.txt")
"""`marks` of the trace that `conversation.csv` was counted on."""
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


def without_leak(parts: Parts, trace: Trace) -> Parts:
    """The same parts, but for counts of this very trace."""
    return replace(parts, known=parts.known and not is_counted(trace))


def in_words(trace: Trace) -> str:
    """What `reuse` knows beforehand in a replay of the trace."""
    if is_counted(trace):
        return (
            f"{trace.name}: reuse knows nothing beforehand, as controller/policies/conversation.csv was "
            "counted on this very trace, or on one that it is a piece of"
        )
    return (
        f"{trace.name}: what reuse knows beforehand was counted on the conversation trace published with "
        "Mooncake (controller/policies/conversation.csv)"
    )
