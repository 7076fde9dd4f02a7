"""Options of the incast experiment: many nodes ask one storage node for the same blocks at once."""

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
    """Options of `make incast`, in which many nodes ask one storage node for the same blocks at once."""

    engine: Annotated[str, OneOf(ENGINES)] = "embedded"
    """Switch engine."""
    topology: Annotated[str, OneOf(TOPOLOGIES), Variable("TOPO")] = "star"
    """Topology of the network."""
    nodes: tuple[Annotated[int, Within(1, 64)], ...] = ()
    """Numbers of nodes that ask; default: 1,2,4,8,16, or 1,4,16 with QUICK."""
    patterns: tuple[Annotated[str, OneOf(PATTERNS)], ...] = ()
    """Patterns of blocks that they ask for; default: all, or same and different with QUICK."""
    modes: tuple[Annotated[str, OneOf(MODES)], ...] = MODES
    """Modes of the switch: neither pool nor merging, a pool, merging, both, or both and pushing."""
    blocks: Annotated[int, Within(4, 256)] = 32
    """Number of blocks that a node asks for in a burst."""
    bursts: Annotated[int, Within(1, 100)] = 3
    """Number of bursts at each point."""
    pause_s: Annotated[float, Within(0, 60), Variable("PAUSE")] = 0.5
    """Seconds from the end of a burst to the next."""
    deadline_s: Annotated[float, Within(0.1, 600), Variable("DEADLINE")] = 10.0
    """Seconds after which a node gives up on a fragment."""
    leaves: Annotated[int | None, Within(1, 32)] = None
    """Number of leaf switches of leafspine and tree."""
    spines: Annotated[int | None, Within(1, 32)] = None
    """Number of spine switches of leafspine."""
    pods: Annotated[int | None, Within(2, 8)] = None
    """Number of pods of fattree."""
    placement: Annotated[str, OneOf(PLACEMENTS)] = AUTO
    """Rule that chooses which of several switches hold a block."""
    scale: Annotated[float, Within(1, 1e9)] = 40_000.0
    """Sigma, by which bytes and link rates are divided."""
    model: Annotated[str, OneOf(MODELS)] = DEFAULT_MODEL
    """Model whose KV is stored."""
    link_gbit_s: Annotated[float, Within(0.001, 100_000), Variable("LINK_GBIT")] = 200.0
    """Rate of a host's link in Gbit/s at real scale."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Seed of the blocks that the nodes ask for."""
    live: bool = False
    """1: show links, tiers, pool and decisions in the terminal while it runs."""
    metrics: Annotated[int, Within(0, 65535)] = 0
    """Port on 127.0.0.1 at which Prometheus finds metrics of all processes; 0: none."""
    quick: bool = False
    """1: measure fewer points: 1,4,16 nodes, with the same and with different blocks."""
    results: Path = Path("results/incast")
    """Folder for summary.json and plots."""


def parse_options(arguments: Sequence[str]) -> IncastOptions:
    """Read the options from the command line and the environment; raises OptionError."""
    options = read(IncastOptions, arguments, "weir incast", __doc__ or "")
    nodes, patterns = (QUICK_NODES, QUICK_PATTERNS) if options.quick else (ALL_NODES, PATTERNS)
    return replace(options, nodes=options.nodes or nodes, patterns=options.patterns or patterns)
