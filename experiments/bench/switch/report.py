"""Tables that are printed at the end of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from experiments.bench.switch.engines import ECHO
from experiments.bench.switch.measure import Measurement
from experiments.bench.switch.startup import ControlFigures
from experiments.bench.switch.summary import Figure, Rounds, figures, ratios
from experiments.bench.switch.workloads import WORKLOADS

_TITLES = {workload.name: workload.title for workload in WORKLOADS}
REFERENCES = (ECHO, "bmv2")
MB = 1e6


def print_report(
    console: Console, rounds: Rounds, control: Mapping[str, ControlFigures], sink_per_s: float
) -> None:
    """Print packets a second, figures of the control plane, and where the generator was the limit."""
    console.print(_packets(rounds))
    if control:
        console.print(_control(control))
    limited = [
        f"{_TITLES[workload]} ({engine})"
        for workload, engines in rounds.items()
        for engine, measured in engines.items()
        if any(one.generator_limited for one in measured)
    ]
    if sink_per_s:
        console.print(f"The load generator sends {sink_per_s:,.0f} frames a second to a sink.")
    if limited:
        console.print(
            f"The load generator was the limit for: {', '.join(limited)}; the engine may be faster."
        )


def _packets(rounds: Rounds) -> Table:
    table = Table(title="Packets answered a second (median ± half the range)")
    table.add_column("", no_wrap=True)
    references = [name for name in REFERENCES if all(name in engines for engines in rounds.values())]
    compared = [f"x {name}" for name in references]
    for heading in ("no loss", *compared, "overload", "offered", "p50 / p99 us, half of no loss"):
        table.add_column(heading, justify="right")
    for workload, engines in rounds.items():
        table.add_row(f"[bold]{_TITLES[workload]}")
        for engine in engines:
            table.add_row(*_row(engine, engines, references))
        table.add_section()
    return table


def _row(engine: str, engines: Mapping[str, Sequence[Measurement]], references: Sequence[str]) -> list[str]:
    of = figures(engines[engine])
    return [
        f"  {engine}",
        _rate(of["lossless_per_s"]),
        *(_compared(engine, engines, reference) for reference in references),
        f"{of['overload_per_s'].median:,.0f}",
        f"{of['offered_per_s'].median:,.0f}",
        f"{of['p50_us'].median:.0f} / {of['p99_us'].median:.0f}",
    ]


def _compared(engine: str, engines: Mapping[str, Sequence[Measurement]], reference: str) -> str:
    if engine == reference:
        return ""
    ratio = ratios(engines[engine], engines[reference], "lossless_per_s")
    return "-" if math.isnan(ratio.median) else f"{ratio.median:.2f}"


def _rate(of: Figure) -> str:
    spread = (of.high - of.low) / 2 / of.median if of.median else 0
    return f"{of.median:,.0f}" + (f" ±{spread:.0%}" if spread else "")


def _control(control: Mapping[str, ControlFigures]) -> Table:
    table = Table(title="The pool's program; compile and set pipeline with a cold / warm cache")
    table.add_column("")
    for heading in ("compile s", "set pipeline s", "writes/s", "memory MB", "of it registers MB"):
        table.add_column(heading, justify="right")
    for engine, of in control.items():
        table.add_row(
            engine,
            f"{of.compile_cold_s:.2f} / {of.compile_warm_s:.2f}",
            f"{of.pipeline_cold_s:.2f} / {of.pipeline_warm_s:.2f}",
            f"{of.writes_per_s:,.0f}",
            f"{of.resident_bytes / MB:.0f}",
            f"{of.register_bytes / MB:.1f}",
        )
    return table
