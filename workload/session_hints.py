"""What a node can tell of the blocks of recorded sessions of agents, request by request.

It knows the chain that a session or sub-agent asked for last, and when either ends. So it knows which blocks
are dead: those that the next chain does not have any more, and at the end all of them, but for those that
others of the session still ask for. Tools and system prompt are nobody's own: other sessions need them, so
they are to be retained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from workload.trace import Trace


@dataclass(frozen=True, slots=True)
class SessionHint:
    """Blocks that a node can name to the pool once a request is answered, by what becomes of them."""

    dead: tuple[int, ...]
    """Blocks that its session will not ask for again, the last of their chain first."""
    shared: tuple[int, ...]
    """Blocks that lie wholly in tools and system prompt."""


@dataclass(slots=True)
class _Session:
    chains: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By stream, as it asked for them last."""
    shared: set[int] = field(default_factory=set)
    """Blocks of tools and system prompts of any of its streams."""


def session_hints(trace: Trace) -> Iterator[SessionHint]:
    """Return a hint for each request of a trace; it says nothing of requests without a session."""
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
