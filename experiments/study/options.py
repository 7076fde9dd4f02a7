"""Options of make study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commands.options import Option, list_of, number, one_of, parse_into, whole, yes_or_no
from commands.trace_options import TRACE_OPTIONS, TraceOptions
from experiments.study.adaptive import ALL_SEEDS
from experiments.study.plan import AXES
from experiments.study.played import RESULTS as LIVE_RESULTS
from experiments.study.space import SPACE
from experiments.study.systems import Setting

QUICK_REQUESTS = 400
REQUESTS = 2000
QUICK_SEEDS = 2
MINUTES = 120.0
MAP = "map"
REST = "rest"
SHARES = {
    "rivals": 15.0,
    "tornado": 10.0,
    **dict.fromkeys((axis.field for axis in AXES), 3.0),
    MAP: 20.0,
    "gate": 5.0,
    "cold": 4.0,
    "joining": 4.0,
    "hour": 20.0,
    "designs": 10.0,
    "codec": 4.0,
    "engine": 3.0,
    "decoders": 3.0,
    "shape": 3.0,
    "ablation": 2.0,
    "control": 2.0,
    SPACE: 20.0,
    REST: 40.0,
}
"""Sweep -> its part of the budget for its first seeds, in this order; what one leaves the next ones get. The
last is for the other seeds of all."""
RESTED_FIRST = (
    "rivals",
    "gate",
    "designs",
    "codec",
    "engine",
    "cold",
    "joining",
    "shape",
    "scheduler",
)
"""Sweeps whose comparisons get all of their seeds before the others get more than their first: purchases and
designs, which the answer is of, before axes, the map and the tornado."""
SWEEPS = tuple(name for name in SHARES if name != REST)
USUAL = tuple(name for name in SWEEPS if name != SPACE)
POINTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions(TraceOptions):
    """What is swept, and where it is computed."""

    quick: bool
    scheduler: str | None
    workers: int | None
    requests: int | None
    seed: int
    seeds: int | None
    minutes: float
    sweeps: tuple[str, ...]
    points: int
    results: Path
    live: Path

    def traced(self, centre: Setting) -> Setting | None:
        """The setting with the trace as its traffic; None where none is named."""
        fields = tuple(self.scenario_fields().items())
        if not fields:
            return None
        tokens = self.block_tokens or centre.block_tokens
        return replace(centre, trace=str(self.trace), trace_fields=fields, block_tokens=tokens)

    @property
    def requests_played(self) -> int:
        """Requests of each simulation."""
        return self.requests or (QUICK_REQUESTS if self.quick else REQUESTS)

    @property
    def seeds_played(self) -> int | None:
        """Seeds of each point, from `seed` on; None: a few of each sweep, then all, as far as the budget
        goes."""
        return self.seeds or (QUICK_SEEDS if self.quick else None)


_OPTIONS = (
    *TRACE_OPTIONS,
    Option("QUICK", yes_or_no, False, "1: a small study, to see that all works"),
    Option(
        "SCHEDULER", str, None, "a Dask scheduler, tcp://host:port; default: a local cluster on all cores"
    ),
    Option("WORKERS", whole(1, 1024), None, "processes of the local cluster; default: one a core"),
    Option(
        "REQUESTS",
        whole(10, 1_000_000),
        None,
        f"of each simulation; default {REQUESTS}, quick {QUICK_REQUESTS}",
    ),
    Option("SEED", whole(0, 2**31), 1, "the first seed of the generated traffic"),
    Option(
        "SEEDS",
        whole(2, 31),
        None,
        f"of each point, the same for all systems; default: {ALL_SEEDS}, fewer where the budget ends "
        f"before; quick {QUICK_SEEDS}",
    ),
    Option(
        "MINUTES",
        number(0.01, 10_000),
        MINUTES,
        "after which nothing new is begun; what was left out is said",
    ),
    Option(
        "SWEEPS",
        list_of(one_of(SWEEPS)),
        USUAL,
        f"what to compute, joined by commas: {', '.join(SWEEPS)}; default: all but {SPACE}",
    ),
    Option("POINTS", whole(10, 1_000_000), POINTS, f"small simulations of the sweep {SPACE}"),
    Option("RESULTS", Path, Path("results/study"), "folder for points, tables and the report"),
    Option("PLAYED", Path, LIVE_RESULTS, "folder of what experiments.study.live played, for the report"),
)


def parse_options(arguments: Sequence[str], program: str, description: str) -> StudyOptions:
    """Options from the command line and the environment; raises OptionError."""
    return parse_into(StudyOptions, _OPTIONS, arguments, program, description)
