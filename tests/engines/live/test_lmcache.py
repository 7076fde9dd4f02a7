"""LMCache's own testers of L2 adapters, with the pool behind them."""

from __future__ import annotations

import asyncio
import json
import select
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

pytest.importorskip("lmcache", reason="make test-engines")

import torch
from lmcache.v1.check import check_mode_test_l2_adapter as tester
from lmcache.v1.distributed.api import MemoryLayoutDesc, ObjectKey
from lmcache.v1.distributed.internal_api import L2StoreResult
from lmcache.v1.distributed.l2_adapters.base import L2AdapterInterface
from lmcache.v1.memory_management import MemoryObj, TensorMemoryObj

from engines.lmcache import l2_adapter, model_names
from engines.lmcache.l2_adapter import WeirL2Adapter
from hostlib.protocol.errors import ConfigError
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


def store(adapter: WeirL2Adapter, keys: list[ObjectKey], values: int = 512) -> L2StoreResult:
    """LMCache's result of one store of objects of so many numbers."""
    objects = [tester._create_memory_obj(torch.empty(values), 3.0, values) for _ in keys]
    task = adapter.submit_store_task(keys, objects)
    done: dict[int, L2StoreResult] = {}
    while task not in done:  # the event says so of earlier tasks, too
        wait_for(adapter.get_store_event_fd())
        done |= adapter.pop_completed_store_tasks()
    return done[task]


def test_a_chunk_of_lmcaches_default_size_is_stored_and_loaded(pool_settings: dict[str, object]) -> None:
    """256 tokens of Llama-3.1-8B: 512 bytes more than the longest block."""
    values = 32 * 2 * 8 * 128 * 256 // 2
    adapter = WeirL2Adapter(pool_settings)
    try:
        key = tester._create_object_key("a/model", "key")
        assert store(adapter, [key], values).bytes_transferred() == 33_554_432
        room = tester._create_memory_obj(torch.empty(values), 0.0, values)
        task = adapter.submit_load_task([key], [room])
        while (bitmap := adapter.query_load_result(task)) is None:
            wait_for(adapter.get_load_event_fd())
        assert bitmap.test(0)
        assert bytes(memoryview(room.byte_array)[-8:]) == torch.full((2,), 3.0).numpy().tobytes()
    finally:
        adapter.close()


def found(adapter: WeirL2Adapter, keys: list[ObjectKey]) -> list[bool]:
    task = adapter.submit_lookup_and_lock_task(keys, {})
    while (bitmap := adapter.query_lookup_and_lock_result(task)) is None:
        wait_for(adapter.get_lookup_and_lock_event_fd())
    return [bitmap.test(at) for at in range(len(keys))]


def typed(values: int, dtype: torch.dtype) -> MemoryObj:
    """An object of numbers of a type, in LMCache's memory."""
    made = tester._create_memory_obj(torch.empty(values), 3.0, values)
    described = replace(made.metadata, dtype=dtype, phy_size=dtype.itemsize * values)
    return TensorMemoryObj(torch.full((values,), 3.0, dtype=dtype), described, None)


def test_numbers_of_another_type_are_another_object(pool_settings: dict[str, object]) -> None:
    """LMCache names chunks in bfloat16 and in float16 alike, and they are of one size."""
    key = tester._create_object_key("a/model", "key")
    half, brain = torch.float16, torch.bfloat16
    adapter = WeirL2Adapter(pool_settings)
    try:
        task = adapter.submit_store_task([key], [typed(512, brain)])
        wait_for(adapter.get_store_event_fd())
        assert adapter.pop_completed_store_tasks()[task].is_successful()
        task = adapter.submit_lookup_and_lock_task([key], {0: MemoryLayoutDesc([], [])})  # it says nothing
        while (bitmap := adapter.query_lookup_and_lock_result(task)) is None:
            wait_for(adapter.get_lookup_and_lock_event_fd())
        assert bitmap.test(0)
        shape = torch.Size([512])
        for dtype, is_found in ((brain, True), (half, False)):
            task = adapter.submit_lookup_and_lock_task([key], {0: MemoryLayoutDesc([shape], [dtype])})
            while (bitmap := adapter.query_lookup_and_lock_result(task)) is None:
                wait_for(adapter.get_lookup_and_lock_event_fd())
            assert bitmap.test(0) is is_found
            task = adapter.submit_load_task([key], [typed(512, dtype)])
            while (bitmap := adapter.query_load_result(task)) is None:
                wait_for(adapter.get_load_event_fd())
            assert bitmap.test(0) is is_found
    finally:
        adapter.close()


def split(layers: int, width: int) -> MemoryObj:
    """One rank's part of a chunk of four tokens, in LMCache's memory."""
    numbers, shape = 2 * layers * 4 * width, torch.Size([2, layers, 4, width])
    made = tester._create_memory_obj(torch.empty(numbers), 3.0, numbers)
    described = replace(made.metadata, dtype=torch.float32, shape=shape, phy_size=4 * numbers)
    return TensorMemoryObj(torch.full((numbers,), 3.0), described, None)


def test_a_model_that_is_split_by_heads_and_one_split_by_layers_share_nothing(
    pool_settings: dict[str, object],
) -> None:
    """LMCache names both halves by the number of ranks and the rank, and they are of one size."""
    ranks = [ObjectKey.ComputeKVRank(2, 0, 2, 0) for _ in ("two tensor-parallel ranks", "two stages")]
    by_heads, by_layers = (ObjectKey(b"hash", "a/model", rank) for rank in ranks)
    assert by_heads == by_layers
    adapter = WeirL2Adapter(pool_settings)
    try:
        task = adapter.submit_store_task([by_heads], [split(layers=4, width=8)])
        wait_for(adapter.get_store_event_fd())
        assert adapter.pop_completed_store_tasks()[task].is_successful()
        for layers, width, is_found in ((4, 8, True), (2, 16, False)):
            shape = torch.Size([2, layers, 4, width])
            announced = {0: MemoryLayoutDesc([shape], [torch.float32])}
            task = adapter.submit_lookup_and_lock_task([by_layers], announced)
            while (bitmap := adapter.query_lookup_and_lock_result(task)) is None:
                wait_for(adapter.get_lookup_and_lock_event_fd())
            assert bitmap.test(0) is is_found
            task = adapter.submit_load_task([by_layers], [split(layers, width)])
            while (bitmap := adapter.query_load_result(task)) is None:
                wait_for(adapter.get_load_event_fd())
            assert bitmap.test(0) is is_found
    finally:
        adapter.close()


@dataclass(frozen=True)
class LaterKey(ObjectKey):  # type: ignore[misc] # lmcache is not in the project's environment
    """A name as a later LMCache may have it."""

    adapter: str = ""


def test_whatever_lmcache_names_a_chunk_by_is_part_of_its_name(pool_settings: dict[str, object]) -> None:
    adapter = WeirL2Adapter(pool_settings)
    try:
        one, other = (LaterKey(b"hash", "a/model", 0, adapter=name) for name in ("sql", "chat"))
        assert store(adapter, [one]).is_successful()
        assert found(adapter, [one, other]) == [True, False]
    finally:
        adapter.close()


def is_stored_and_loaded(settings: dict[str, object], content: MemoryObj) -> tuple[bool, bool, bool]:
    """Whether another server found an object before, whether it is stored now, and found then."""
    key, adapter = tester._create_object_key("a/model", "key"), WeirL2Adapter(settings)
    try:
        before = found(adapter, [key])[0]
        task = adapter.submit_store_task([key], [content])
        wait_for(adapter.get_store_event_fd())
        stored = adapter.pop_completed_store_tasks()[task].is_successful()
        task = adapter.submit_load_task([key], [content])
        while (bitmap := adapter.query_load_result(task)) is None:
            wait_for(adapter.get_load_event_fd())
        assert bitmap.test(0) == stored
        return before, stored, found(adapter, [key])[0]
    finally:
        adapter.close()


def test_plain_bytes_are_kept_where_the_user_says_what_they_are(
    pool_settings: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    """KV in any 8-bit format, and chunks serialized in any way, are torch.uint8 for LMCache."""
    content = typed(512, torch.uint8)
    assert is_stored_and_loaded(pool_settings, content) == (False, False, False)
    assert is_stored_and_loaded(pool_settings, content) == (False, False, False)
    assert sum("chunks are plain bytes" in record.message for record in caplog.records) == 2  # once each
    for name in ("fp8_e4m3", "fp8_e5m2"):
        assert is_stored_and_loaded({**pool_settings, "byte_format": name}, content) == (False, True, True)
        assert is_stored_and_loaded({**pool_settings, "byte_format": name}, content) == (True, True, True)
    with pytest.raises(ConfigError, match="byte_format is a word"):
        WeirL2Adapter({**pool_settings, "byte_format": 8})


def test_what_another_process_stored_can_be_deleted(pool_settings: dict[str, object], home: Home) -> None:
    key = tester._create_object_key("a/model", "key")
    for is_new in (True, False):
        adapter = WeirL2Adapter(pool_settings)
        try:
            if is_new:
                store(adapter, [key])
                assert len(home.store.places()) == 1
            else:
                adapter.delete([key])
                assert not home.store.places()
        finally:
            adapter.close()


def test_an_object_counts_once_however_often_it_is_stored(pool_settings: dict[str, object]) -> None:
    adapter = WeirL2Adapter(pool_settings)
    try:
        key = tester._create_object_key("a/model", "key")
        assert [store(adapter, [key]).bytes_transferred() for _ in range(4)] == [2048, 0, 0, 0]
        usage = adapter.get_usage()
        assert usage.total_bytes_used == 2048
        assert dict(usage.bytes_by_cache_salt) == {key.cache_salt: 2048}
        assert usage.usage_fraction == -1.0
    finally:
        adapter.close()


def test_what_lmcache_deletes_is_gone_and_counts_no_more(
    pool_settings: dict[str, object], home: Home
) -> None:
    values = 512
    adapter = WeirL2Adapter(pool_settings)
    try:
        keys = [tester._create_object_key("a/model", name) for name in ("deleted", "kept")]
        assert store(adapter, keys, values).is_successful()
        adapter.delete(keys[:1])
        assert found(adapter, keys) == [False, True]
        assert adapter.get_usage().total_bytes_used == 4 * values
        adapter.delete(keys[:1])
        adapter.delete(keys[1:])
        assert adapter.get_usage().total_bytes_used == 0
        assert not home.store.places()
        assert store(adapter, keys, values).bytes_transferred() == 2 * 4 * values
        assert found(adapter, keys) == [True, True]
    finally:
        adapter.close()


def test_what_cannot_be_deleted_counts_on(pool_settings: dict[str, object], home: Home) -> None:
    adapter = WeirL2Adapter(pool_settings)
    try:
        key = tester._create_object_key("a/model", "key")
        store(adapter, [key])
        home.silence()
        adapter.delete([key])
        assert adapter.get_usage().total_bytes_used == 2048
    finally:
        adapter.close()


def test_a_store_ends_while_lmcache_still_keeps_its_objects(
    pool_settings: dict[str, object], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock on them expires; other chunks may lie there then."""
    monkeypatch.setattr(l2_adapter, "STORE_S", 0.1)
    adapter = WeirL2Adapter(pool_settings)  # whose transfers may take a minute
    try:
        home.silence()
        began_s = time.monotonic()
        assert not store(adapter, [tester._create_object_key("a/model", "key")]).is_successful()
        assert time.monotonic() - began_s < 20
    finally:
        adapter.close()


def test_beyond_its_capacity_nothing_new_is_stored(pool_settings: dict[str, object]) -> None:
    adapter = WeirL2Adapter({**pool_settings, "max_capacity_gb": 3 * 2048 / (1 << 30)})
    try:
        keys = [tester._create_object_key("a/model", str(name)) for name in range(5)]
        assert store(adapter, keys).bytes_transferred() == 3 * 2048
        assert found(adapter, keys) == [True, True, True, False, False]
        assert adapter.get_usage().usage_fraction == 1.0
        assert adapter.supports_global_eviction
        adapter.delete(keys[:1])
        assert store(adapter, keys[3:]).bytes_transferred() == 2048
    finally:
        adapter.close()


@pytest.mark.parametrize("capacity", [-1, "much", True])
def test_a_capacity_that_cannot_be_is_refused(pool_settings: dict[str, object], capacity: object) -> None:
    with pytest.raises(ConfigError, match="max_capacity_gb is a number of GiB"):
        WeirL2Adapter({**pool_settings, "max_capacity_gb": capacity})


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Folders of models by name; the files are older than the server, as it is told."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = {}
    for name, content in (("one", b"1"), ("other", b"2")):
        folder = tmp_path / name / "chat"
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(content)
        found[name] = str(folder)
    time.sleep(0.05)  # the clock of file systems ticks every few milliseconds
    started_s = time.time()
    monkeypatch.setattr(model_names, "process_start_s", lambda: started_s)
    monkeypatch.setattr(model_names, "CHECK_S", 0.0)
    return found


def key_of(folder: str, adapter: WeirL2Adapter) -> ObjectKey:
    adapter._names.wait(folder, 60)
    return tester._create_object_key(folder, "key")


def test_chunks_are_those_of_the_weights_in_the_models_folder(
    pool_settings: dict[str, object], folders: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a release takes the place of another at one path, with a server started for each."""
    adapter = WeirL2Adapter(pool_settings)
    try:
        assert store(adapter, [key_of(folders["one"], adapter)]).is_successful()
    finally:
        adapter.close()
    adapter = WeirL2Adapter(pool_settings)
    try:
        assert found(adapter, [key_of(folders["one"], adapter)]) == [True]
    finally:
        adapter.close()
    one, other = Path(folders["one"]), Path(folders["other"])
    one.rename(one.with_name("former"))
    other.rename(one)
    adapter = WeirL2Adapter(pool_settings)
    try:
        monkeypatch.setattr(model_names, "process_start_s", time.time)  # the next server's
        assert found(adapter, [key_of(folders["one"], adapter)]) == [False]
    finally:
        adapter.close()


def test_a_relative_path_means_another_folder_to_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"1")
    monkeypatch.chdir(tmp_path)
    names = model_names.ModelNames()
    assert names.of("model") is None
    assert "it is a relative path" in caplog.text


def test_a_model_whose_files_change_is_not_kept_or_found_any_more(
    pool_settings: dict[str, object], folders: dict[str, str]
) -> None:
    adapter = WeirL2Adapter(pool_settings)
    try:
        key, unknown = key_of(folders["one"], adapter), tester._create_object_key("a/model", "key")
        assert store(adapter, [key, unknown]).is_successful()
        assert found(adapter, [key, unknown]) == [True, True]
        Path(folders["one"], "model.safetensors").write_bytes(b"3")
        assert found(adapter, [key, unknown]) == [False, True]
        assert not store(adapter, [key, unknown]).is_successful()
    finally:
        adapter.close()


def test_an_adapter_that_is_closed_while_it_deletes_ends_no_thread_of_lmcaches(
    pool_settings: dict[str, object], home: Home
) -> None:
    """LMCache's thread that evicts would end with the error, and nothing would be evicted any more."""
    adapter = WeirL2Adapter({**pool_settings, "silence_s": 30.0})
    key = tester._create_object_key("a/model", "key")
    assert store(adapter, [key]).is_successful()
    home.silence()
    with ThreadPoolExecutor(1) as evicting:
        deleted = evicting.submit(adapter.delete, [key])
        time.sleep(0.5)
        adapter.close()
        deleted.result(60)
