"""Beluga's guidelines: what is compared, and one small measurement for real."""

from __future__ import annotations

import json
import os
from itertools import groupby
from pathlib import Path

import pytest

from experiments.guidelines.__main__ import main
from experiments.guidelines.cases import SEGMENT_BYTES, cases


def test_each_guideline_has_something_to_compare_and_fits_the_segment() -> None:
    groups = {name: list(found) for name, found in groupby(cases(8), lambda case: case.guideline)}
    assert set(groups) == {
        "batch size", "request size", "block size", "interleaving", "one hot page", "engines",
    }  # fmt: skip
    for found in groups.values():
        assert len(found) > 1
        assert len(set(found)) == len(found)
        for case in found:
            assert SEGMENT_BYTES % case.request_bytes == 0
            assert case.request_bytes % case.page_bytes == 0
            assert 1 <= case.nodes <= 8


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_the_network_is_what_limits_many_readers(tmp_path: Path) -> None:
    few = ["--nodes", "3", "--seconds", "0.6", "--runs", "1", "--link-mbit", "8"]
    assert main([*few, "--results", str(tmp_path)]) == 0
    assert "One hot page" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "log.jsonl").exists()
    found = json.loads((tmp_path / "summary.json").read_text())["cases"]
    rates = {(case["guideline"], case["label"]): case["runs"][0]["mbyte_s"] for case in found}
    assert all(rate > 0 for rate in rates.values())
    assert rates["interleaving", "2 homes"] > 1.2 * rates["interleaving", "1 home"]
    assert max(rates.values()) < 3 * 1.0  # three links of 1 MB/s
