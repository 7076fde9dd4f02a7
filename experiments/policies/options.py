"""What a run of replays is asked to do: command line first, then the environment (as make sets it)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commands.options import (
    Option,
    OptionError,
    each_of,
    list_of,
    number,
    one_of,
    parse_into,
    whole,
    yes_or_no,
)
from commands.trace_options import TRACE_OPTIONS, TraceOptions
from controller.policies.baseline import MIN_BLOCKS
from experiments.policies.pools import NAMES
from experiments.policies.stores import STORES, USUAL_LINKS, Links
from workload.adversarial import ADVERSARIAL
from workload.cost import DEFAULT_GPU, DEFAULT_MODEL, GPUS, MODELS
from workload.generate import DEFAULT_SEED, generate
from workload.services import SERVICES
from workload.shapes import COMPARED_SHAPES, SHAPES
from workload.trace import Trace

DEFAULT_BLOCKS = (300, 1000, 3000, 10000, 30000)
DEFAULT_REQUESTS = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(TraceOptions):
    """One run of replays."""

    shapes: tuple[str, ...]
    requests: int
    seed: int
    blocks: tuple[int, ...]
    policies: tuple[str, ...]
    ablation: bool
    cross: bool
    seeds: int
    explain: str
    events: Path | None
    home_gbit: tuple[float, ...]
    model: str
    gpu: str
    processes: int
    results: Path

    @property
    def shapes_are_default(self) -> bool:
        """Whether nobody chose the shapes."""
        return self.shapes == tuple(SHAPES)

    def load(self) -> list[Trace]:
        """The trace of a file, or all generated shapes; raises TraceError or GenerateError."""
        given = self.load_file()
        return [self.draw(shape, self.seed) for shape in self.shapes] if given is None else [given]

    def load_file(self) -> Trace | None:
        """The trace of a file, if one is given; raises TraceError."""
        return self.read_trace(self.seed)

    def draw(self, shape: str, seed: int) -> Trace:
        """A generated trace."""
        return generate(shape, seed, self.requests, block_tokens=self.generated_tokens)

    def unusual(self) -> dict[str, object]:
        """Blocks and links that are not as by default, for results to say."""
        about: dict[str, object] = {}
        if self.block_tokens is not None:
            about["tokens of a block"] = self.block_tokens
        if self.links != USUAL_LINKS:
            about["homes' links, Gbit/s"] = ", ".join(f"{rate:g}" for rate in self.home_gbit)
        return about

    @property
    def links(self) -> Links:
        """Of the storage nodes."""
        return tuple(gbit_s * 1e9 for gbit_s in self.home_gbit)


# In the order of Options' fields.
_OPTIONS = (
    *TRACE_OPTIONS,
    Option(
        "SHAPES",
        list_of(one_of(tuple(COMPARED_SHAPES))),
        tuple(SHAPES),
        f"generated shapes to replay, by commas; also {', '.join((SERVICES.name, *ADVERSARIAL))}",
    ),
    Option("REQUESTS", whole(1, 10_000_000), DEFAULT_REQUESTS, "requests of each generated trace"),
    Option("SEED", whole(0, 2**31), DEFAULT_SEED, "seed of the generated traces"),
    Option("BLOCKS", list_of(whole(MIN_BLOCKS, 10_000_000)), DEFAULT_BLOCKS, "pool sizes in blocks"),
    Option(
        "POLICIES",
        list_of(one_of(NAMES)),
        NAMES,
        "policies to replay, by commas",
    ),
    Option("ABLATION", yes_or_no, True, "whether to switch the parts of the reuse-value policy off in turn"),
    Option(
        "CROSS",
        yes_or_no,
        False,
        "leave each family of traces out: SEEDS seeds of all shapes, and TRACE in quarters by time",
    ),
    Option("SEEDS", whole(1, 1000), 5, "traces of each shape that CROSS compares, from SEED on"),
    Option(
        "EXPLAIN",
        str,
        "",
        "a block (id in the trace, or key in an event log): why it is in the pool or not",
    ),
    Option(
        "EVENTS",
        Path,
        None,
        "a live controller's event log to explain from, instead of a trace; it says itself what its pool was",
    ),
    Option(
        "HOME_GBIT",
        each_of(number(0.001, 100_000), STORES),
        tuple(link_bit_s / 1e9 for link_bit_s in USUAL_LINKS),
        f"real rate of the link of each of the {STORES} storage nodes, Gbit/s, by commas",
    ),
    Option("MODEL", one_of(tuple(MODELS)), DEFAULT_MODEL, "model whose KV is stored"),
    Option("GPU", one_of(tuple(GPUS)), DEFAULT_GPU, "GPUs of a node"),
    Option("JOBS", whole(1, 256), min(8, os.cpu_count() or 1), "replays at once"),
    Option("RESULTS", Path, Path("results/policies"), "folder for summary.json, ablation.json and plots"),
)


def parse_options(arguments: Sequence[str]) -> Options:
    """Options from the command line and the environment; raises OptionError."""
    description = "Replay a trace, or all generated shapes, through all policies at several pool sizes."
    options = parse_into(Options, _OPTIONS, arguments, "python -m experiments.policies", description)
    if options.events is not None and not options.explain:
        raise OptionError("EVENTS: say which block to explain: EXPLAIN=<key in hexadecimal>")
    if options.events is not None and options.links != USUAL_LINKS:
        raise OptionError("HOME_GBIT: an event log (EVENTS) has links of its own")
    if options.events is not None and options.block_tokens is not None:
        raise OptionError("BLOCK_TOKENS: an event log (EVENTS) has blocks of its own")
    return replace(options, blocks=tuple(sorted(options.blocks)))
