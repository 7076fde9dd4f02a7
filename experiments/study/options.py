"""Options of make study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, OneOf, Within
from commands.options import read
from commands.trace_options import TraceOptions
from experiments.study.plan import AXES
from experiments.study.setting_map import MAP
from experiments.study.space import SPACE
from experiments.study.systems import Setting

QUICK_REQUESTS = 400
REQUESTS = 2000
QUICK_SEEDS = 2
MINUTES = 120.0
REMAINING_SEEDS = "remaining seeds"
TIME_SHARES = {
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
    REMAINING_SEEDS: 40.0,
}
"""Parts of the time for the first seeds of each sweep, in the order of the sweeps.

Time that a sweep does not use goes to the following ones. REMAINING_SEEDS is for the seeds of all sweeps
beyond the first.
"""
ALL_SEEDS_FIRST = (
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
"""Sweeps that get all of their seeds before the others get more than their first ones.

They are the purchases and designs, which answer the question; axes, map and tornado come later.
"""
SWEEPS = tuple(name for name in TIME_SHARES if name != REMAINING_SEEDS)
DEFAULT_SWEEPS = tuple(name for name in SWEEPS if name != SPACE)
POINTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class StudyOptions(TraceOptions):
    """Sweeps of the study, and where their simulations are computed."""

    quick: bool = False
    """Whether to run a small study, to see that everything works."""
    scheduler: str | None = None
    """Address of a Dask scheduler, tcp://host:port; default: a local cluster on all cores."""
    workers: Annotated[int | None, Within(1, 1024)] = None
    """Number of processes of the local cluster; default: one a core."""
    requests: Annotated[int | None, Within(10, 1_000_000)] = None
    """Number of requests of each simulation; default: 2000, with QUICK 400."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """First seed of the generated traffic."""
    seeds: Annotated[int | None, Within(2, 31)] = None
    """Number of seeds of each point, the same for all systems; default: all, or fewer if
    the time ends before."""
    minutes: Annotated[float, Within(0.01, 10_000)] = MINUTES
    """Minutes after which no new simulation is begun; the report says what was left out."""
    sweeps: tuple[Annotated[str, OneOf(SWEEPS)], ...] = DEFAULT_SWEEPS
    """Sweeps to run; default: all but space."""
    points: Annotated[int, Within(10, 1_000_000)] = POINTS
    """Number of small simulations in the sweep space."""
    results: Path = Path("results/study")
    """Folder for points, tables and the report."""

    def traced(self, centre: Setting) -> Setting | None:
        """Return the setting with the trace as its traffic; None if no trace is given."""
        fields = tuple(self.scenario_fields().items())
        if not fields:
            return None
        tokens = self.block_tokens or centre.block_tokens
        return replace(centre, trace=str(self.trace), trace_fields=fields, block_tokens=tokens)

    @property
    def requests_played(self) -> int:
        """Return the number of requests of each simulation."""
        return self.requests or (QUICK_REQUESTS if self.quick else REQUESTS)

    @property
    def seeds_played(self) -> int | None:
        """Return the number of seeds of each point, from `seed` on.

        None means a few of each sweep first, then all, as far as the time allows.
        """
        return self.seeds or (QUICK_SEEDS if self.quick else None)


def parse_options(arguments: Sequence[str], program: str, description: str) -> StudyOptions:
    """Return the options from the command line and the environment; raises OptionError."""
    return read(StudyOptions, arguments, program, description)
