"""What `reuse` may know of reuse beforehand when a trace is replayed: nothing that was counted on that trace.

`controller/policies/conversation.csv` has counts of the whole conversation trace published with Mooncake. A
replay of that trace, or of its first part, goes without them."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from controller.policies.reuse_parts import Parts
from workload.trace import Trace

KNOWN_BY = 1000
"""Requests, the first of a trace, by whose blocks it is told from others."""
COUNTED_ON = "66a14d5fe9211126"
"""`digest` of the trace that `conversation.csv` was counted on."""


def digest(trace: Trace) -> str:
    """Of the blocks that its first requests ask for, whenever they come."""
    chains = [request.blocks for request in trace.requests[:KNOWN_BY]]
    return sha256(repr(chains).encode()).hexdigest()[:16]


def is_counted(trace: Trace) -> bool:
    """Whether the counts that `reuse` comes with were made on this very trace."""
    return digest(trace) == COUNTED_ON


def without_leak(parts: Parts, trace: Trace) -> Parts:
    """The same parts, but for counts of this very trace."""
    return replace(parts, known=parts.known and not is_counted(trace))


def in_words(trace: Trace) -> str:
    """What `reuse` knows beforehand in a replay of the trace."""
    if is_counted(trace):
        return (
            f"{trace.name}: reuse knows nothing beforehand, as controller/policies/conversation.csv was "
            "counted on this very trace"
        )
    return (
        f"{trace.name}: what reuse knows beforehand was counted on the conversation trace published with "
        "Mooncake (controller/policies/conversation.csv)"
    )
