"""What a run of replays is asked to do: command line first, then the environment (as make sets it)."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controller.policies.baseline import MIN_BLOCKS
from experiments.options import OptionError, add_verbosity
from experiments.policies.pools import NAMES
from workload.adversarial import ADVERSARIAL
from workload.cost import DEFAULT_GPU, DEFAULT_MODEL, GPUS, MODELS
from workload.generate import DEFAULT_SEED, generate
from workload.shapes import ALL_SHAPES, SHAPES
from workload.trace import Trace, load_trace

DEFAULT_BLOCKS = (300, 1000, 3000, 10000, 30000)
DEFAULT_REQUESTS = 12_000


@dataclass(frozen=True)
class Options:
    """One run of replays."""

    trace: Path | None
    shapes: tuple[str, ...]
    requests: int
    seed: int
    blocks: tuple[int, ...]
    policies: tuple[str, ...]
    ablation: bool
    cross: bool
    live: bool
    bound: bool
    reclaim: bool
    explain: str
    events: Path | None
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
        if self.trace is not None:
            return [load_trace(self.trace)]
        return [generate(shape, self.seed, self.requests) for shape in self.shapes]


def parse_options(arguments: Sequence[str]) -> Options:
    """Read the options; raises OptionError. argparse itself ends the program on unknown arguments."""
    given = _parser().parse_args(arguments)
    blocks = _sizes(given.blocks)
    policies = _names(given.policies, NAMES, "policy")
    shapes = _names(given.shapes, tuple(ALL_SHAPES), "shape")
    return Options(
        Path(given.trace) if given.trace else None,
        shapes,
        _whole("REQUESTS", given.requests),
        _whole("SEED", given.seed, least=0),
        blocks,
        policies,
        _yes(given.ablation),
        _yes(given.cross),
        _yes(given.live),
        _yes(given.bound),
        _yes(given.reclaim),
        given.explain,
        Path(given.events) if given.events else None,
        given.model,
        given.gpu,
        _whole("JOBS", given.jobs),
        Path(given.results),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.policies",
        description="Replay a trace, or all generated shapes, through all policies at several pool sizes.",
        epilog="Every option may also be given by an environment variable of its name: TRACE, BLOCKS, …",
    )

    def option(name: str, default: object, text: str) -> None:
        value = os.environ.get(name.upper()) or default
        parser.add_argument(f"--{name}", default=value, help=f"{text} (default: {default or 'none'})")

    option("trace", "", "a JSONL file in Mooncake's or Bailian's schema; without it, generated shapes")
    option("shapes", ",".join(SHAPES), f"generated shapes to replay; also {', '.join(ADVERSARIAL)}")
    option("requests", DEFAULT_REQUESTS, "requests of each generated trace")
    option("seed", DEFAULT_SEED, "seed of the generated traces")
    option("blocks", ",".join(map(str, DEFAULT_BLOCKS)), "pool sizes in blocks")
    option("policies", ",".join(NAMES), "policies to replay")
    option("ablation", "yes", "whether to switch the parts of the reuse-value policy off one by one")
    option(
        "cross", "no", "leave each family of traces out: 5 seeds of all shapes, and TRACE in quarters by time"
    )
    option("live", "no", "compare with a policy that is told only what a switch tells")
    option("bound", "no", "how far it is to what no policy can exceed, in seconds saved")
    option("reclaim", "no", "whether evicted blocks are worth sending to homes that forget")
    option("explain", "", "a block (id in the trace, or key in an event log): why it is in the pool or not")
    option("events", "", "a live controller's event log to explain from, instead of a trace")
    option("model", DEFAULT_MODEL, f"one of {', '.join(MODELS)}")
    option("gpu", DEFAULT_GPU, f"one of {', '.join(GPUS)}")
    option("jobs", min(8, os.cpu_count() or 1), "replays at once")
    option("results", "results/policies", "folder for summary.json, ablation.json and plots")
    add_verbosity(parser)
    return parser


def _yes(text: str) -> bool:
    return text not in ("0", "no", "false")


def _whole(name: str, text: str | int, least: int = 1) -> int:
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"{name} must be a whole number, not {text!r}") from None
    if value < least:
        raise OptionError(f"{name} must be {least} or more, not {value}")
    return value


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({_whole("BLOCKS", part, MIN_BLOCKS) for part in text.split(",")}))


def _names(text: str, existing: Sequence[str], what: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in existing:
            raise OptionError(f"no {what} {name!r}: choose from {', '.join(existing)}")
    return names
