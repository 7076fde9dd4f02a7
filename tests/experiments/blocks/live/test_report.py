"""Tables of make blocks: one set of documents, and intervals over several, in 80 columns."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="make test-blocks")

from rich.console import Console
from rich.table import Table

from experiments.blocks.counts import Sensitivity
from experiments.blocks.measure import Measured
from experiments.blocks.quality import Quality
from experiments.blocks.report import codec_table, interval_table, write_summary
from experiments.blocks.study import Findings
from tests.experiments.summaries import assert_described

EXACT = Quality(4.0, 1.0, 1.0, 0.0, 1.0)


def measured(ratio: float, perplexity: float, kl: float) -> Measured:
    quality = Quality(perplexity, 1.0, 0.5, kl, 0.5)
    return Measured("kvtc", "K2V4 block", ratio, 0.1, quality, 1234.5, 1234.5, (1, 2))


def findings() -> Findings:
    made = Findings(EXACT, Sensitivity(4.0, 9.0, 1.0, 0.5), codecs=[measured(2.0, 4.4, 0.01)])
    made.more = [(EXACT, [measured(2.2, 4.0, 0.02)]), (EXACT, [measured(2.4, 4.8, 0.03)])]
    return made


def shown(table: Table) -> str:
    out = StringIO()
    Console(file=out, width=80).print(table)
    assert "…" not in out.getvalue()
    return out.getvalue()


def test_the_first_set_is_shown_in_full() -> None:
    text = shown(codec_table(findings()))
    for cell in ("K2V4 block", "2.00", "+10.00", "0.500", "0.0100", "1234.5, 1234.5"):
        assert cell in text


def test_several_sets_have_means_and_intervals() -> None:
    intervals = findings().intervals(0)
    assert round(intervals["ratio"].mean, 6) == 2.2
    assert round(intervals["ratio"].half, 3) == 0.497  # 4.303 * 0.2 / sqrt(3)
    text = shown(interval_table(findings()))
    for cell in ("Over 3 sets", "2.20 ± 0.50", "+10.00 ± 24.84", "0.0200 ± 0.0248"):
        assert cell in text


def test_a_summary_is_as_described(tmp_path: Path) -> None:
    about = {"model": "m", "corpus": "c", "samples": 4, "seed": 1, "seeds": 3, "revision": "r"}
    write_summary(tmp_path / "summary.json", about, findings())
    assert_described("blocks", tmp_path / "summary.json")
