"""Options of the experiment on blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commands.options import Option, parse_into, whole, yes_or_no


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksOptions:
    """What one `make blocks` measures."""

    model: Path | None
    samples: int
    seed: int
    seeds: int
    record: bool
    results: Path


# In the order of BlocksOptions' fields.
_OPTIONS = (
    Option(
        "MODEL", Path, None, "folder of a Hugging Face causal model; by default a small one is made in build/"
    ),
    Option("SAMPLES", whole(4, 1000), 24, "held-out documents"),
    Option("SEED", whole(0, 2**31), 1, "of the documents; the model has its own"),
    Option("SEEDS", whole(1, 20), 1, "sets of documents; above 1 the tables have intervals"),
    Option(
        "RECORD",
        yes_or_no,
        False,
        "1: instead, record sizes and rates of all codecs for make run and the simulator",
    ),
    Option("RESULTS", Path, Path("results/blocks"), "folder for summary.json and report.html"),
)


def parse_options(arguments: Sequence[str]) -> BlocksOptions:
    """Options from the command line and the environment; raises OptionError."""
    return parse_into(BlocksOptions, _OPTIONS, arguments, "make blocks", __doc__ or "")
