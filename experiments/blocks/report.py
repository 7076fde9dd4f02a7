"""Report of the findings: tables in the terminal, summary.json, and a page with the plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from rich.table import Table

from commands.intervals import Interval
from experiments.blocks.measure import Measured
from experiments.blocks.study import BlendResult, Findings, block_shares
from experiments.page.document import Page
from experiments.page.style import base_layout, series_style


def codec_table(findings: Findings) -> Table:
    """Return a table of every codec and level, sorted by ratio, that fits a terminal of 80 columns."""
    titles = ("codec", "level", "ratio", "perplexity, %", "top-1", "KL", "cont.", "enc, dec MB/s")
    table = _table("A block's bytes, and what the model says with what comes out of them", titles)
    for one in sorted(findings.codecs, key=lambda one: one.ratio):
        quality = one.quality
        table.add_row(
            one.codec,
            str(one.level),
            f"{one.ratio:.2f}",
            f"{_costs(one, findings):+.2f}",
            f"{quality.top1_agreement:.3f}",
            f"{quality.kl:.4f}",
            f"{quality.continuation:.2f}",
            f"{one.encode_mb_s:.1f}, {one.decode_mb_s:.1f}",
        )
    return table


def interval_table(findings: Findings) -> Table:
    """Return the table of codecs over all sets of documents, with 95 % intervals."""
    sets = 1 + len(findings.more)
    titles = ("codec", "level", "ratio", "perplexity, %", "KL")
    table = _table(f"Over {sets} sets of documents, with 95 % intervals", titles)
    for place, one in sorted(enumerate(findings.codecs), key=lambda pair: pair[1].ratio):
        several = findings.intervals(place)
        table.add_row(
            one.codec,
            str(one.level),
            _plus_minus(several["ratio"], 1, 2),
            _plus_minus(several["perplexity_lost"], 100, 2, "+"),
            _plus_minus(several["kl"], 1, 4),
        )
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", padding=(0, 0, 0, 1))
    for column in columns:
        table.add_column(column, justify="left" if column in ("codec", "level") else "right", no_wrap=True)
    return table


def blend_table(findings: Findings) -> Table:
    """Return the table of chunk reuse by share of tokens recomputed."""
    table = Table(title="Chunks reused that are no prefixes")
    for title in ("how", "recomputed", "operations saved", "perplexity", "recall", "top-1", "KL"):
        table.add_column(title, justify="left" if title == "how" else "right")
    for place, one in enumerate(findings.blends):
        quality = one.quality
        cells = [f"{quality.perplexity:.3f}", f"{quality.recall:.3f}", f"{quality.top1_agreement:.3f}"]
        cells.append(f"{quality.kl:.4f}")
        if findings.more_blends:
            several = findings.blend_intervals(place)
            digits = {"perplexity": 3, "recall": 3, "top1_agreement": 3, "kl": 4}
            cells = [_plus_minus(several[name], 1, count) for name, count in digits.items()]
        table.add_row(one.how, f"{one.recomputed:.1%}", f"{one.flops_saved:.1%}", *cells)
    return table


def write_summary(path: Path, about: dict[str, Any], findings: Findings) -> None:
    """Write the summary so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    summary = {
        **about,
        "counts": not findings.sensitivity.shortfalls,
        "sensitivity": {
            "perplexity": findings.sensitivity.perplexity,
            "shuffled_perplexity": findings.sensitivity.shuffled_perplexity,
            "recall": findings.sensitivity.recall,
            "foreign_recall": findings.sensitivity.foreign_recall,
        },
        "shortfalls": findings.shortfalls,
        "codecs": [
            one.fields(findings.exact) | _interval_fields(findings, place)
            for place, one in enumerate(findings.codecs)
        ],
        "blend": [
            one.fields() | _blend_interval_fields(findings, place)
            for place, one in enumerate(findings.blends)
        ],
        "block_shares": block_shares(findings.codecs),
    }
    part = path.with_suffix(".part")
    part.write_text(json.dumps(summary, indent=1) + "\n")
    part.replace(path)


def write_page(path: Path, model: str, about: Mapping[str, object], findings: Findings) -> None:
    """Write plots and tables as one HTML file."""
    page = Page("What is in a block")
    page.text(f"Measured on {model}.", "lead")
    page.text(", ".join(f"{name} {value}" for name, value in about.items()) + ".")
    for shortfall in findings.shortfalls:
        page.text(f"Not as it should be: {shortfall}.", "warning")
    page.plot(_codec_plot(findings), "Perplexity lost against ratio, every codec")
    page.plot(_blend_plot(findings.blends), "Recall and divergence against the share of tokens recomputed")
    rows = [list(one.fields(findings.exact).values()) for one in findings.codecs]
    page.table("codecs", list(findings.codecs[0].fields(findings.exact)), [_rounded(row) for row in rows])
    page.table(
        "blend",
        list(findings.blends[0].fields()),
        [_rounded(list(one.fields().values())) for one in findings.blends],
    )
    page.write(path)


def _codec_plot(findings: Findings) -> go.Figure:
    """Return the plot of loss against ratio; its axis is logarithmic and starts at a loss of 0.01 %."""
    figure = go.Figure()
    names = list(dict.fromkeys(one.codec for one in findings.codecs))
    for number, name in enumerate(names):
        points = sorted((one for one in findings.codecs if one.codec == name), key=lambda one: one.ratio)
        figure.add_scatter(
            x=[one.ratio for one in points],
            y=[max(0.01, _costs(one, findings)) for one in points],
            text=[str(one.level) for one in points],
            name=name,
            mode="lines+markers+text",
            textposition="top center",
            **series_style(number),
        )
    figure.add_hline(y=2, line_dash="dot", annotation_text="2 %")
    figure.update_layout(
        **base_layout(title_text="What a block costs and what it loses", height=520),
        xaxis_title="bytes in bfloat16 over bytes sent",
        yaxis_title="perplexity lost, %",
        yaxis_type="log",
    )
    return figure


def _blend_plot(blends: Sequence[BlendResult]) -> go.Figure:
    figure = go.Figure()
    shown = [one for one in blends if one.how != "prefix reuse"]
    for number, (name, column) in enumerate(
        (("recall", "recall"), ("top-1 agreement", "top1_agreement"), ("KL, nats", "kl"))
    ):
        figure.add_scatter(
            x=[100 * one.recomputed for one in shown],
            y=[one.fields()[column] for one in shown],
            name=name,
            mode="lines+markers",
            **series_style(number),
        )
    figure.update_layout(
        **base_layout(title_text="What recomputing some tokens brings back", height=420),
        xaxis_title="tokens recomputed, %",
    )
    return figure


def _costs(one: Measured, findings: Findings) -> float:
    """Return how many per cent of perplexity a codec costs."""
    return 100 * (one.quality.perplexity / findings.exact.perplexity - 1)


def _plus_minus(interval: Interval, times: float, digits: int, sign: str = "") -> str:
    return f"{times * interval:{sign}.{digits}f}"


def _blend_interval_fields(findings: Findings, place: int) -> dict[str, Any]:
    if not findings.more_blends:
        return {}
    return {"intervals": {name: asdict(one) for name, one in findings.blend_intervals(place).items()}}


def _interval_fields(findings: Findings, place: int) -> dict[str, Any]:
    """Return mean, low and high over all sets of documents; empty for a single set."""
    if not findings.more:
        return {}
    return {"intervals": {name: asdict(one) for name, one in findings.intervals(place).items()}}


def _rounded(row: Sequence[Any]) -> list[Any]:
    return [f"{cell:.4g}" if isinstance(cell, float) else cell for cell in row]
