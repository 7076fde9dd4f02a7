"""Fan-in shapes of traffic, in which many readers need the same blocks at once: N-to-1.

An episode has a writer and readers. The writer is one request that computes a prefix. The readers come
shortly after its answer and read that prefix. `FAN_IN` says what each shape's episodes are in practice, and
where its figures are from. Figures without a source are assumptions. Each can be set:
`SHAPE=swarm:sub_agents=64,within_ms=50`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from workload.drafts import Draft, Sessions, Shape, lognormal, starts

LIMITS = {
    "readers": (1, 1024),
    "within_ms": (0, 3_600_000),
    "lead_ms": (0, 3_600_000),
    "common_tokens": (0, 1_000_000),
    "prefix_tokens": (1, 1_000_000),
    "own_tokens": (0, 1_000_000),
    "output_tokens": (1, 1_000_000),
}


class ShapeError(ValueError):
    """Shape that does not exist, or a parameter of one that does not exist or can't have this value."""


@dataclass(frozen=True, slots=True)
class FanIn:
    """Shape of episodes in which several readers read what one writer wrote."""

    name: str
    what: str
    source: str
    readers_are: str
    """Word for readers in this shape, which is also that parameter's name."""
    readers: int
    within_ms: float
    """Milliseconds within which the readers come, uniformly at random."""
    lead_ms: float
    """Milliseconds from the writer's answer to the first reader; without a closed loop, from the writer's
    arrival."""
    common_tokens: int
    """Tokens at the start of the prompt that are the same in all episodes."""
    prefix_tokens: int
    """Median tokens of the prompt behind that, which are the same throughout one episode."""
    own_tokens: int
    """Median tokens of each reader's own part of the prompt; 0 means that all readers need exactly the same
    bytes."""
    output_tokens: int
    """Median tokens of an answer."""
    episodes_per_s: float = 0.5

    def sessions(self, rng: Random, per_s: float) -> Sessions:
        """Yield episodes without end, in order of their start."""
        per_s /= 1 + self.readers
        for number, start_s in enumerate(starts(rng, per_s)):
            yield self._episode(rng, f"{self.name} {number}", start_s)

    def _episode(self, rng: Random, label: str, start_s: float) -> list[Draft]:
        common = ((f"{self.name} common", self.common_tokens),) if self.common_tokens else ()
        prefix = (*common, (f"{label} prefix", lognormal(rng, self.prefix_tokens, 0.3)))
        drafts = [Draft(start_s, prefix, lognormal(rng, self.output_tokens, 0.3))]
        for reader in range(self.readers):
            delay_s = (self.lead_ms + rng.uniform(0.0, self.within_ms)) / 1e3
            own: tuple[tuple[str, int], ...] = ()
            if self.own_tokens:
                own = ((f"{label} own {reader}", lognormal(rng, self.own_tokens, 0.5)),)
            output_tokens = lognormal(rng, self.output_tokens, 0.3)
            drafts.append(Draft(start_s + delay_s, (*prefix, *own), output_tokens, delay_s))
        return sorted(drafts)

    def shape(self) -> Shape:
        """Return this as a shape of generated traffic."""
        requests_per_s = self.episodes_per_s * (1 + self.readers)
        return Shape(self.name, self.what, requests_per_s, self.sessions, has_sessions=True)

    def changed(self, parameters: Mapping[str, str]) -> FanIn:
        """Return the shape with other parameters; raises ShapeError for an unknown one or a value out of
        range."""
        fields = {self.readers_are if name == "readers" else name: name for name in LIMITS}
        changes: dict[str, float] = {}
        for name, text in parameters.items():
            if name not in fields:
                raise ShapeError(f"{self.name} has no parameter {name!r}: choose of {', '.join(fields)}")
            least, most = LIMITS[fields[name]]
            try:
                value = float(text) if name.endswith("_ms") else int(text)
            except ValueError:
                raise ShapeError(f"{self.name}: {name} must be a number, not {text!r:.40}") from None
            if not least <= value <= most:
                raise ShapeError(f"{self.name}: {name} must be from {least} to {most:,}, not {text:.40}")
            changes[fields[name]] = value
        return replace(self, **changes)  # type: ignore[arg-type]


_FAN_IN = (
    FanIn(
        "swarm",
        "a parent starts many sub-agents on one prefix",
        "kv-cache-tester's sessions: a sub-agent's tools and system prompt have 8,415 to 9,998 tokens",
        "sub_agents",
        readers=16,
        within_ms=500.0,
        lead_ms=3000.0,
        common_tokens=10_000,
        prefix_tokens=20_000,
        own_tokens=300,
        output_tokens=200,
        episodes_per_s=0.2,
    ),
    FanIn(
        "rollouts",
        "samples of one prompt on many nodes, as GRPO takes them",
        "16 samples a prompt: DAPO (arXiv 2503.14476); 64: GRPO (arXiv 2402.03300). The prompt's length, of "
        "an agent's task, is an assumption",
        "samples",
        readers=16,
        within_ms=100.0,
        lead_ms=2000.0,
        common_tokens=0,
        prefix_tokens=16_000,
        own_tokens=0,
        output_tokens=1000,
        episodes_per_s=0.2,
    ),
    FanIn(
        "ranks",
        "tensor-parallel ranks of an MLA model, each of which reads the same latent KV in lockstep",
        "8 ranks, 128,000 tokens: sgl-project/sglang#39565",
        "ranks",
        readers=8,
        within_ms=0.0,
        lead_ms=10_000.0,
        common_tokens=0,
        prefix_tokens=128_000,
        own_tokens=0,
        output_tokens=200,
        episodes_per_s=0.05,
    ),
    FanIn(
        "prefill-decode",
        "a prefill node writes what several decoders read",
        "assumption: 4 decoders of one prompt",
        "decoders",
        readers=4,
        within_ms=20.0,
        lead_ms=2000.0,
        common_tokens=0,
        prefix_tokens=12_000,
        own_tokens=0,
        output_tokens=400,
        episodes_per_s=0.5,
    ),
    FanIn(
        "cold-start",
        "nodes that an autoscaler starts at once read the prefix that all requests share",
        "assumption: 8 nodes within a second, 24,000 tokens of tools, system prompt and examples",
        "nodes",
        readers=8,
        within_ms=1000.0,
        lead_ms=5000.0,
        common_tokens=0,
        prefix_tokens=24_000,
        own_tokens=2000,
        output_tokens=300,
        episodes_per_s=0.1,
    ),
)
FAN_IN = {shape.name: shape for shape in _FAN_IN}
