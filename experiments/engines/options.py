"""Options of the experiment with real engines: vLLM on a switch with the pool, links at real rates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, OneOf, Variable, Within
from commands.errors import OptionError
from commands.options import read
from experiments.engines.model import MAX_TOKENS
from topologies.engines import ENGINES

MODES = RECOMPUTE, STORAGE, POOL, LMCACHE, MOONCAKE = ("recompute", "storage", "pool", "lmcache", "mooncake")
LOADING = ("layerwise", "background")
BLOCK_TOKENS = 32


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class EnginesOptions:
    """Options of `make engines`, which compares sources of KV cache for vLLM."""

    engine: Annotated[str, OneOf(ENGINES)] = "embedded"
    """Switch engine."""
    modes: tuple[Annotated[str, OneOf(MODES)], ...] = MODES
    """Sources of KV cache that an engine does not have itself; recompute: none."""
    prefixes: Annotated[int, Within(1, 64)] = 4
    """Number of prefixes that requests share."""
    prefix_tokens: Annotated[int, Within(BLOCK_TOKENS, MAX_TOKENS // 2)] = 1024
    """Tokens of a prefix."""
    suffix_tokens: Annotated[int, Within(1, 1024)] = 32
    """Tokens of a request behind its prefix."""
    output_tokens: Annotated[int, Within(2, 256)] = 16
    """Tokens that a request generates."""
    requests: Annotated[int, Within(1, 1000)] = 16
    """Number of requests in the trace, which begins after each prefix was computed once."""
    rounds: Annotated[int, Within(1, 100)] = 1
    """Runs of each mode, except that recomputing runs once; with several there are intervals."""
    own_blocks: Annotated[int, Within(4, 4096)] = 40
    """Number of blocks of 32 tokens that an engine's own cache holds."""
    objects: Annotated[int, Within(1, 12)] = 2
    """Number of objects that a block's layers are stored as."""
    loading: Annotated[str, OneOf(LOADING)] = "layerwise"
    """Way of loading: layerwise computes each layer once it is loaded, background waits for all layers."""
    link_gbit_s: Annotated[float, Within(0.01, 100), Variable("LINK_GBIT")] = 1.0
    """Rate of every link in Gbit/s, not scaled."""
    stores: Annotated[int, Within(1, 8)] = 1
    """Number of storage nodes."""
    pool_blocks: Annotated[int, Within(16, 65536)] = 512
    """Number of objects that the switch's pool holds."""
    policy: str = "lru"
    """Policy of the pool."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Seed of prompts and trace."""
    results: Path = Path("results/engines")
    """Folder for summary.json."""

    def __post_init__(self) -> None:
        """Raise OptionError if an engine's own cache does not hold one request."""
        if self.own_blocks * BLOCK_TOKENS < self.max_tokens:
            needed = self.max_tokens // BLOCK_TOKENS
            raise OptionError(
                f"OWN_BLOCKS must be at least {needed}: an engine holds one request of this length"
            )

    @property
    def prompt_tokens(self) -> int:
        """Return the number of tokens of every request's prompt."""
        return self.prefix_tokens + self.suffix_tokens

    @property
    def max_tokens(self) -> int:
        """Return the tokens of a request, with those that it generates, rounded up to whole blocks."""
        return -(-(self.prompt_tokens + self.output_tokens) // BLOCK_TOKENS) * BLOCK_TOKENS


def parse_options(arguments: Sequence[str]) -> EnginesOptions:
    """Read the options from the command line and the environment; raises OptionError."""
    return read(EnginesOptions, arguments, "weir engines", __doc__ or "")
