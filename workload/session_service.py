"""A trace of many sessions at once: which of the recorded ones start, and when, is drawn by a seed.

Sessions start at random (Poisson), in an order drawn from all there are, each once before any comes again.
Whoever comes again is another session with blocks of its own. A block is a model's: what two models compute
of one text are two blocks. Of two sessions only the blocks that lie wholly in tools and system prompt are
the same, where model and counts of tokens are; ids in the recordings say nothing across sessions, so this is
an assumption, and `shares_prefix=False` is the other: nothing is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from workload.sessions import Call, Session, parse_session
from workload.trace import InSession, Request, Schema, Trace, TraceError

Source = Callable[[], Iterator[tuple[str, object]]]
"""Reads one file: name and JSON value of each of its sessions."""
MAX_ACCESSES = 100_000_000
"""Block accesses of a trace: beyond, it does not fit into memory."""
MAX_SESSIONS = 1_000_000
SESSIONS = "agentic"
"""Name of the schema of traces that are made of recorded sessions."""
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Service:
    """How recorded sessions are served: how many, for how long, and what they share."""

    sessions_per_hour: float = 300.0
    hours: float = 1.0
    """What comes later is left out."""
    shares_prefix: bool = True
    seed: int = 1
    block_tokens: int | None = None
    """Tokens of a block; None: as recorded. Smaller ones are not cut here (`Trace.cut`)."""


def serve_sessions(name: str, sources: Sequence[Source], service: Service) -> Trace:
    """Return the trace of a service whose sessions are drawn from those of `sources`. Raises TraceError."""
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
"""A call: when it comes, its session and place in it, its chain, and what its session says of it."""


def _requests(found: Sequence[_Found]) -> Iterator[Request]:
    numbers = {(session, place): number for number, (_, session, place, _, _, _) in enumerate(found)}
    for number, (arrival_s, session, _, call, blocks, in_session) in enumerate(found):
        after = tuple(numbers[session, before] for before in call.after)
        place = replace(in_session, number=number, after=after)
        yield Request(arrival_s, call.input_tokens, call.output_tokens, blocks, place=place)


class _Drawn:
    """Sessions with their starts. A session that comes again is read again: all of them do not fit into
    memory."""

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
    """Numbers the blocks of all sessions, in the order in which they come."""

    def __init__(self, shares_prefix: bool) -> None:
        self._shares_prefix = shares_prefix
        self._shared: dict[tuple[str, int, int, int], int] = {}
        """By model, tokens of tools, tokens of system prompt and place."""
        self._next = 0

    def of(self, session: Session) -> Iterator[tuple[int, ...]]:
        """The chain of each call of a session that comes now."""
        prefixes: dict[int, tuple[int, int, int]] = {}
        """Blocks of tools and system prompt, as the session numbers them."""
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
