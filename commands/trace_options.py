"""Options of all commands that take a trace: its file, and how recorded sessions are served."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Existing, OneOf, Unit, Variable, Within
from workload.session_service import Service
from workload.trace import MOONCAKE, Trace
from workload.trace_files import load_trace

_DEFAULTS = Service()
OPEN, CLOSED = "open", "closed"
LOOPS = (OPEN, CLOSED)


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class TraceSource:
    """A trace, and how recorded sessions of it are served."""

    trace: Annotated[Path | None, Existing(), Variable("TRACE")] = None
    """Trace file (Mooncake's or Bailian's JSON lines, Azure's or BurstGPT's CSV), or a folder of agents'
    sessions; without it, traffic is generated.
    """
    sessions_per_hour: Annotated[float, Within(0.001, 1e6), Unit("1/h"), Variable("SESSIONS_PER_HOUR")] = (
        _DEFAULTS.sessions_per_hour
    )
    """Number of sessions of a TRACE that start in an hour; SEED draws which ones and when."""
    hours: Annotated[float, Within(0.001, 1000), Variable("HOURS")] = _DEFAULTS.hours
    """Hours for which sessions of a TRACE are served."""
    shared_prefix: Annotated[bool, Variable("SHARED_PREFIX")] = _DEFAULTS.shares_prefix
    """Whether sessions of a TRACE share blocks, such as tools and system prompts of equal model and length.
    """
    loop: Annotated[str, OneOf(LOOPS), Variable("LOOP")] = CLOSED
    """closed: a session's next request comes its think time after the answer before it, where answers take
    time; open: at its recorded time.
    """

    def service_of(self, seed: int, block_tokens: int | None) -> Service:
        """Return how recorded sessions are served."""
        return Service(self.sessions_per_hour, self.hours, self.shared_prefix, seed, block_tokens)

    def read(self, seed: int, block_tokens: int | None) -> Trace | None:
        """Return the named trace in blocks of `block_tokens`, or None if none is named. Raises TraceError."""
        if self.trace is None:
            return None
        trace = load_trace(self.trace, self.service_of(seed, block_tokens))
        if block_tokens is not None:
            trace = trace.cut(block_tokens)
        return trace.open_loop() if self.loop == OPEN else trace


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class TraceOptions(TraceSource):
    """Options of a trace together with the size of blocks."""

    block_tokens: Annotated[int | None, Within(1, 1 << 16)] = None
    """Tokens of a block, such as vLLM's 16 or LMCache's 256: blocks of a TRACE are cut or joined, generated
    prompts are cut. Default: the trace's own, or 512 for generated prompts.
    """

    @property
    def generated_tokens(self) -> int:
        """Return the tokens of a block of generated traffic."""
        return self.block_tokens or MOONCAKE.block_tokens

    def service(self, seed: int) -> Service:
        """Return how recorded sessions are served."""
        return self.service_of(seed, self.block_tokens)

    def scenario_fields(self) -> dict[str, Any]:
        """Return these options as fields of a simulated scenario's workload; empty without a trace."""
        if self.trace is None:
            return {}
        return {
            "trace": self.trace.absolute(),
            "sessions_per_hour": self.sessions_per_hour,
            "hours": self.hours,
            "shared_prefix": self.shared_prefix,
            "loop": self.loop,
        }

    def read_trace(self, seed: int) -> Trace | None:
        """Return the named trace in blocks of `block_tokens`, or None if none is named. Raises TraceError."""
        return self.read(seed, self.block_tokens)
