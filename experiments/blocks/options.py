"""Options of the experiment on blocks: codecs and chunk reuse on the KV of a real transformer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Existing, Within
from commands.options import read


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class BlocksOptions:
    """Options of `make blocks`, which measures KV codecs and chunk reuse on a real transformer."""

    model: Annotated[Path | None, Existing()] = None
    """Folder of a Hugging Face causal model; by default a small one is trained in build/."""
    samples: Annotated[int, Within(4, 1000)] = 24
    """Number of held-out documents."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Seed of the documents; the model's training has one of its own."""
    seeds: Annotated[int, Within(1, 20)] = 1
    """Number of sets of documents; with more than one, tables have intervals."""
    record: bool = False
    """1: only record sizes and rates of all codecs, for make run and the simulator."""
    results: Path = Path("results/blocks")
    """Folder for summary.json and report.html."""


def parse_options(arguments: Sequence[str]) -> BlocksOptions:
    """Read the options from the command line and the environment; raises OptionError."""
    return read(BlocksOptions, arguments, "weir blocks", __doc__ or "")
