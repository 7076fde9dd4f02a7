"""Options of make study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.options import Option, parse_into, whole

QUICK_REQUESTS = 400
REQUESTS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """What is swept, and where it is computed."""

    quick: bool
    scheduler: str | None
    workers: int | None
    trace: Path | None
    requests: int | None
    seed: int
    results: Path

    @property
    def requests_played(self) -> int:
        """Requests of each simulation."""
        return self.requests or (QUICK_REQUESTS if self.quick else REQUESTS)


_OPTIONS = (
    Option("QUICK", lambda text: text not in ("0", "no"), False, "1: a small study in under two minutes"),
    Option(
        "SCHEDULER", str, None, "a Dask scheduler, tcp://host:port; default: a local cluster on all cores"
    ),
    Option("WORKERS", whole(1, 1024), None, "processes of the local cluster; default: one a core"),
    Option("TRACE", Path, None, "a trace file to study besides the generated shapes"),
    Option(
        "REQUESTS",
        whole(10, 1_000_000),
        None,
        f"of each simulation; default {REQUESTS}, quick {QUICK_REQUESTS}",
    ),
    Option("SEED", whole(0, 2**31), 1, "of the generated traffic"),
    Option("RESULTS", Path, Path("results/study"), "folder for points, tables and the report"),
)


def parse_options(arguments: Sequence[str], program: str, description: str) -> StudyOptions:
    """Options from the command line and the environment; raises OptionError."""
    return parse_into(StudyOptions, _OPTIONS, arguments, program, description)
