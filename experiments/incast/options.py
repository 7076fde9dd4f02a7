"""Options of the incast experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, OneOf, Variable, Within
from commands.options import read
from controller.config import AUTO, PLACEMENTS
from experiments.incast.patterns import DIFFERENT, PATTERNS, SAME
from topologies.engines import ENGINES
from topologies.registry import TOPOLOGIES
from workload.cost import DEFAULT_MODEL, MODELS

ALL_NODES = (1, 2, 4, 8, 16)
QUICK_NODES = (1, 4, 16)
QUICK_PATTERNS = (SAME, DIFFERENT)
MODES = ("none", "pool", "merge", "both", "push")


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class IncastOptions:
    """What one `make incast` measures, and on what."""

    engine: Annotated[str, OneOf(ENGINES)] = "embedded"
    """Switch engine."""
    topology: Annotated[str, OneOf(TOPOLOGIES), Variable("TOPO")] = "star"
    """Topology."""
    nodes: tuple[Annotated[int, Within(1, 64)], ...] = ()
    """Numbers of nodes that ask; default: 1,2,4,8,16, with QUICK 1,4,16."""
    patterns: tuple[Annotated[str, OneOf(PATTERNS)], ...] = ()
    """What they ask for; default: all, with QUICK the same and different blocks."""
    modes: tuple[Annotated[str, OneOf(MODES)], ...] = MODES
    """What the switch does about it."""
    blocks: Annotated[int, Within(4, 256)] = 32
    """Blocks that a node asks for in a burst."""
    bursts: Annotated[int, Within(1, 100)] = 3
    """Times that the nodes ask for them."""
    pause_s: Annotated[float, Within(0, 60), Variable("PAUSE")] = 0.5
    """Seconds from the end of a burst to the next."""
    deadline_s: Annotated[float, Within(0.1, 600), Variable("DEADLINE")] = 10.0
    """Seconds after which a node gives a fragment up."""
    leaves: Annotated[int | None, Within(1, 32)] = None
    """Leaf switches of leafspine and tree."""
    spines: Annotated[int | None, Within(1, 32)] = None
    """Spine switches of leafspine."""
    pods: Annotated[int | None, Within(2, 8)] = None
    """Pods of fattree."""
    placement: Annotated[str, OneOf(PLACEMENTS)] = AUTO
    """Which of several switches keep a block."""
    scale: Annotated[float, Within(1, 1e9)] = 40_000.0
    """Sigma: bytes and link rates are divided by it."""
    model: Annotated[str, OneOf(MODELS)] = DEFAULT_MODEL
    """Model whose KV is stored."""
    link_gbit_s: Annotated[float, Within(0.001, 100_000), Variable("LINK_GBIT")] = 200.0
    """Real rate of a host's link, Gbit/s."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Of what the nodes ask for."""
    live: bool = False
    """Show links, tiers, pool and decisions in a terminal while it runs."""
    metrics: Annotated[int, Within(0, 65535)] = 0
    """Port on 127.0.0.1 where Prometheus finds metrics of all processes; 0: none."""
    quick: bool = False
    """1: fewer points: 1,4,16 nodes, the same and different blocks."""
    results: Path = Path("results/incast")
    """Folder for summary.json and plots."""


def parse_options(arguments: Sequence[str]) -> IncastOptions:
    """Options from the command line and the environment; raises OptionError."""
    options = read(IncastOptions, arguments, "weir incast", __doc__ or "")
    nodes, patterns = (QUICK_NODES, QUICK_PATTERNS) if options.quick else (ALL_NODES, PATTERNS)
    return replace(options, nodes=options.nodes or nodes, patterns=options.patterns or patterns)
