"""Options of all commands that take a trace: which one, and how recorded sessions of it are served."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands.options import Option, number, one_of, whole, yes_or_no
from workload.session_service import Service
from workload.trace import MOONCAKE, Trace
from workload.trace_files import load_trace

_DEFAULTS = Service()
OPEN, CLOSED = "open", "closed"
LOOPS = (OPEN, CLOSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """A trace, as the command line names it."""

    trace: Path | None
    """A file, or a folder of sessions; None: generated traffic."""
    sessions_per_hour: float
    hours: float
    shared_prefix: bool
    loop: str
    block_tokens: int | None
    """Tokens of a block; None: as the trace has them."""

    @property
    def generated_tokens(self) -> int:
        """Tokens of a block of generated traffic."""
        return self.block_tokens or MOONCAKE.block_tokens

    def service(self, seed: int) -> Service:
        """How recorded sessions are served."""
        return Service(self.sessions_per_hour, self.hours, self.shared_prefix, seed, self.block_tokens)

    def scenario_fields(self) -> dict[str, Any]:
        """Return the fields of a simulated scenario's workload that say the same; none without a trace."""
        if self.trace is None:
            return {}
        return {
            "trace": str(self.trace.absolute()),
            "sessions_per_hour": self.sessions_per_hour,
            "hours": self.hours,
            "shared_prefix": self.shared_prefix,
            "loop": self.loop,
        }

    def read_trace(self, seed: int) -> Trace | None:
        """Return the trace that is named, in blocks of the size that is asked for; None where none is named.
        Raises TraceError."""
        if self.trace is None:
            return None
        trace = load_trace(self.trace, self.service(seed))
        if self.block_tokens is not None:
            trace = trace.cut(self.block_tokens)
        return trace.open_loop() if self.loop == OPEN else trace


# In the order of TraceOptions' fields.
TRACE_OPTIONS = (
    Option(
        "TRACE",
        Path,
        None,
        "trace file (Mooncake's or Bailian's JSON lines, Azure's or BurstGPT's CSV), or a folder of agents' "
        "sessions; without it traffic is generated",
    ),
    Option(
        "SESSIONS_PER_HOUR",
        number(0.001, 1e6),
        _DEFAULTS.sessions_per_hour,
        "of a TRACE of sessions, how many start an hour; when, and which, is drawn by SEED",
    ),
    Option(
        "HOURS", number(0.001, 1000), _DEFAULTS.hours, "of a TRACE of sessions, for how long they are served"
    ),
    Option(
        "SHARED_PREFIX",
        yes_or_no,
        _DEFAULTS.shares_prefix,
        "no: sessions of a TRACE share no block, not even tools and system prompts of equal model and length",
    ),
    Option(
        "LOOP",
        one_of(LOOPS),
        CLOSED,
        "closed: a session's next request comes its think time after the answer before it, where answers "
        "take time; open: at its recorded time",
    ),
    Option(
        "BLOCK_TOKENS",
        whole(1, 1 << 16),
        None,
        "tokens of a block, such as vLLM's 16 or LMCache's 256: blocks of a TRACE are cut or joined, "
        "generated prompts are cut; default: the trace's own, 512 if generated",
    ),
)
