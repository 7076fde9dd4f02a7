"""Options of `make policies`, from the command line first, then from the environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from annotated_types import Len
from pydantic.dataclasses import dataclass

from commands.cores import whole_cores
from commands.declarations import DECLARED, Each, Existing, OneOf, Variable, Within
from commands.errors import OptionError
from commands.options import read
from commands.trace_options import TraceOptions
from controller.policies.baseline import MIN_BLOCKS
from experiments.policies.pools import AVAILABLE, NAMES
from experiments.policies.stores import DEFAULT_LINKS, STORES, Links
from workload.cost import DEFAULT_GPU, DEFAULT_MODEL, GPUS, MODELS
from workload.generate import DEFAULT_SEED, generate
from workload.shapes import COMPARED_SHAPES, SHAPES
from workload.trace import Trace

DEFAULT_BLOCKS = (300, 1000, 3000, 10000, 30000)
DEFAULT_REQUESTS = 12_000


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class PoliciesOptions(TraceOptions):
    """Traces, policies and pool sizes of one run of replays."""

    shapes: tuple[Annotated[str, OneOf(COMPARED_SHAPES)], ...] = tuple(SHAPES)
    """Generated shapes to replay."""
    requests: Annotated[int, Within(1, 10_000_000)] = DEFAULT_REQUESTS
    """Requests of each generated trace."""
    seed: Annotated[int, Within(0, 2**31)] = DEFAULT_SEED
    """Seed of the generated traces."""
    blocks: tuple[Annotated[int, Within(MIN_BLOCKS, 10_000_000)], ...] = DEFAULT_BLOCKS
    """Pool sizes in blocks."""
    policies: tuple[Annotated[str, OneOf(NAMES)], ...] = AVAILABLE
    """Policies to replay, by commas; without libcachesim only those of this project."""
    ablation: bool = True
    """Whether to switch the parts of the reuse-value policy off in turn."""
    cross: bool = False
    """Whether to leave each source of traces out in turn: TRACE, each of SOURCES,
    and the generated SHAPES."""
    sources: tuple[Annotated[Path, Existing()], ...] = ()
    """More traces and folders of sessions for CROSS, by commas."""
    seeds: Annotated[int, Within(1, 1000)] = 5
    """Number of traces drawn from each shape and each folder of sessions, from SEED on;
    for CROSS and SESSION_HINTS."""
    session_hints: bool = False
    """Whether to measure what hints of nodes save, on SEEDS draws of a TRACE of recorded sessions."""
    explain: str = ""
    """Block to explain, by its id in the trace or its key in an event log: why it is in the pool or not."""
    events: Annotated[Path | None, Existing()] = None
    """Event log of a live controller to explain from, instead of a trace. If its first line describes its
    pool, BLOCKS is not used."""
    home_gbit: Annotated[
        tuple[Annotated[float, Within(0.001, 100_000)], ...], Each(), Len(STORES, STORES)
    ] = tuple(link_bit_s / 1e9 for link_bit_s in DEFAULT_LINKS)
    """Real rate of each storage node's link."""
    model: Annotated[str, OneOf(MODELS)] = DEFAULT_MODEL
    """Model whose KV is stored."""
    gpu: Annotated[str, OneOf(GPUS)] = DEFAULT_GPU
    """GPUs of a node."""
    processes: Annotated[int, Within(1, 256), Variable("JOBS")] = min(8, whole_cores())
    """Number of replays at once."""
    results: Path = Path("results/policies")
    """Folder for summary.json, ablation.json and plots."""

    @property
    def shapes_are_default(self) -> bool:
        """Return whether the shapes are the default ones."""
        return self.shapes == tuple(SHAPES)

    def load(self) -> list[Trace]:
        """Return the trace of the given file, or all generated shapes; raises TraceError or GenerateError."""
        given = self.load_file()
        return [self.draw(shape, self.seed) for shape in self.shapes] if given is None else [given]

    def load_file(self) -> Trace | None:
        """Return the trace of the given file, or None without one; raises TraceError."""
        return self.read_trace(self.seed)

    @property
    def all_seeds(self) -> range:
        """Return the seeds that CROSS draws traces with."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def all_sources(self) -> list[Path]:
        """Return the paths of TRACE and SOURCES."""
        return list(dict.fromkeys(path for path in (self.trace, *self.sources) if path is not None))

    def draw(self, shape: str, seed: int) -> Trace:
        """Return the trace that is generated from `shape` and `seed`."""
        return generate(shape, seed, self.requests, block_tokens=self.generated_tokens)

    def non_defaults(self) -> dict[str, object]:
        """Return block size and link rates where they differ from the defaults, for the results."""
        about: dict[str, object] = {}
        if self.block_tokens is not None:
            about["tokens of a block"] = self.block_tokens
        if self.links != DEFAULT_LINKS:
            about["homes' links, Gbit/s"] = ", ".join(f"{rate:g}" for rate in self.home_gbit)
        return about

    @property
    def links(self) -> Links:
        """Return the rates of the storage nodes' links in bit/s."""
        return tuple(gbit_s * 1e9 for gbit_s in self.home_gbit)


def parse_options(arguments: Sequence[str]) -> PoliciesOptions:
    """Return the options from the command line and the environment; raises OptionError."""
    description = "Replay a trace, or all generated shapes, through all policies at several pool sizes."
    options = read(PoliciesOptions, arguments, "weir policies", description)
    names = [path.stem for path in options.all_sources]
    if len(set(names)) < len(names):
        raise OptionError("SOURCES: two sources have one name: rename a file or folder")
    if options.sources and not options.cross:
        raise OptionError("SOURCES: they are for CROSS=yes; to replay one of them alone, say TRACE=<path>")
    if options.session_hints and options.trace is None:
        raise OptionError("SESSION_HINTS: say which recorded sessions: TRACE=<folder>")
    if options.events is not None and not options.explain:
        raise OptionError("EVENTS: say which block to explain: EXPLAIN=<key in hexadecimal>")
    if options.events is not None and options.links != DEFAULT_LINKS:
        raise OptionError("HOME_GBIT: an event log (EVENTS) has links of its own")
    if options.events is not None and options.block_tokens is not None:
        raise OptionError("BLOCK_TOKENS: an event log (EVENTS) has blocks of its own")
    return replace(options, blocks=tuple(sorted(options.blocks)))
