"""Agents' sessions in the schema of kv-cache-tester, which aiperf and SemiAnalysis' data sets use, too.

A session is a JSON object. It has `block_size`, `hash_id_scope` ("local": ids say nothing across sessions),
`tool_tokens` and `system_tokens` (with which every prompt begins), and `requests` in order of time. A request
has `t` (seconds from the session's start), `type` ("n" or "s"), `model`, `in` and `out` (tokens) and
`hash_ids`, the chain of its blocks; `api_time` and `think_time` (seconds) are optional. A request of type
"subagent" is a session inside, with `t`, `duration_ms`, `tool_tokens`, `system_tokens` and `requests`. Their
times count from its own start, or in some data sets from the session's. Other fields are ignored.

A call waits for the answer to the previous call of its stream. A sub-agent's first call waits for its
parent's last call before it. The parent's next call waits for the sub-agents that had ended by then.

Errors name file and request: missing or mistyped fields, times that go backwards, chains without blocks, with
a block twice, or with fewer or more blocks than the tokens fill, and blocks behind another parent than
before.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workload.trace import MAX_TOKENS, TraceError, is_number

MAX_CALLS = 100_000
"""Largest number of calls of a session."""
MAX_T_S = 1e8
MAX_BLOCK_SIZE = 1 << 16
ENDED_WITHIN_S = 1.0
"""Tolerance in seconds, as some times are whole seconds: a sub-agent that ends so soon after a call begins
counts as ended before it."""
CALL_TYPES = ("n", "s")
SUB_AGENT = "subagent"
MAX_ID = 1 << 63
MAX_MODEL_CHARS = 256
"""Largest number of characters of a model's name."""


@dataclass(frozen=True, slots=True)
class Call:
    """Request of a session; times are in seconds from the session's start."""

    t_s: float
    model: str
    input_tokens: int
    output_tokens: int
    chain: array[int]
    """Ids of its blocks, as the session numbers them."""
    stream: int
    """Number of its stream: 0 is the session's own, then follows one for each sub-agent."""
    after: tuple[int, ...]
    """Indices in `Session.calls` of the calls whose answers it waits for."""
    think_s: float
    """Seconds from the last of these answers to this call."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Calls that follow one another: the session's own, or a sub-agent's."""

    tool_tokens: int
    system_tokens: int

    @property
    def shared_tokens(self) -> int:
        """Return the number of tokens at the start of each prompt that other sessions may have, too."""
        return self.tool_tokens + self.system_tokens


@dataclass(frozen=True, slots=True)
class Session:
    """Recorded session with its calls in order of time."""

    name: str
    block_tokens: int
    streams: tuple[Stream, ...]
    calls: tuple[Call, ...]


def is_session(record: object) -> bool:
    """Return whether a JSON value is a session and not a request of another schema."""
    return isinstance(record, dict) and "requests" in record


def parse_session(record: object, name: str, block_tokens: int | None = None) -> Session:
    """Return a session whose blocks are joined to `block_tokens` tokens (None: as they are).

    If that is no multiple of the recorded size, blocks stay as they are. Raises TraceError that names the
    request.
    """
    return _Parser(name).parse(record, block_tokens)


@dataclass
class _Parser:
    name: str
    block_size: int = 0
    join: int = 1
    calls: list[Call] = field(default_factory=list)
    ends_s: list[float] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    parents: dict[int, int] = field(default_factory=dict)
    """Parent of each block; -1 for a first block."""

    def parse(self, record: object, block_tokens: int | None) -> Session:
        fields = self._object(record, "session")
        scope = fields.get("hash_id_scope", "local")
        if scope != "local":
            raise self._error("session", f'hash_id_scope must be "local", not {scope!r:.40}')
        self.block_size = self._whole(fields, "session", "block_size", 1, MAX_BLOCK_SIZE)
        self.join, rest = divmod(block_tokens or self.block_size, self.block_size)
        if not self.join or rest:
            self.join = 1
        self._own_stream(fields)
        order = sorted(range(len(self.calls)), key=lambda place: self.calls[place].t_s)
        return Session(self.name, self.block_size * self.join, tuple(self.streams), self._in_order(order))

    def _in_order(self, order: Sequence[int]) -> tuple[Call, ...]:
        """Return the calls in that order; `after` then has the indices in that order."""
        places = {old: new for new, old in enumerate(order)}
        return tuple(
            replace(call, after=tuple(places[before] for before in call.after))
            for call in map(self.calls.__getitem__, order)
        )

    def _own_stream(self, fields: dict[str, Any]) -> None:
        stream = self._stream(fields, "session")
        last: int | None = None
        pending: list[tuple[float, int]] = []
        """Ends in seconds and last calls of sub-agents that no call has waited for yet."""
        last_t_s = 0.0
        for where, entry in self._entries(fields, "session", "request"):
            t_s = self._time(entry, where, last_t_s)
            last_t_s = t_s
            if entry.get("type") == SUB_AGENT:
                ended = self._sub_agent(entry, where, t_s, last)
                pending += [] if ended is None else [ended]
                continue
            ended_subs = [place for end_s, place in pending if end_s <= t_s + ENDED_WITHIN_S]
            pending = [waiting for waiting in pending if waiting[0] > t_s + ENDED_WITHIN_S]
            after = (*(() if last is None else (last,)), *ended_subs)
            last = self._call(entry, where, t_s, stream, after, own_think_time=not ended_subs)

    def _sub_agent(
        self, entry: dict[str, Any], where: str, t_s: float, parent: int | None
    ) -> tuple[float, int] | None:
        """Read a sub-agent; return its end in seconds and its last call, or None if it made no call."""
        stream = self._stream(entry, where)
        last, last_t_s, offset_s = parent, t_s, t_s
        previous: int | None = None
        for inner, call in self._entries(entry, where, "request", allow_none=True):
            if call.get("type") == SUB_AGENT:
                raise self._error(inner, "a sub-agent's requests are calls, not sub-agents")
            own_s = self._time(call, inner, 0.0)
            if previous is None and own_s >= t_s > 0.0:
                offset_s = 0.0  # this data set counts from the session's start
            at_s = self._time({"t": own_s + offset_s}, inner, last_t_s)
            last = previous = self._call(
                call,
                inner,
                at_s,
                stream,
                () if last is None else (last,),
                own_think_time=previous is not None,
            )
            last_t_s = at_s
        duration_ms = self._number(entry, where, "duration_ms", "milliseconds", 1e3 * MAX_T_S) or 0.0
        return None if previous is None else (max(self.ends_s[previous], t_s + duration_ms / 1e3), previous)

    def _call(
        self,
        entry: dict[str, Any],
        where: str,
        t_s: float,
        stream: int,
        after: tuple[int, ...],
        own_think_time: bool,
    ) -> int:
        """Add a call and return its index.

        With `own_think_time`, the recorded think time counts from the answers in `after`; otherwise it is
        computed.
        """
        if entry.get("type") not in CALL_TYPES:
            raise self._error(where, f'type must be "n", "s" or "{SUB_AGENT}", not {entry.get("type")!r:.40}')
        model = entry.get("model")
        if not isinstance(model, str) or not 0 < len(model) <= MAX_MODEL_CHARS:
            raise self._error(where, f"model must be a name, not {model!r:.40}")
        input_tokens = self._whole(entry, where, "in", 1, MAX_TOKENS)
        output_tokens = self._whole(entry, where, "out", 0, MAX_TOKENS)
        chain = self._chain(entry, where, input_tokens)
        api_s = self._seconds(entry, where, "api_time")
        think_s = self._seconds(entry, where, "think_time")
        if think_s is None or not own_think_time or not after:
            think_s = max(0.0, t_s - max((self.ends_s[place] for place in after), default=t_s))
        if len(self.calls) >= MAX_CALLS:
            raise self._error(where, f"more than {MAX_CALLS:,} calls in one session")
        self.calls.append(Call(t_s, model, input_tokens, output_tokens, chain, stream, after, think_s))
        self.ends_s.append(t_s + (api_s or 0.0))
        return len(self.calls) - 1

    def _chain(self, entry: dict[str, Any], where: str, input_tokens: int) -> array[int]:
        chain = entry.get("hash_ids")
        if not isinstance(chain, list):
            raise self._error(where, "hash_ids must be a list of whole numbers")
        if not chain:
            raise self._error(where, "hash_ids is empty: a request has at least one block")
        least, most = input_tokens // self.block_size, -(-input_tokens // self.block_size)
        if not least <= len(chain) <= most:
            raise self._error(
                where,
                f"hash_ids has {len(chain)} blocks, but {input_tokens} tokens fill {least} of "
                f"{self.block_size}",
            )
        if not all(type(one) is int and 0 <= one < MAX_ID for one in chain):
            raise self._error(where, "hash_ids must be a list of whole numbers from 0 to 2^63 - 1")
        if len(set(chain)) != len(chain):
            raise self._error(where, "hash_ids holds a block twice: ids are prefixes, so they cannot repeat")
        parents, parent = self.parents, -1
        for block in chain:
            if parents.setdefault(block, parent) != parent:
                raise self._error(where, f"block {block} follows another block than in a request before")
            parent = block
        if self.join == 1:
            return array("q", chain)
        step, last = self.join, len(chain) - 1
        return array("q", (chain[min(at + step - 1, last)] for at in range(0, last + 1, step)))

    def _stream(self, fields: dict[str, Any], where: str) -> int:
        tokens = [
            self._whole(fields, where, name, 0, MAX_TOKENS) if name in fields else 0
            for name in ("tool_tokens", "system_tokens")
        ]
        self.streams.append(Stream(*tokens))
        return len(self.streams) - 1

    def _entries(
        self, fields: dict[str, Any], where: str, kind: str, allow_none: bool = False
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        entries = fields.get("requests")
        if not isinstance(entries, list):
            raise self._error(where, "requests must be a list")
        if not entries and not allow_none:
            raise self._error(where, "no requests in it")
        prefix = "" if where == "session" else f"{where}, "
        for number, entry in enumerate(entries, 1):
            place = f"{prefix}{kind} {number}"
            yield place, self._object(entry, place)

    def _object(self, value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._error(where, f"expected a JSON object, found {type(value).__name__}")
        return value

    def _time(self, entry: dict[str, Any], where: str, least_s: float) -> float:
        t_s = entry.get("t")
        if not is_number(t_s) or not 0 <= t_s <= MAX_T_S:
            raise self._error(where, f"t must be seconds from 0 to {MAX_T_S:g}, not {t_s!r:.40}")
        if t_s < least_s:
            raise self._error(where, f"comes at {t_s:g} s, before the one before it ({least_s:g} s)")
        return float(t_s)

    def _seconds(self, entry: dict[str, Any], where: str, name: str) -> float | None:
        return self._number(entry, where, name, "seconds", MAX_T_S)

    def _number(self, entry: dict[str, Any], where: str, name: str, unit: str, most: float) -> float | None:
        value = entry.get(name)
        if value is None:
            return None
        if not is_number(value) or not 0 <= value <= most:
            raise self._error(where, f"{name} must be {unit} from 0 to {most:g}, not {value!r:.40}")
        return float(value)

    def _whole(self, fields: dict[str, Any], where: str, name: str, least: int, most: int) -> int:
        if name not in fields:
            raise self._error(where, f"no field {name}")
        value = fields[name]
        if type(value) is not int or not least <= value <= most:
            raise self._error(
                where, f"{name} must be a whole number from {least} to {most}, not {value!r:.40}"
            )
        return value

    def _error(self, where: str, reason: str) -> TraceError:
        return TraceError(f"{self.name}: {where}: {reason}")
