"""weir-kv-conformance with vLLM itself: Weir's connector passes, and one that lies is caught."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make test-engines")

from engines.conformance.__main__ import main


def outcomes(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main([*arguments, "--results", str(folder / "results"), "--folder", str(folder / "work")])
    measured = json.loads((folder / "results" / "measured.json").read_text())
    (cases,) = (said["cases"] for said in measured["connectors"].values())
    return code, cases


@pytest.mark.timeout(900)
def test_weirs_connector_shares_and_isolates(tmp_path: Path) -> None:
    code, cases = outcomes(tmp_path, "--connector", "weir", "--case", "same-configuration,cache-salt,races")
    assert code == 0
    assert {name: case["result"] for name, case in cases.items()} == {
        "same-configuration": "passed",
        "cache-salt": "passed",
        "races": "passed",
    }
    assert cases["same-configuration"]["measured"]["hit_tokens"] >= 512


@pytest.mark.timeout(900)
def test_a_connector_that_lies_is_caught(tmp_path: Path) -> None:
    """It leaves cache_salt out of its names, and damages what it loads."""
    config = {
        "kv_connector": "LyingConnector",
        "kv_connector_module_path": "tests.engines.live.lying_connector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"shared_storage_path": "{folder}"},
    }
    code, cases = outcomes(
        tmp_path, "--connector-config", json.dumps(config), "--case", "same-configuration,cache-salt"
    )
    assert code == 1
    assert "differ from recomputing" in cases["same-configuration"]["message"]
    assert "tokens found under 'another tenant'" in cases["cache-salt"]["message"]
