"""LMCache's own tester of remote connectors, with the pool behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lmcache", reason="make test-engines")

from tests.engines.live.conftest import Home

ROOT = Path(__file__).resolve().parents[3]
KEYS = 5
PLUGIN = "remote_storage_plugin.weir"


def run(folder: Path, pool: object, program: str, **extra: object) -> str:
    """A program in a process of its own, whose configuration LMCache reads once."""
    config = {
        "remote_url": "plugin://weir",
        "remote_storage_plugins": ["weir"],
        "remote_serde": "naive",
        "local_cpu": True,
        "max_local_cpu_size": 0.2,
        "extra_config": {
            f"{PLUGIN}.module_path": "engines.lmcache.remote",
            f"{PLUGIN}.class_name": "WeirRemoteConnector",
            f"{PLUGIN}.pool": pool,
            **extra,
        },
    }
    path = folder / "lmcache.yaml"
    path.write_text(json.dumps(config))  # YAML, too
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "LMCACHE_CONFIG_FILE": str(path),
            "LMCACHE_TRACK_USAGE": "false",
            "HOME": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


TESTER = f"""
import asyncio
from lmcache.v1.check import check_mode_test_remote as tester
asyncio.run(tester.run_test_mode("a/model", num_keys={KEYS}, obj_size=4096))
"""


@pytest.mark.parametrize("describes", [True, False])
def test_lmcaches_tester_finds_every_chunk_right(
    pool_settings: dict[str, object], home: Home, tmp_path: Path, describes: bool
) -> None:
    said = run(tmp_path, pool_settings, TESTER, save_chunk_meta=describes)
    assert said.count(f"{KEYS}/{KEYS} passed (100.0%)") == 4, said
    assert "Test Failed" not in said
    assert len(home.store.places()) == KEYS


def test_wrong_settings_are_said(tmp_path: Path) -> None:
    said = run(tmp_path, {"adress": "10.0.0.1"}, TESTER)
    assert "no pool setting 'adress' exists" in said
    said = run(tmp_path, None, TESTER)
    assert f"extra_config needs '{PLUGIN}.pool'" in said
