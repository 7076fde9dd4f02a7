"""Beluga's guidelines: what is compared, and one small measurement for real."""

from __future__ import annotations

import json
import os
from itertools import groupby
from pathlib import Path

import pytest

from experiments.guidelines.__main__ import main
from experiments.guidelines.cases import PUBLISHED, SEGMENT_BYTES, cases
from experiments.guidelines.result import Measured, compare
from tests.experiments.summaries import assert_described


@pytest.mark.parametrize("nodes", [2, 3, 4, 8])
def test_each_guideline_has_something_to_compare_and_fits_segment_and_network(nodes: int) -> None:
    groups = {name: list(found) for name, found in groupby(cases(nodes), lambda case: case.guideline)}
    assert set(groups) == {
        "batch size", "request size", "block size", "interleaving", "one hot page", "engines",
    }  # fmt: skip
    for found in groups.values():
        assert len(found) > 1
        assert len(set(found)) == len(found)
        for case in found:
            assert SEGMENT_BYTES % case.request_bytes == 0
            assert case.request_bytes % case.page_bytes == 0
            assert 1 <= case.nodes <= nodes
            assert case.in_flight * case.request_bytes <= SEGMENT_BYTES
            assert case.nodes == 1 or case.links_full


def test_each_guideline_is_compared_with_what_was_published_of_it() -> None:
    found = {case: [Measured(10.0, 1.0, 0)] * 2 for case in cases(8)}
    same = {one.published.guideline: one for one in compare(found)}
    assert set(same) == {published.guideline for published in PUBLISHED} == {case.guideline for case in found}
    assert {one.direction for one in same.values()} == {"not clear"}

    (hot,) = [case for case in found if case.label == "one page, pooled"]
    found[hot] = [Measured(20.0, 1.0, 0)] * 2
    (two,) = [case for case in found if case.label == "2 homes"]
    found[two] = [Measured(5.0, 1.0, 0)] * 2
    changed = {one.published.guideline: one for one in compare(found)}
    assert (changed["one hot page"].direction, changed["one hot page"].of_published) == ("the same", 1.0)
    assert changed["interleaving"].direction == "the other"
    assert changed["interleaving"].of_published == pytest.approx(0.5 / 1.33)


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_the_network_is_what_limits_many_readers(tmp_path: Path) -> None:
    few = ["--nodes", "3", "--seconds", "0.6", "--runs", "1", "--link-mbit", "8"]
    assert main([*few, "--results", str(tmp_path)]) == 0
    assert "One hot page" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "log.jsonl").exists()
    assert_described("guidelines", tmp_path / "summary.json")
    found = json.loads((tmp_path / "summary.json").read_text())["cases"]
    rates = {(case["guideline"], case["label"]): case["runs"][0]["mbyte_s"] for case in found}
    assert all(rate > 0 for rate in rates.values())
    assert rates["interleaving", "2 homes"] > 1.2 * rates["interleaving", "1 home"]
    full = [case["runs"][0]["mbyte_s"] for case in found if case["links_full"]]
    assert max(full) < 3 * 1.0  # three links of 1 MB/s
