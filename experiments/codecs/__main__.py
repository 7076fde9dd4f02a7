"""make codecs: pools of plain, 8-bit and CacheGen's blocks. When does compressing beat a larger pool?"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Variable, Within
from commands.intervals import Interval, mean_interval
from commands.options import read
from controller.policies import OWN_POLICIES
from emulator.result import revision
from experiments.codecs.streams import Streams, simulated, table
from experiments.codecs.sweep import GPU, MODEL, Codec, replayed, ttft_ms
from experiments.page import Section, write_report
from simulator.compiled import engine
from workload.compression import CODERS, NONE
from workload.shapes import SHAPES

CODECS = (Codec(NONE), Codec("fp8"), Codec("cachegen"))


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class Options:
    """What is compared."""

    shapes: tuple[Annotated[str, OneOf(SHAPES)], ...] = ("chat", "agents", "rag")
    """Shapes of generated traces."""
    requests: Annotated[int, Within(10, 1_000_000)] = 2000
    """Of each trace that is replayed."""
    seeds: Annotated[int, Within(1, 100)] = 3
    """Of each trace."""
    blocks: tuple[Annotated[int, Within(20, 10_000_000)], ...] = (300, 1000, 3000, 10_000, 30_000)
    """Plain blocks of pool."""
    policy: Annotated[str, OneOf(OWN_POLICIES)] = "reuse"
    """Of the pools."""
    simulated: tuple[Annotated[int, Within(1, 10_000_000)], ...] = (300,)
    """Plain blocks of pool that are simulated."""
    links: tuple[Annotated[float, Within(0.1, 10_000)], ...] = (25.0, 200.0)
    """Gbit/s of the links that are simulated."""
    simulated_shape: Annotated[str, OneOf(SHAPES)] = "chat"
    """Shape that is simulated."""
    simulated_requests: Annotated[int, Within(10, 1_000_000)] = 800
    """Of each trace that is simulated."""
    stream_links: tuple[Annotated[float, Within(0.1, 10_000)], ...] = (10.0, 25.0, 100.0)
    """Gbit/s of the links of streams."""
    ttft_slo_s: Annotated[float, Within(0.001, 1e6), Variable("TTFT_SLO")] = 1.0
    """Seconds to the first token that streams aim at."""
    results: Path = Path("results/codecs")
    """Folder for summary.json."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0, or 2 for bad input."""
    return run_command(arguments, lambda given: read(Options, given, "weir codecs", __doc__ or ""), _work)


def _work(screen: Screen, options: Options) -> int:
    seeds = range(1, options.seeds + 1)
    streams = Streams(
        shape=options.simulated_shape, requests=options.simulated_requests, seeds=options.seeds,
        links=options.stream_links, slo_s=options.ttft_slo_s,
    )  # fmt: skip
    replays = list(itertools.product(options.shapes, options.blocks, CODECS))
    coded = [(codec, coder) for codec in CODECS for coder in (CODERS if codec.name != NONE else ("cpu",))]
    simulations = list(itertools.product(options.links, options.simulated, coded))
    hits: list[dict[str, Any]] = []
    times: list[dict[str, Any]] = []
    with screen.progress() as progress:
        task = progress.add_task("", total=(len(replays) + len(simulations)) * options.seeds + streams.steps)
        for shape, blocks, codec in replays:
            progress.update(task, description=f"{shape}, {blocks} blocks, {codec.label}")
            found = []
            for seed in seeds:
                found.append(replayed(shape, options.requests, seed, blocks, codec, options.policy))
                progress.advance(task)
            hits.append(
                {"shape": shape, "blocks": blocks, "codec": codec.label}
                | {"prefix_hit": mean_interval([one.prefix_hit for one in found])}
                | {"sent": mean_interval([one.sent for one in found])}
            )
        for link_gbit_s, blocks, (codec, coder) in simulations:
            progress.update(
                task, description=f"{link_gbit_s:g} Gbit/s, {blocks} blocks, {codec.label} by {coder}"
            )
            ttfts = []
            for seed in seeds:
                given = options.simulated_shape, options.simulated_requests, seed, blocks, codec, coder
                ttfts.append(ttft_ms(*given, link_gbit_s))
                progress.advance(task)
            times.append(
                {"link_gbit_s": link_gbit_s, "blocks": blocks, "codec": codec.label, "coder": coder}
                | {"ttft_p50_ms": mean_interval(ttfts)}
            )
        streamed = simulated(streams, lambda what: progress.update(task, description=what, advance=1))
    screen.show(_hits_table(options, hits))
    screen.show(_times_table(options, times))
    screen.show(table(streams, streamed))
    about = {"model": MODEL, "gpu": GPU, "policy": options.policy, "requests": options.requests}
    about |= {"seeds": options.seeds, "revision": revision(), "engine": engine()}
    options.results.mkdir(parents=True, exist_ok=True)
    summary = options.results / "summary.json"
    tables = hits, times, streamed
    plain = {name: _plain(rows) for (_, name), rows in zip(_PAGE, tables, strict=True)}
    summary.write_text(json.dumps({"about": about, **plain}, indent=1) + "\n")
    screen.say(f"Written to {summary}; to look at: {_write_page(options.results, about, *tables)}")
    return 0


def _write_page(folder: Path, about: dict[str, Any], *tables: Sequence[dict[str, Any]]) -> Path:
    sections = [
        Section(heading, name, list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])
        for (heading, name), rows in zip(_PAGE, tables, strict=True)
    ]
    return write_report(folder, "make codecs: compressed blocks or a larger pool", about, sections)


_PAGE = (
    ("Prefix hits of the pool", "replayed"),
    ("Time to first token", "simulated"),
    ("Streams at levels of their choice", "streamed"),
)
"""Heading and name of each table."""


def _cell(value: object) -> object:
    return f"{value.mean:.4g} ± {value.half:.2g}" if isinstance(value, Interval) else value


def _hits_table(options: Options, hits: Sequence[dict[str, Any]]) -> Table:
    table = Table(
        title=f"Prefix hits of the pool, % (95 % intervals over {options.seeds} seeds)", title_justify="left"
    )
    for title in ("shape", "plain blocks", *(codec.label for codec in CODECS)):
        table.add_column(title, justify="left" if title == "shape" else "right")
    for shape, blocks in itertools.product(options.shapes, options.blocks):
        cells = [one["prefix_hit"] for one in hits if (one["shape"], one["blocks"]) == (shape, blocks)]
        table.add_row(shape, f"{blocks:,}", *(f"{100 * cell:.1f}" for cell in cells))
    return table


def _times_table(options: Options, times: Sequence[dict[str, Any]]) -> Table:
    title = f"Median time to first token, ms ({options.simulated_shape}; {options.seeds} seeds)"
    table = Table(title=title, title_justify="left")
    kinds = list(dict.fromkeys((one["codec"], one["coder"]) for one in times))
    for name in ("link, Gbit/s", "plain blocks", *(f"{codec}, {coder}" for codec, coder in kinds)):
        table.add_column(name if not name.startswith(NONE) else NONE, justify="right")
    for link_gbit_s, blocks in itertools.product(options.links, options.simulated):
        cells = [
            one["ttft_p50_ms"]
            for one in times
            if (one["link_gbit_s"], one["blocks"]) == (link_gbit_s, blocks)
        ]
        table.add_row(f"{link_gbit_s:g}", f"{blocks:,}", *(f"{cell:,.0f}" for cell in cells))
    return table


def _plain(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: asdict(value) if isinstance(value, Interval) else value for name, value in row.items()}
        for row in rows
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
