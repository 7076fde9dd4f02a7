"""Trace of many sessions at once: a seed draws which recorded sessions start, and when.

Sessions start at random (Poisson), in a random order, each once before any comes again. A session that comes
again is another session with blocks of its own. Two models compute different blocks of the same text. Two
sessions have blocks in common only within tools and system prompt, if model and numbers of tokens are equal.
Ids in the recordings say nothing across sessions, so this is an assumption. With `shares_prefix=False`,
sessions share nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from workload.sessions import Call, Session, parse_session
from workload.trace import InSession, Request, Schema, Trace, TraceError

Source = Callable[[], Iterator[tuple[str, object]]]
"""Function that reads one file and yields name and JSON value of each of its sessions."""
MAX_ACCESSES = 100_000_000
"""Largest number of block accesses of a trace that fits into memory."""
MAX_SESSIONS = 1_000_000
SESSIONS = "agentic"
"""Name of the schema of traces made of recorded sessions."""
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Service:
    """Service of recorded sessions: their rate, the service's duration, and what they share."""

    sessions_per_hour: float = 300.0
    hours: float = 1.0
    """Hours after which requests are left out."""
    shares_prefix: bool = True
    seed: int = 1
    block_tokens: int | None = None
    """Tokens of a block; None means as recorded. Smaller blocks are not cut here, but by `Trace.cut`."""


def serve_sessions(name: str, sources: Sequence[Source], service: Service) -> Trace:
    """Return the trace of a service whose sessions are drawn from `sources`; raises TraceError."""
    drawn = _Drawn(sources, service)
    table = _Blocks(service.shares_prefix)
    found: list[_Found] = []
    accesses, tokens = 0, 0
    end_s = service.hours * SECONDS_PER_HOUR
    for number, (start_s, session) in enumerate(drawn):
        if tokens and session.block_tokens != tokens:
            raise TraceError(
                f"{session.name}: blocks of {session.block_tokens} tokens, but others have {tokens}"
            )
        tokens = session.block_tokens
        last = {call.stream: place for place, call in enumerate(session.calls)}
        for place, blocks in enumerate(table.of(session)):
            call = session.calls[place]
            if start_s + call.t_s >= end_s:
                break  # calls are in order of time
            accesses += len(blocks)
            if accesses > MAX_ACCESSES:
                raise TraceError(
                    f"{name}: more than {MAX_ACCESSES:,} block accesses: choose fewer SESSIONS_PER_HOUR or "
                    "HOURS, or larger BLOCK_TOKENS"
                )
            shared = session.streams[call.stream].shared_tokens if service.shares_prefix else 0
            in_session = InSession(
                number, 0, (), call.think_s, call.stream, last[call.stream] == place, shared
            )
            found.append((start_s + call.t_s, number, place, call, blocks, in_session))
    if not found:
        raise TraceError(
            f"{name}: no session starts in {service.hours:g} h: choose more SESSIONS_PER_HOUR or HOURS"
        )
    found.sort(key=lambda one: one[:3])
    return Trace(name, Schema(SESSIONS, tokens, 1.0, frozenset()), tuple(_requests(found)))


_Found = tuple[float, int, int, Call, tuple[int, ...], InSession]
"""Call of a session: time in seconds, session, index in the session, call, chain, and place in the
session."""


def _requests(found: Sequence[_Found]) -> Iterator[Request]:
    numbers = {(session, place): number for number, (_, session, place, _, _, _) in enumerate(found)}
    for number, (arrival_s, session, _, call, blocks, in_session) in enumerate(found):
        after = tuple(numbers[session, before] for before in call.after)
        place = replace(in_session, number=number, after=after)
        yield Request(arrival_s, call.input_tokens, call.output_tokens, blocks, place=place)


class _Drawn:
    """Sessions with their start times; a session that comes again is read again, as memory can't hold all."""

    def __init__(self, sources: Sequence[Source], service: Service) -> None:
        self._sources, self._service = sources, service
        self._draw = Random(service.seed)

    def __iter__(self) -> Iterator[tuple[float, Session]]:
        service, start_s, count = self._service, 0.0, 0
        per_s = service.sessions_per_hour / SECONDS_PER_HOUR
        sessions = self._endless()
        while True:
            start_s += self._draw.expovariate(per_s)
            if start_s >= service.hours * SECONDS_PER_HOUR:
                return
            count += 1
            if count > MAX_SESSIONS:
                raise TraceError(
                    f"more than {MAX_SESSIONS:,} sessions: choose fewer SESSIONS_PER_HOUR or HOURS"
                )
            yield start_s, next(sessions)

    def _endless(self) -> Iterator[Session]:
        order = list(self._sources)
        order_of = self._draw
        while True:
            order_of.shuffle(order)
            for source in order:
                read = list(source())
                order_of.shuffle(read)
                for name, record in read:
                    yield parse_session(record, name, self._service.block_tokens)


class _Blocks:
    """Numbers of the blocks of all sessions, in the order in which they come."""

    def __init__(self, shares_prefix: bool) -> None:
        self._shares_prefix = shares_prefix
        self._shared: dict[tuple[str, int, int, int], int] = {}
        """Number of each shared block by model, tokens of tools, tokens of system prompt, and index."""
        self._next = 0

    def of(self, session: Session) -> Iterator[tuple[int, ...]]:
        """Yield the chain of each call of the next session."""
        prefixes: dict[int, tuple[int, int, int]] = {}
        """Tokens of tools and of system prompt, and index, of each shared block, by the session's id of
        it."""
        begun: set[int] = set()
        by_model: dict[str, dict[int, int]] = {}
        for call in session.calls:
            if call.stream not in begun and self._shares_prefix:
                begun.add(call.stream)
                stream = session.streams[call.stream]
                tokens = stream.tool_tokens, stream.system_tokens
                for place, block in enumerate(call.chain[: stream.shared_tokens // session.block_tokens]):
                    prefixes.setdefault(block, (*tokens, place))
            own = by_model.setdefault(call.model, {})
            for block in call.chain:
                if block not in own:
                    shared = prefixes.get(block)
                    own[block] = self._new() if shared is None else self._prefix((call.model, *shared))
            yield tuple(map(own.__getitem__, call.chain))

    def _prefix(self, key: tuple[str, int, int, int]) -> int:
        if key not in self._shared:
            self._shared[key] = self._new()
        return self._shared[key]

    def _new(self) -> int:
        self._next += 1
        return self._next - 1
