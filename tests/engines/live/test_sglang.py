"""SGLang's interface of storage backends, as shipped in its wheel: made by its own factory."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("tests.engines.live.without_triton", reason="make test-engines")
pytest.importorskip("sglang", reason="make test-engines")

import torch
from sglang.srt.mem_cache.hicache_storage import HiCacheStorage, HiCacheStorageConfig
from sglang.srt.mem_cache.storage.backend_factory import StorageBackendFactory

from hostlib.errors import ConfigError
from tests.engines.live.conftest import Home

PAGE = (2, 4, 16, 8)


def config(pool: object, **more: object) -> HiCacheStorageConfig:
    extra = {
        "backend_name": "weir",
        "module_path": "engines.sglang.hicache",
        "class_name": "WeirHiCache",
        "pool": pool,
    }
    settings = {
        "tp_rank": 0, "tp_size": 1, "pp_rank": 0, "pp_size": 1, "attn_cp_rank": 0, "attn_cp_size": 1,
        "is_mla_model": False, "enable_storage_metrics": False, "is_page_first_layout": False,
        "model_name": "a/model",
    }  # fmt: skip
    return HiCacheStorageConfig(**{**settings, **more}, extra_config=extra)


def backend(pool: object, **more: object) -> HiCacheStorage:
    return StorageBackendFactory.create_backend("dynamic", config(pool, **more), None)


def test_pages_go_in_and_come_out(pool_settings: dict[str, object], home: Home) -> None:
    storage = backend({**pool_settings, "lookup_timeout_s": 2.0, "silence_s": 0.5})
    try:
        keys = [f"{number:064x}" for number in range(5)]
        pages = [torch.randn(PAGE) for _ in keys]
        assert storage.batch_exists(keys) == 0
        assert storage.batch_set(keys[:3], pages[:3])
        assert storage.set(keys[4], pages[4])
        assert storage.batch_exists(keys) == 3  # from the first on
        assert [storage.exists(key) for key in keys] == [True, True, True, False, True]
        targets = [torch.zeros(PAGE) for _ in keys]
        got = storage.batch_get(keys, targets)
        assert [one is not None for one in got] == [True, True, True, False, True]
        assert all(torch.equal(one, page) for one, page in zip(got, pages, strict=True) if one is not None)
        across = torch.zeros(PAGE[::-1]).permute(3, 2, 1, 0)
        assert not across.is_contiguous()
        assert torch.equal(storage.get(keys[0], across), pages[0])
        assert torch.equal(across, pages[0])

        home.silence()
        assert storage.batch_exists(keys) == 0
        assert storage.get(keys[0], torch.zeros(PAGE)) is None
        assert not storage.set("new", pages[0])
    finally:
        storage.close()


def test_shards_and_models_are_kept_apart(pool_settings: dict[str, object]) -> None:
    storage = backend(pool_settings)
    try:
        differences = (
            {"tp_size": 2},
            {"tp_size": 2, "tp_rank": 1},
            {"model_name": "b"},
            {"is_mla_model": True},
        )
        others = [config(pool_settings, **more) for more in differences]
        replicas = [config(pool_settings, is_mla_model=True, tp_size=2, tp_rank=rank) for rank in (0, 1)]
        shard = sys.modules["engines.sglang.hicache"]._shard
        shards = {shard(one) for one in (config(pool_settings), *others)}
        assert len(shards) == 5
        assert shard(replicas[0]) == shard(replicas[1])
    finally:
        storage.close()


def test_settings_that_can_not_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="needs an object 'pool'"):
        backend(None)
