"""make bench WHAT=slots: a day of admissions and evictions in a pool whose blocks differ in length."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Within
from commands.options import read
from controller.config import PoolSize
from controller.policies import OWN_POLICIES
from emulator.result import revision
from experiments.bench.slots.churn import Churn, play
from experiments.page import Section, bars, write_report
from workload.compression import BlockSizes, codecs, find_compression
from workload.generate import DEFAULT_SHAPE, generate
from workload.shapes import SHAPES

MOST_UNUSABLE = 0.05
DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class SlotsOptions:
    """What is played."""

    shape: Annotated[str, OneOf(SHAPES)] = DEFAULT_SHAPE
    """Shape of the generated trace."""
    requests: Annotated[int, Within(10, 10_000_000)] = 4000
    """Requests of the day."""
    pool_blocks: Annotated[int, Within(20, 65_536)] = 512
    """Memory of the pool, in plain blocks."""
    fragments: Annotated[int, Within(2, 65_535)] = 65
    """Of a plain block; 65: MODEL=llama3-70b at SCALE=5000."""
    codec: Annotated[str, OneOf(codecs())] = "cachegen"
    """Whose sizes blocks have."""
    level: Annotated[int | None, Within(0, 99)] = None
    """Of the codec; default: its default."""
    policies: tuple[Annotated[str, OneOf(OWN_POLICIES)], ...] = OWN_POLICIES
    """Policies of the pool."""
    spare: tuple[Annotated[float, Within(0, 0.5)], ...] = (0.0, 0.02, 0.04)
    """Shares of the slots that they may not fill."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Of the trace."""
    results: Path = Path("results/bench_slots")
    """Folder for summary.json."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0; 1: more than MOST_UNUSABLE is unusable with the largest spare share; 2: bad input."""
    return run_command(
        arguments,
        lambda given: read(SlotsOptions, given, "make bench WHAT=slots", __doc__ or ""),
        _work,
    )


def _work(screen: Screen, options: SlotsOptions) -> int:
    trace = generate(options.shape, options.seed, options.requests, options.requests / DAY_S)
    sizes = BlockSizes(options.fragments, find_compression(options.codec, options.level))
    slots = options.pool_blocks * options.fragments
    found: list[tuple[str, float, Churn]] = []
    with screen.progress() as progress:
        task = progress.add_task("", total=len(options.policies) * len(options.spare))
        for policy in options.policies:
            for spare in options.spare:
                progress.update(task, description=f"{policy}, {spare:.0%} spare")
                size = PoolSize(
                    int(slots / sizes.mean_fragments), slots, sizes.most_fragments, int(spare * slots)
                )
                found.append((policy, spare, play(trace, policy, sizes, size, options.seed)))
                progress.advance(task)
    screen.show(_table(trace.duration_s, options, found))
    rows = [
        {"policy": policy, "spare": spare, "unusable": one.unusable, **asdict(one)}
        for policy, spare, one in found
    ]
    about = {
        "shape": options.shape,
        "requests": options.requests,
        "seed": options.seed,
        "trace_s": trace.duration_s,
    }
    about |= {"codec": options.codec, "level": options.level, "slots": slots, "revision": revision()}
    options.results.mkdir(parents=True, exist_ok=True)
    summary = options.results / "summary.json"
    summary.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    screen.say(f"Written to {summary}; to look at: {_write_page(options.results, about, found)}")
    most = max(options.spare)
    return int(any(one.unusable > MOST_UNUSABLE for _, spare, one in found if spare == most))


def _write_page(folder: Path, about: dict[str, object], found: Sequence[tuple[str, float, Churn]]) -> Path:
    titles = [
        "policy",
        "spare, %",
        "admitted",
        "evicted for room in one piece",
        "no slot",
        "blocks held",
        "unusable, %",
    ]
    rows = [
        [policy, 100 * spare, one.admitted, one.in_the_way, one.no_slot, one.held_blocks, 100 * one.unusable]
        for policy, spare, one in found
    ]
    labels = [f"{policy}, {spare:.0%} spare" for policy, spare, _ in found]
    plots = [bars("Unusable slots, %", labels, {"unusable": [100 * one.unusable for _, _, one in found]})]
    section = Section("Slots after a day", "slots", titles, rows, plots)
    return write_report(folder, "make bench WHAT=slots: what long churn leaves usable", about, [section])


def _table(duration_s: float, options: SlotsOptions, found: Sequence[tuple[str, float, Churn]]) -> Table:
    hours = duration_s / 3600
    table = Table(
        title=f"{options.requests:,} requests in {hours:.1f} h, blocks of {options.codec}",
        title_justify="left",
    )
    for title in (
        "policy",
        "spare",
        "admitted",
        "evicted for room in one piece",
        "no slot",
        "blocks held",
        "unusable",
    ):
        table.add_column(title, justify="left" if title == "policy" else "right")
    for policy, spare, one in found:
        table.add_row(
            policy, f"{spare:.0%}", f"{one.admitted:,}", f"{one.in_the_way / max(1, one.admitted):.2%}",
            f"{one.no_slot:,}", f"{one.held_blocks:,.0f}", f"{one.unusable:.2%}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
