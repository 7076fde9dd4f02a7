"""What a node can tell of the blocks of recorded sessions of agents, request by request.

It knows the chain that a session or sub-agent asked for last, and when either ends. So it knows which blocks
are dead: those that the next chain does not have any more, and at the end all of them, but for those that
others of the session still ask for. Tools and system prompt are nobody's own: other sessions need them, so
they are to be retained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from workload.trace import Trace


@dataclass(frozen=True, slots=True)
class SessionHint:
    """What to tell when a request was answered."""

    dead: tuple[int, ...]
    """Blocks that its session will not ask for again, the last of their chain first."""
    shared: tuple[int, ...]
    """Blocks that lie wholly in tools and system prompt."""


def session_hints(trace: Trace) -> Iterator[SessionHint]:
    """Return a hint for each request of a trace; it says nothing of requests without a session."""
    chains: dict[int, dict[int, tuple[int, ...]]] = {}
    """By session and stream: the blocks of its own, as it asked for them last."""
    for request in trace.requests:
        place = request.place
        if place is None:
            yield SessionHint((), ())
            continue
        shared_blocks = place.shared_tokens // trace.block_tokens
        own = request.blocks[shared_blocks:]
        streams = chains.setdefault(place.session, {})
        gone = streams.pop(place.stream, ())
        streams[place.stream] = own
        if place.is_last:
            del streams[place.stream]
            gone = tuple(dict.fromkeys((*gone, *own)))
        alive = {block for chain in streams.values() for block in chain} if gone else set()
        dead = tuple(block for block in reversed(gone) if block not in alive)
        yield SessionHint(dead, request.blocks[:shared_blocks])
        if not streams:
            del chains[place.session]
