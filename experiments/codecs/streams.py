"""Streams at levels of their choice beside levels that are fixed: who meets a time to the first token?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from commands.intervals import mean_interval
from experiments.codecs.sweep import GPU, MODEL
from hostlib.model.streamer import TEXT
from scenario import Scenario
from simulator.result import SimResult
from simulator.simulation import simulate
from workload.compression import INSTANT
from workload.levels import ADAPTIVE, LADDERS

CODEC = "cachegen"
LEVELS: tuple[int | str, ...] = (ADAPTIVE, *LADDERS[CODEC])
STORED = {False: "beforehand", True: "and new ones"}
"""What is stored: only what was there at the beginning, or what nodes compute as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """What is simulated; decoding takes no time."""

    shape: str
    requests: int
    seeds: int
    links: Sequence[float]
    """Gbit/s."""
    slo_s: float

    @property
    def steps(self) -> int:
        """How often `show` is called."""
        return len(self.links) * len(STORED) * len(LEVELS) * self.seeds


def simulated(streams: Streams, show: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each link, what is stored, and level."""
    rows = []
    for link_gbit_s in streams.links:
        for stores_new in STORED:
            results: dict[int | str, list[SimResult]] = {}
            for level in LEVELS:
                for seed in range(1, streams.seeds + 1):
                    show(f"{link_gbit_s:g} Gbit/s, level {level}")
                    one = simulate(scenario(streams, seed, link_gbit_s, level, stores_new))
                    results.setdefault(level, []).append(one)
            rows += [
                {"link_gbit_s": link_gbit_s, "stored": STORED[stores_new], "level": str(level)}
                | _figures(results[level], results[LEVELS[-1]], level)
                for level in LEVELS
            ]
    return rows


def scenario(streams: Streams, seed: int, link_gbit_s: float, level: int | str, stores_new: bool) -> Scenario:
    """One simulation. A level that is fixed fetches all that it can have, as a stream would."""
    return Scenario().changed(
        workload={
            "shape": streams.shape, "requests": streams.requests, "seed": seed, "ttft_slo_s": streams.slo_s,
        },
        model={"name": MODEL, "gpu": GPU, "codec": CODEC, "level": level, "coder": INSTANT},
        nodes={"gate": "always", "stores_new": stores_new},
        network={"link_gbit_s": link_gbit_s},
    )  # fmt: skip


def _figures(results: Sequence[SimResult], coarsest: Sequence[SimResult], level: int | str) -> dict[str, Any]:
    met = [
        (result.met_share or 0.0, other.met_share or 0.0)
        for result, other in zip(results, coarsest, strict=True)
    ]
    return {
        "met_share": mean_interval([share for share, _ in met]),
        "met_less_coarsest": mean_interval([share - other for share, other in met]),
        "mean_level": mean_interval([_mean_level(result, level) for result in results]),
        "text_share": mean_interval([_text_share(result) for result in results]),
        "ttft_p50_ms": mean_interval([1000 * result.ttft_s.p50 for result in results]),
        "prefill_s": mean_interval([result.prefill_s for result in results]),
    }


def _mean_level(result: SimResult, level: int | str) -> float:
    """Of the blocks that came; where none did, the coarsest, which would have been tried."""
    if isinstance(level, int):
        return float(level)
    return float(LADDERS[CODEC][-1]) if result.mean_level is None else result.mean_level


def _text_share(result: SimResult) -> float:
    """Of a stream's blocks, those that were left to be computed."""
    return result.levels.get(TEXT, 0) / max(1, sum(result.levels.values()))


def table(streams: Streams, rows: Sequence[dict[str, Any]]) -> Table:
    """The figures, one row each."""
    made = Table(
        title=f"First token within {streams.slo_s:g} s, and at what quality ({streams.shape}; "
        f"{streams.seeds} seeds)",
        title_justify="left",
    )
    for name in (
        "Gbit/s",
        "stored",
        "level",
        "in time, %",
        f"less that of level {LEVELS[-1]}",
        "mean level",
        "text, %",
        "p50, ms",
        "prefill, s",
    ):
        made.add_column(name, justify="left" if name in ("stored", "level") else "right")
    for row in rows:
        made.add_row(
            f"{row['link_gbit_s']:g}",
            row["stored"],
            row["level"],
            f"{100 * row['met_share'].mean:.1f}",
            f"{100 * row['met_less_coarsest']:+.1f}",
            f"{row['mean_level'].mean:.2f}",
            f"{100 * row['text_share'].mean:.0f}",
            f"{row['ttft_p50_ms']:,.0f}",
            f"{row['prefill_s'].mean:,.0f}",
        )
    return made
