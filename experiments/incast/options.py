"""Options of the incast experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commands.options import (
    LIVE_HELP,
    METRICS,
    Option,
    list_of,
    number,
    one_of,
    parse_into,
    whole,
    yes_or_no,
)
from controller.config import AUTO, PLACEMENTS
from experiments.incast.patterns import DIFFERENT, PATTERNS, SAME
from topologies.engines import ENGINES
from topologies.registry import TOPOLOGIES
from workload.cost import DEFAULT_MODEL, MODELS

ALL_NODES = (1, 2, 4, 8, 16)
QUICK_NODES = (1, 4, 16)
QUICK_PATTERNS = (SAME, DIFFERENT)
MODES = ("none", "pool", "merge", "both", "push")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncastOptions:
    """What one `make incast` measures, and on what."""

    engine: str
    topology: str
    nodes: tuple[int, ...]
    patterns: tuple[str, ...]
    modes: tuple[str, ...]
    blocks: int
    bursts: int
    pause_s: float
    deadline_s: float
    leaves: int | None
    spines: int | None
    pods: int | None
    placement: str
    scale: float
    model: str
    link_gbit_s: float
    seed: int
    live: bool
    metrics: int
    """Port of the exporter; 0 for none."""
    quick: bool
    results: Path


# In the order of IncastOptions' fields.
_OPTIONS = (
    Option("ENGINE", one_of(tuple(ENGINES)), "embedded", "switch engine"),
    Option("TOPO", one_of(tuple(TOPOLOGIES)), "star", "topology"),
    Option("NODES", list_of(whole(1, 64)), None, "numbers of nodes that ask; default: 1,2,4,8,16"),
    Option("PATTERNS", list_of(one_of(PATTERNS)), None, "what they ask for; default: all"),
    Option("MODES", list_of(one_of(MODES)), MODES, "what the switch does about it"),
    Option("BLOCKS", whole(4, 256), 32, "blocks that a node asks for in a burst"),
    Option("BURSTS", whole(1, 100), 3, "times that the nodes ask for them"),
    Option("PAUSE", number(0, 60), 0.5, "seconds from the end of a burst to the next"),
    Option("DEADLINE", number(0.1, 600), 10.0, "seconds after which a node gives a fragment up"),
    Option("LEAVES", whole(1, 32), None, "leaf switches of leafspine and tree"),
    Option("SPINES", whole(1, 32), None, "spine switches of leafspine"),
    Option("PODS", whole(2, 8), None, "pods of fattree"),
    Option("PLACEMENT", one_of(PLACEMENTS), AUTO, "which of several switches keep a block"),
    Option("SCALE", number(1, 1e9), 40_000.0, "sigma: bytes and link rates are divided by it"),
    Option("MODEL", one_of(tuple(MODELS)), DEFAULT_MODEL, "model whose KV is stored"),
    Option("LINK_GBIT", number(0.001, 100_000), 200.0, "real rate of a host's link, Gbit/s"),
    Option("SEED", whole(0, 2**31), 1, "of what the nodes ask for"),
    Option("LIVE", yes_or_no, False, LIVE_HELP),
    METRICS,
    Option("QUICK", yes_or_no, False, "1: fewer points: 1,4,16 nodes, the same and different blocks"),
    Option("RESULTS", Path, Path("results/incast"), "folder for summary.json and plots"),
)


def parse_options(arguments: Sequence[str]) -> IncastOptions:
    """Options from the command line and the environment; raises OptionError."""
    options = parse_into(IncastOptions, _OPTIONS, arguments, "python -m experiments.incast", __doc__ or "")
    nodes, patterns = (QUICK_NODES, QUICK_PATTERNS) if options.quick else (ALL_NODES, PATTERNS)
    return replace(options, nodes=options.nodes or nodes, patterns=options.patterns or patterns)
