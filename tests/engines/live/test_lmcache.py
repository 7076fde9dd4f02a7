"""LMCache's own testers of L2 adapters, with the pool behind them."""

from __future__ import annotations

import asyncio
import json
import select

import pytest

pytest.importorskip("lmcache", reason="make test-engines")

import torch
from lmcache.v1.check import check_mode_test_l2_adapter as tester
from lmcache.v1.distributed.l2_adapters.base import L2AdapterInterface

from engines.lmcache.l2_adapter import WeirL2Adapter
from tests.engines.live.conftest import Home

KEYS = 5


def adapter_json(settings: dict[str, object]) -> str:
    return json.dumps(
        {
            "type": "plugin",
            "module_path": "engines.lmcache.l2_adapter",
            "class_name": "WeirL2Adapter",
            "adapter_params": settings,
        }
    )


def test_lmcaches_tester_finds_every_object_right(
    pool_settings: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    run = tester.run_test_mode("a/model", l2_adapter=[adapter_json(pool_settings)], num_keys=KEYS)
    asyncio.run(run)
    said = capsys.readouterr().out
    assert "=== Testing L2 adapter #0 (WeirL2Adapter) ===" in said
    assert f"Validation: {KEYS}/{KEYS} correctly absent" in said
    assert "Batch store OK" in said
    assert f"Validation: {KEYS}/{KEYS} found" in said
    assert f"Validation (loaded): {KEYS}/{KEYS}" in said
    assert f"Validation (content): {KEYS}/{KEYS}" in said
    assert "FAIL" not in said
    assert "Test Failed" not in said


def wait_for(fd: int) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    assert poll.poll(60_000)


def test_the_event_descriptors_are_three(pool_settings: dict[str, object]) -> None:
    adapter: L2AdapterInterface = WeirL2Adapter(pool_settings)
    try:
        fds = (
            adapter.get_store_event_fd(),
            adapter.get_lookup_and_lock_event_fd(),
            adapter.get_load_event_fd(),
        )
        assert len(set(fds)) == 3
    finally:
        adapter.close()


def test_ranks_and_salts_are_kept_apart_and_a_silent_pool_is_a_miss(
    pool_settings: dict[str, object], home: Home
) -> None:
    adapter = WeirL2Adapter({**pool_settings, "lookup_timeout_s": 2.0})
    try:
        (key,) = [tester._create_object_key("a/model", "key")]
        content = torch.arange(512, dtype=torch.float32)
        stored = tester._create_memory_obj(torch.empty(512), 3.0, 512)
        task = adapter.submit_store_task([key], [stored])
        wait_for(adapter.get_store_event_fd())
        assert adapter.pop_completed_store_tasks()[task].bytes_transferred() == content.numel() * 4
        others = [type(key)(key.chunk_hash, key.model_name, 1), type(key)(key.chunk_hash, "other", 0)]
        others.append(type(key)(key.chunk_hash, key.model_name, 0, cache_salt="user"))
        task = adapter.submit_lookup_and_lock_task([key, *others], {})
        wait_for(adapter.get_lookup_and_lock_event_fd())
        found = adapter.query_lookup_and_lock_result(task)
        assert found is not None
        assert [found.test(index) for index in range(4)] == [True, False, False, False]
        assert adapter.query_lookup_and_lock_result(task) is None  # a result is given once

        home.silence()
        task = adapter.submit_lookup_and_lock_task([key], {})
        while (found := adapter.query_lookup_and_lock_result(task)) is None:
            wait_for(adapter.get_lookup_and_lock_event_fd())
        assert found.popcount() == 0
        assert not adapter.report_status()["is_healthy"]
    finally:
        adapter.close()
