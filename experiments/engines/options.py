"""Options of the experiment with real engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commands.options import Option, OptionError, list_of, number, one_of, parse_into, whole
from experiments.engines.model import MAX_TOKENS
from topologies.engines import ENGINES

MODES = RECOMPUTE, STORAGE, POOL, LMCACHE, MOONCAKE = ("recompute", "storage", "pool", "lmcache", "mooncake")
LOADING = ("layerwise", "background")
BLOCK_TOKENS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginesOptions:
    """What one `make engines` plays, and on what."""

    engine: str
    modes: tuple[str, ...]
    prefixes: int
    prefix_tokens: int
    suffix_tokens: int
    output_tokens: int
    requests: int
    own_blocks: int
    objects: int
    loading: str
    link_gbit_s: float
    stores: int
    pool_blocks: int
    policy: str
    seed: int
    results: Path

    @property
    def prompt_tokens(self) -> int:
        """Of every request."""
        return self.prefix_tokens + self.suffix_tokens

    @property
    def max_tokens(self) -> int:
        """Of a request, with what it generates: whole blocks."""
        return -(-(self.prompt_tokens + self.output_tokens) // BLOCK_TOKENS) * BLOCK_TOKENS


# In the order of EnginesOptions' fields.
_OPTIONS = (
    Option("ENGINE", one_of(tuple(ENGINES)), "embedded", "switch engine"),
    Option("MODES", list_of(one_of(MODES)), MODES, "where engines find KV cache that is not their own"),
    Option("PREFIXES", whole(1, 64), 4, "prefixes that requests share"),
    Option("PREFIX_TOKENS", whole(BLOCK_TOKENS, MAX_TOKENS // 2), 1024, "tokens of a prefix"),
    Option("SUFFIX_TOKENS", whole(1, 1024), 32, "tokens behind it that are a request's own"),
    Option("OUTPUT_TOKENS", whole(2, 256), 16, "tokens that a request generates"),
    Option("REQUESTS", whole(1, 1000), 16, "requests of the trace, after each prefix was computed once"),
    Option("OWN_BLOCKS", whole(4, 4096), 40, "blocks of 32 tokens that an engine's own cache holds"),
    Option("OBJECTS", whole(1, 12), 2, "objects that a block's layers are stored as"),
    Option("LOADING", one_of(LOADING), "layerwise", "whether computing starts before all is loaded"),
    Option("LINK_GBIT", number(0.01, 100), 1.0, "rate of every link, Gbit/s, not scaled"),
    Option("STORES", whole(1, 8), 1, "storage nodes"),
    Option("POOL_BLOCKS", whole(16, 65536), 512, "objects that the switch's pool holds"),
    Option("POLICY", str, "lru", "policy of the pool"),
    Option("SEED", whole(0, 2**31), 1, "of prompts and trace"),
    Option("RESULTS", Path, Path("results/engines"), "folder for summary.json"),
)


def parse_options(arguments: Sequence[str]) -> EnginesOptions:
    """Options from the command line and the environment; raises OptionError."""
    options = parse_into(EnginesOptions, _OPTIONS, arguments, "python -m experiments.engines", __doc__ or "")
    if options.own_blocks * BLOCK_TOKENS < options.max_tokens:
        needed = options.max_tokens // BLOCK_TOKENS
        raise OptionError(f"OWN_BLOCKS must be at least {needed}: an engine holds one request of this length")
    return options
