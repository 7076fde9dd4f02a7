"""The page results/policies/report.html."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from emulator.result import revision
from experiments.page import Section, lines, write_report
from experiments.policies.options import PoliciesOptions
from experiments.policies.replay import Result


def write_page(options: PoliciesOptions, results: Mapping[str, Sequence[Result]]) -> Path:
    """Write the page with one section for each trace, and return its path.

    Replays are not timed, so that the page has no warning about a slow machine.
    """
    about = {
        "seed": options.seed, "revision": revision(), "engine": "replay", "model": options.model,
        "gpu": options.gpu, **options.non_defaults(),
    }  # fmt: skip
    sections = []
    for trace, rows in results.items():
        policies = dict.fromkeys(row.policy for row in rows)
        plots = [
            lines(
                what,
                "blocks in the pool",
                {
                    policy: [(row.blocks, getattr(row, figure)) for row in rows if row.policy == policy]
                    for policy in policies
                },
                log_x=True,
            )
            for what, figure in (
                ("block hit ratio", "block_hit"),
                ("seconds that requests were spared", "saved_s"),
            )
        ]
        name = Path(trace).name
        sections.append(Section(name, Path(trace).stem, _TITLES, [_row(row) for row in rows], plots))
    return write_report(options.results, "make policies: replayed traces", about, sections)


_TITLES = [field.name.replace("_", " ") for field in fields(Result)]


def _row(result: Result) -> list[object]:
    return [f"{value:.3f}" if isinstance(value, float) and value < 10 else value for value in astuple(result)]
