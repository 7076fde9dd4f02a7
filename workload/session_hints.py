"""Hints that a node can give about the blocks of recorded agents' sessions, request by request.

A node knows the chain that a session or sub-agent asked for last, and when either ends. It therefore knows
which blocks are dead: those that the next chain lacks and, at the end, all of them. Blocks that other streams
of the session still ask for are not dead. Other sessions need tools and system prompt, so those are to be
retained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from workload.trace import Trace


@dataclass(frozen=True, slots=True)
class SessionHint:
    """Blocks that a node can hint at once a request is answered."""

    dead: tuple[int, ...]
    """Blocks that the session will not ask for again, the last of a chain first."""
    shared: tuple[int, ...]
    """Blocks that lie entirely within tools and system prompt."""


@dataclass(slots=True)
class _Session:
    chains: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Chain that each stream asked for last, by stream."""
    shared: set[int] = field(default_factory=set)
    """Blocks of tools and system prompts of any of its streams."""


def session_hints(trace: Trace) -> Iterator[SessionHint]:
    """Yield a hint for each request of a trace; it is empty for requests without a session."""
    sessions: dict[int, _Session] = {}
    for request in trace.requests:
        place = request.place
        if place is None:
            yield SessionHint((), ())
            continue
        shared = request.blocks[: place.shared_tokens // trace.block_tokens]
        session = sessions.setdefault(place.session, _Session())
        session.shared.update(shared)
        gone = session.chains.pop(place.stream, ())
        if place.is_last:
            gone = tuple(dict.fromkeys((*gone, *request.blocks)))
        else:
            session.chains[place.stream] = request.blocks
        alive = session.shared.union(*session.chains.values()) if gone else session.shared
        yield SessionHint(tuple(block for block in reversed(gone) if block not in alive), shared)
        if not session.chains:
            del sessions[place.session]
