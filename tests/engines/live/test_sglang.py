"""SGLang's interface of storage backends, as shipped in its wheel: made by its own factory."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("tests.engines.live.without_triton", reason="make test-engines")
pytest.importorskip("sglang", reason="make test-engines")

import torch
from sglang.srt.mem_cache import hicache_storage
from sglang.srt.mem_cache.hicache_storage import HiCacheStorage, HiCacheStorageConfig, PoolName
from sglang.srt.mem_cache.storage.backend_factory import StorageBackendFactory

from hostlib.protocol.errors import ConfigError, KeySpaceError
from tests.engines.live.conftest import Home

PAGE = (2, 4, 16, 8)


def config(pool: object, more_extra: dict[str, object] | None = None, **more: object) -> HiCacheStorageConfig:
    extra = {
        "backend_name": "weir",
        "module_path": "engines.sglang.hicache",
        "class_name": "WeirHiCache",
        "pool": pool,
        **(more_extra or {}),
    }
    settings = {
        "tp_rank": 0, "tp_size": 1, "pp_rank": 0, "pp_size": 1, "attn_cp_rank": 0, "attn_cp_size": 1,
        "is_mla_model": False, "enable_storage_metrics": False, "is_page_first_layout": False,
        "model_name": "a/model",
    }  # fmt: skip
    return HiCacheStorageConfig(**{**settings, **more}, extra_config=extra)


def backend(pool: object, more_extra: dict[str, object] | None = None, **more: object) -> HiCacheStorage:
    return StorageBackendFactory.create_backend("dynamic", config(pool, more_extra, **more), None)


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


def test_pages_that_hold_no_numbers_are_not_stored(pool_settings: dict[str, object]) -> None:
    storage = backend(pool_settings)
    try:
        keys, pages = [f"{number:064x}" for number in range(3)], [torch.randn(PAGE) for _ in range(3)]
        pages[1].view(-1)[7] = float("nan")
        assert not storage.batch_set(keys, pages)
        assert not storage.set(keys[1], pages[1])
        assert [storage.exists(key) for key in keys] == [True, False, True]
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
    with pytest.raises(ConfigError, match="no interface_v1"):
        backend({}, {"interface_v1": 1})


LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_head")


class HostPool:
    """What SGLang's pools of host memory say of themselves; importing those needs a GPU's packages."""

    def __init__(self, **changes: object) -> None:
        said = {
            "layout": "layer_first",
            "dtype": torch.float32,
            "page_size": 16,
            "layer_num": 4,
            "head_num": 4,
        }
        for name, value in {**said, "head_dim": 32, "size_per_token": 4096, **changes}.items():
            setattr(self, name, value)

    def get_dummy_flat_data_page(self) -> torch.Tensor:
        """Room for one page, as SGLang makes it before it asks a backend for the page."""
        return torch.zeros(PAGE).flatten()


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The options of SGLang's server in this process; a test changes them."""
    from engines.sglang import names

    given: dict[str, object] = {}
    for name, content in (("one", b"1"), ("same", b"1"), ("other", b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(content)
    given |= {
        "model_path": str(tmp_path / "one"),
        "load_format": "auto",
        "port": 30000,
        "context_length": 4096,
        "hicache_storage_backend": "dynamic",
    }
    monkeypatch.setattr(names, "_options", lambda: given)
    monkeypatch.setattr(names, "process_start_s", time.time)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    time.sleep(0.05)  # the clock of file systems ticks every few milliseconds
    return given


def name(**changes: object) -> str:
    from engines.sglang.names import begin_naming

    return begin_naming(HostPool(**changes)).result(60)


def test_pages_of_another_order_have_another_name(options: dict[str, object]) -> None:
    """SGLang tells a backend of these four only whether it is page_first."""
    assert len({name(layout=layout) for layout in LAYOUTS}) == 4
    assert name() == name()
    for changes in ({"dtype": torch.bfloat16}, {"page_size": 32}, {"head_num": 2}, {"layer_num": 2}):
        assert name(**changes) != name()


def test_a_backend_that_a_running_server_gets_shares_with_nobody(options: dict[str, object]) -> None:
    """Nobody noticed whether its weights changed before. SGLang writes down the backend when it is there."""
    from engines.sglang.names import begin_naming

    options["hicache_storage_backend"] = None
    naming = begin_naming(HostPool())
    options["hicache_storage_backend"] = "dynamic"
    with pytest.raises(KeySpaceError, match="may have changed before"):
        naming.result(60)


def test_servers_share_by_the_content_of_their_models(options: dict[str, object], tmp_path: Path) -> None:
    right = name()
    options |= {"model_path": str(tmp_path / "same"), "port": 30001, "mem_fraction_static": 0.5}
    assert name() == right
    options["context_length"] = 8192
    assert name() != right
    options |= {"context_length": 4096, "model_path": str(tmp_path / "other")}
    assert name() != right


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"load_format": "dummy"}, "weights are random"),
        ({"enable_lora": True}, "names adapters otherwise"),
        ({"load_format": "remote_instance"}, "load_format remote_instance are not read"),
        ({"load_format": "presharded"}, "load_format presharded are not read"),
        (
            {"model_loader_extra_config": '{"qlora_adapter_name_or_path": "some/adapter"}'},
            "depends on what model_loader_extra_config names",
        ),
        ({"quantization_param_path": "/scales.json"}, "depends on what quantization_param_path says"),
        ({"custom_weight_loader": ["mine.load"]}, "depends on what custom_weight_loader says"),
        ({"forward_hooks": [{"name": "steer"}]}, "depends on what forward_hooks says"),
        ({"dllm_algorithm": "LowConfidence"}, "depends on what dllm_algorithm says"),
        ({"weight_cache_mode": "client"}, "come from another process"),
        ({"model_path": "nobody/has-this-model"}, "neither a folder nor"),
        ({"hook": object()}, "is a object, which has no name"),
        ({"scales_of_a_later_version": [__file__]}, "names .*test_sglang.py, whose content may change"),
    ],
)
def test_what_is_not_certain_has_no_name(
    options: dict[str, object], change: dict[str, object], why: str
) -> None:
    options |= change
    with pytest.raises(KeySpaceError, match=why):
        name()


def test_switches_in_the_environment_count(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They change the order of KV in memory, which layers are quantized, and how a model is computed."""
    right = name()
    for variable in (
        "SGLANG_AITER_KV_CACHE_LAYOUT", "SGLANG_FP8_IGNORED_LAYERS", "SGLANG_USE_HND_KVCACHE",
        "SGLANG_OF_A_LATER_VERSION", "USE_TRITON_W8A8_FP8_KERNEL", "NVIDIA_TF32_OVERRIDE", "SGLANG_PLUGINS",
    ):  # fmt: skip
        with monkeypatch.context() as changed:
            changed.setenv(variable, "1")
            assert name() != right
    for variable in ("SGLANG_RUN_ID", "SGLANG_LOG_MS", "SGLANG_PORT", "SGLANG_WARMUP_TIMEOUT"):
        monkeypatch.setenv(variable, "1")
    assert name() == right


def test_code_and_weights_that_the_environment_names_have_no_name(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as changed:
        changed.setenv("SGLANG_EXTERNAL_MODEL_PACKAGE", "models_of_mine")
        with pytest.raises(KeySpaceError, match="what SGLANG_EXTERNAL_MODEL_PACKAGE says"):
            name()
    monkeypatch.setenv("SGLANG_USE_MODELSCOPE", "1")
    assert name()
    options["model_path"] = "a/model"
    with pytest.raises(KeySpaceError, match="is not a folder: download it from ModelScope"):
        name()


def test_versions_of_kernels_count(options: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    from engines.sglang import names

    right = name()
    monkeypatch.setattr(names, "versions", lambda: {"sglang-kernel": "of tomorrow"})
    assert name() != right


def test_a_server_of_sources_that_may_change_has_no_name(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engines.sglang import names

    monkeypatch.setattr(names, "without_name", lambda *_: ["sglang 0.5 was installed from a folder"])
    with pytest.raises(KeySpaceError, match="installed from a folder"):
        name()


def test_what_a_program_puts_in_the_place_of_sglangs_functions_has_no_name(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hicache_storage, "count_pool_hits", lambda *_: 0)
    with pytest.raises(KeySpaceError, match="count_pool_hits is code of its own"):
        name()


def test_long_rope_has_no_name_as_it_depends_on_the_batch(options: dict[str, object], tmp_path: Path) -> None:
    configuration = tmp_path / "one" / "config.json"
    configuration.write_text(json.dumps({"rope_scaling": {"type": "linear"}}))
    time.sleep(0.05)
    assert name()
    configuration.write_text(json.dumps({"rope_scaling": {"type": "longrope"}}))
    with pytest.raises(KeySpaceError, match="depends on what else is in the batch"):
        name()
    configuration.write_text("{}")
    options["json_model_override_args"] = json.dumps(
        {"text_config": {"rope_scaling": {"rope_type": "dynamic"}}}
    )
    with pytest.raises(KeySpaceError, match="depends on what else is in the batch"):
        name()


@pytest.mark.parametrize(
    ("configuration", "change", "why"),
    [
        ({"vision_config": {}}, {}, "names of their own for images"),
        ({"model": {"audio_encoder": 1}}, {}, "names of their own for images"),
        ({"vision_config": {}}, {"enable_multimodal": False}, ""),
        ({"vision_config": {}}, {"language_model_only": True}, ""),
        ({"auto_map": {"AutoModel": "else/where--m.Own"}}, {"trust_remote_code": True}, "another place"),
        ({"auto_map": {"AutoModel": "m.Own"}}, {"trust_remote_code": True}, ""),
    ],
)
def test_a_model_whose_own_configuration_leaves_doubts_has_no_name(
    options: dict[str, object], tmp_path: Path, configuration: object, change: dict[str, object], why: str
) -> None:
    (tmp_path / "one" / "config.json").write_text(json.dumps(configuration))
    time.sleep(0.05)
    options |= change
    if why:
        with pytest.raises(KeySpaceError, match=why):
            name()
    else:
        assert name()


def test_the_configuration_of_mistrals_own_format_counts(options: dict[str, object], tmp_path: Path) -> None:
    """SGLang reads Mistral Large 3 from `params.json`, whether there is a `config.json` or not."""
    (tmp_path / "one" / "params.json").write_text(json.dumps({"dim": 64, "vision_encoder": {}}))
    for written in (False, True):
        if written:
            (tmp_path / "one" / "config.json").write_text("{}")
        time.sleep(0.05)
        with pytest.raises(KeySpaceError, match="names of their own for images"):
            name()


def test_a_model_with_more_than_the_kv_of_each_token_is_refused(pool_settings: dict[str, object]) -> None:
    storage = backend(pool_settings)
    try:
        pool = HostPool()
        storage.register_mem_pool_host(pool)
        storage.register_mem_host_pool_v2(pool, PoolName.KV)
        for other in (PoolName.MAMBA, PoolName.SWA, PoolName.DRAFT):
            with pytest.raises(ConfigError, match=f"keeps {other} beside the KV of each token"):
                storage.register_mem_host_pool_v2(HostPool(), other)
    finally:
        storage.close()


class WithoutPages(HostPool):
    """SGLang's pools of MXFP8, and of keys that are longer than values."""

    def get_dummy_flat_data_page(self) -> torch.Tensor:
        raise NotImplementedError("no flat pages")


class WithEmptyPages(HostPool):
    """SGLang's `LogicalHostPool`."""

    def get_dummy_flat_data_page(self) -> torch.Tensor:
        return torch.empty(0, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("kind", "reason"), [(WithoutPages, "no pages of such KV: no flat"), (WithEmptyPages, "empty pages")]
)
def test_memory_that_gives_no_pages_is_refused(
    pool_settings: dict[str, object], kind: type[HostPool], reason: str
) -> None:
    """SGLang would log an error for each page, and nothing would be stored."""
    storage = backend(pool_settings)
    try:
        with pytest.raises(ConfigError, match=reason):
            storage.register_mem_pool_host(kind())
    finally:
        storage.close()


@pytest.mark.parametrize("option", ["enable_return_routed_experts", "enable_return_indexer_topk"])
def test_what_sglang_notes_while_it_computes_is_not_had_for_loaded_tokens(
    pool_settings: dict[str, object], options: dict[str, object], option: str
) -> None:
    """SGLang would return what it noted of the token that had this place in its memory before."""
    options[option] = True
    storage = backend(pool_settings)
    try:
        with pytest.raises(ConfigError, match=f"use {option} without the pool"):
            storage.register_mem_pool_host(HostPool())
    finally:
        storage.close()


def test_a_decode_server_shares_nothing_and_does_not_offload(
    pool_settings: dict[str, object], options: dict[str, object]
) -> None:
    """Its prompts' KV comes from another server, and SGLang never looks for what it would offload."""
    options["disaggregation_mode"] = "decode"
    with pytest.raises(KeySpaceError, match="another server, whose weights are not known"):
        name()
    options["disaggregation_decode_enable_offload_kvcache"] = True
    storage = backend(pool_settings)
    try:
        with pytest.raises(ConfigError, match="leave disaggregation_decode_enable_offload_kvcache off"):
            storage.register_mem_pool_host(HostPool())
    finally:
        storage.close()


def test_sglangs_own_pools_say_that_they_give_no_pages() -> None:
    """As in its source, because importing them needs a GPU's packages."""
    folder = Path(hicache_storage.__file__).parent
    for name in ("pool_host/mha_mxfp8.py", "pool_host/mha.py"):
        text = (folder / name).read_text()
        body = text[text.rindex("def get_dummy_flat_data_page") :][:200]
        assert "raise self._" in body
        assert "NotImplementedError" in text


def test_a_server_finds_what_its_like_has_stored_and_nobody_else(
    options: dict[str, object], pool_settings: dict[str, object]
) -> None:
    page, key = torch.randn(PAGE), f"{1:064x}"

    def found(*, stores: bool = False, registers: bool = True, clears: bool = False, **pool: object) -> bool:
        storage = backend(pool_settings)
        try:
            if registers:
                storage.register_mem_pool_host(HostPool(**pool))
                storage._naming.exception(60)
            if clears:
                storage.clear()
            there: bool = storage.exists(key)
            assert (storage.get(key, torch.zeros(PAGE)) is not None) == there
            assert not stores or storage.set(key, page)
            return there
        finally:
            storage.close()

    assert not found(stores=True)
    assert found()
    for layout in LAYOUTS[1:]:
        assert not found(layout=layout)
    assert not found(registers=False, stores=True)
    assert not found(registers=False)
    assert not found(clears=True)


def test_what_sglang_chooses_itself_is_among_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """SGLang chooses its attention by the CPU, and writes it beside what the user said."""
    from sglang.srt import runtime_context

    from engines.sglang import names

    class Given:
        def __init__(self) -> None:
            self.model_path, self.attention_backend = "a/model", None

        def resolved_dict(self) -> dict[str, object]:
            return {"model_path": "a/model", "attention_backend": "torch_native"}

    monkeypatch.setattr(runtime_context, "get_server_args", Given)
    assert names._options() == {"model_path": "a/model", "attention_backend": "torch_native"}


def test_sglang_says_the_options_of_its_server_or_pages_have_no_name() -> None:
    from engines.sglang.names import begin_naming

    with pytest.raises(KeySpaceError, match="does not say"):
        begin_naming(HostPool()).result(60)


class ServerInPlace:
    """SGLang's classes that change weights and empty its cache, whose modules need a GPU's packages."""

    def update_weights_from_disk(self, path: str) -> str:
        return path

    def end_weight_update(self) -> None:
        """SGLang computes the last form of new weights."""

    def resume_memory_occupation(self, request: Any) -> None:
        """The memory that weights or KV had is back, with anything in it."""

    def reset(self) -> None:
        """SGLang's cache is empty."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ServerInPlace:
    from engines.sglang import weight_changes

    class Server(ServerInPlace):
        """A class of its own for each test, as its methods are wrapped."""

    monkeypatch.setattr(weight_changes, "_history", weight_changes._History())
    for module, name in {**weight_changes.UPDATERS, **weight_changes.CACHES}.items():
        in_place = ModuleType(module)
        setattr(in_place, name, Server)
        monkeypatch.setitem(sys.modules, module, in_place)
    return Server()


def attached(pool_settings: dict[str, object]) -> Any:
    """Return a backend whose pages have a name."""
    storage = backend(pool_settings)
    storage.register_mem_pool_host(HostPool())
    storage._naming.exception(60)
    return storage


@pytest.fixture
def storage(pool_settings: dict[str, object], server: Any, options: dict[str, object]) -> Iterator[Any]:
    """Return a backend of the server, attached."""
    it = attached(pool_settings)
    yield it
    it.close()


def test_a_server_whose_weights_change_leaves_the_pool_until_its_cache_is_flushed(
    storage: Any, server: Any
) -> None:
    """Clearing the storage is not enough: SGLang may still write pages there that are of former weights."""
    page, target = torch.randn(PAGE), torch.zeros(PAGE)
    assert storage.set("a", page)
    assert server.update_weights_from_disk("there") == "there"
    for clears in (False, True):
        if clears:
            storage.clear()
        assert not storage.exists("a")
        assert storage.get("a", target) is None
        assert not storage.set("b", page)
    server.reset()
    assert not storage.exists("a")
    assert not storage.exists("b")
    assert storage.set("b", page)
    assert storage.exists("b")
    server.end_weight_update()
    assert not storage.exists("b")


@pytest.mark.parametrize("flushes", [False, True])
def test_a_backend_that_takes_anothers_place_knows_that_weights_have_changed(
    pool_settings: dict[str, object], server: Any, options: dict[str, object], *, flushes: bool
) -> None:
    """An operator of SGLang may detach it and attach it again. The server's options still name it."""
    before = attached(pool_settings)
    assert before.set("a", torch.randn(PAGE))
    before.close()
    server.update_weights_from_disk("there")
    if flushes:
        server.reset()
    storage = attached(pool_settings)
    try:
        assert not storage.exists("a")
        assert storage.set("b", torch.randn(PAGE)) == flushes
        assert storage.exists("b") == flushes
    finally:
        storage.close()


def test_a_backend_of_a_server_that_had_none_waits_for_an_empty_cache(
    pool_settings: dict[str, object], server: Any, options: dict[str, object]
) -> None:
    """SGLang's cache may hold KV of weights that it had before."""
    options["hicache_storage_backend"] = None
    storage = backend(pool_settings)
    try:
        storage.register_mem_pool_host(HostPool())
        assert not storage.set("a", torch.randn(PAGE))
        server.reset()
        assert storage.set("a", torch.randn(PAGE))
    finally:
        storage.close()


@pytest.mark.parametrize(
    ("tags", "are_other"), [(None, True), ([], True), (["weights"], True), (["kv_cache"], False)]
)
def test_weights_whose_memory_was_given_back_are_others(
    storage: Any,
    server: Any,
    tags: list[str] | None,
    *,
    are_other: bool,
) -> None:
    assert storage.set("a", torch.randn(PAGE))
    server.resume_memory_occupation(SimpleNamespace(tags=tags))
    assert storage.exists("a") != are_other


def test_a_flush_leaves_what_the_same_weights_have_stored(storage: Any, server: Any) -> None:
    assert storage.set("a", torch.randn(PAGE))
    server.reset()
    assert storage.exists("a")


@pytest.mark.parametrize("flushes", [False, True])
def test_pages_that_are_on_their_way_while_weights_change_are_not_used(
    storage: Any,
    server: Any,
    monkeypatch: pytest.MonkeyPatch,
    flushes: bool,
) -> None:
    assert storage.set("a", torch.randn(PAGE))
    load = storage._pool.load

    def load_slowly(items: Any) -> list[bool]:
        server.update_weights_from_disk("there")
        if flushes:
            server.reset()
        arrived: list[bool] = load(items)
        return arrived

    monkeypatch.setattr(storage._pool, "load", load_slowly)
    assert storage.get("a", torch.zeros(PAGE)) is None


def test_a_server_whose_weights_change_unnoticed_shares_with_nobody(
    pool_settings: dict[str, object], options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engines.sglang import weight_changes

    monkeypatch.setitem(sys.modules, weight_changes.SERVER, ModuleType("scheduler"))
    for name in weight_changes.UPDATERS:
        monkeypatch.setitem(sys.modules, name, ModuleType("of another version"))
    names = []
    for _ in range(2):
        storage = backend(pool_settings)
        storage.register_mem_pool_host(HostPool())
        assert storage.set("a", torch.randn(PAGE))  # it finds its own
        names.append(storage._name)
        storage.close()
    assert names[0] != names[1]


def test_sglang_has_the_classes_that_change_weights() -> None:
    """Their modules need a GPU's packages to be imported: their source says what they are called."""
    from engines.sglang import weight_changes

    root = Path(sys.modules["sglang"].__path__[0]).parent
    watched = (
        (weight_changes.UPDATERS, weight_changes.METHODS),
        (weight_changes.CACHES, (weight_changes.RESET,)),
    )
    for classes, methods in watched:
        for module, name in classes.items():
            source = root.joinpath(*module.split(".")).with_suffix(".py").read_text()
            assert f"class {name}" in source
            assert any(f"def {method}(" in source for method in methods)
