from __future__ import annotations

import json

import pytest

from hostlib.tools import bench


@pytest.mark.parametrize("more", [[], ["--receive-one-by-one", "--send-one-by-one"], ["--put"]])
def test_the_benchmark_measures_both_ends(capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    assert bench.main(["--blocks", "64", "--chain", "8", *more]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["fragments"] == 64 * 32
    assert result["client_us_per_fragment"] > 0
    assert result["storage_us_per_fragment"] > 0
    assert result["block_ms"]["p50"] > 0
