"""Names of adapters: by the content of their files, and what vLLM's own cache may hold under their names."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="make test-engines")

from vllm.lora.request import LoRARequest
from vllm.lora.worker_manager import WorkerLoRAManager

from engines.vllm import adapters
from engines.vllm.adapters import AdapterNames, LoadedAdapters
from engines.vllm.errors import AdapterChangedError
from hostlib.protocol.errors import KeySpaceError


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "sql"
    path.mkdir()
    (path / "adapter_config.json").write_text("{}")
    (path / "adapter_model.safetensors").write_bytes(b"one")
    return path


def named(names: AdapterNames, folder: Path, number: int = 1, **more: bool) -> str:
    """The name of an adapter, once its files are hashed."""
    adapter = LoRARequest(folder.name, number, str(folder), **more)
    for _ in range(1000):
        try:
            return names.name(adapter)
        except KeySpaceError as error:
            if "are being hashed" not in str(error):
                raise
            time.sleep(0.005)
    raise TimeoutError


def test_adapters_are_named_by_content_and_form(folder: Path, tmp_path: Path) -> None:
    names = AdapterNames()
    name = named(names, folder)
    same = tmp_path / "elsewhere" / "other name"
    same.parent.mkdir()
    same.mkdir()
    for file in folder.iterdir():
        (same / file.name).write_bytes(file.read_bytes())
    assert named(names, same, number=7) == name
    assert named(names, folder, is_3d_lora_weight=True) != name


def test_a_field_of_another_version_of_vllm_is_in_doubt(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `tensorizer_config_dict` was, which said where else the weights came from."""
    monkeypatch.setattr(adapters, "KNOWN_FIELDS", adapters.KNOWN_FIELDS - {"is_3d_lora_weight"})
    assert named(AdapterNames(), folder)
    with pytest.raises(KeySpaceError, match="not known here what is_3d_lora_weight of adapter 'sql' does"):
        named(AdapterNames(), folder, is_3d_lora_weight=True)


@pytest.mark.parametrize("was_named", [True, False])
def test_another_adapter_under_the_same_name_and_path_is_noticed_once(
    folder: Path, *, was_named: bool
) -> None:
    """As when it was unloaded and loaded again: vLLM's own cache takes it for the one before."""
    names = AdapterNames()
    if was_named:
        before = named(names, folder)
    else:
        with pytest.raises(KeySpaceError, match="are being hashed"):
            names.name(LoRARequest(folder.name, 1, str(folder)))
        (folder / "adapter_config.json").unlink()  # so that what it was is never known
    (folder / "adapter_model.safetensors").write_bytes(b"other")
    with pytest.raises(AdapterChangedError, match="'sql' have changed"):
        named(names, folder, number=2)
    now = named(names, folder, number=2)
    assert not was_named or now != before


def test_files_that_were_touched_are_the_same_adapter(folder: Path) -> None:
    names = AdapterNames()
    name = named(names, folder)
    os.utime(folder / "adapter_model.safetensors")
    assert named(names, folder) == name


def loading(monkeypatch: pytest.MonkeyPatch, module: str) -> LoadedAdapters:
    """Return a worker's record of its adapters, where a function of this module loads them."""

    def load(self: object, adapter: object) -> str:
        return "loaded"

    load.__module__ = module
    monkeypatch.setattr(WorkerLoRAManager, "_load_adapter", load)
    monkeypatch.setattr(adapters, "_loads", adapters._Loads())
    return LoadedAdapters()


class InMemory(LoRARequest):  # type: ignore[misc] # vllm is not in the project's environment
    """An adapter of a training framework: its weights are in memory, and those at its path are others."""

    tensors: dict[str, bytes] | None = None


def test_an_adapter_that_training_brings_in_memory_has_no_name(folder: Path) -> None:
    names = AdapterNames()
    name = named(names, folder)
    with pytest.raises(KeySpaceError, match="a InMemory may bring an adapter that is in no file"):
        names.name(InMemory(folder.name, 1, str(folder), tensors={"a": b"trained"}))
    with pytest.raises(AdapterChangedError):
        names.name(LoRARequest(folder.name, 1, str(folder)))  # of whose name vLLM's cache has KV of the other
    assert named(names, folder) == name


def test_what_another_loader_has_loaded_is_not_that_of_the_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = loading(monkeypatch, "trainer.patches")
    assert "trainer.patches loads them in vLLM's place" in caplog.text
    manager = object.__new__(WorkerLoRAManager)
    assert manager._load_adapter(LoRARequest("sql", 1, str(folder))) == "loaded"
    assert not loaded.is_loaded(1, named(AdapterNames(), folder))


def test_of_two_engines_in_one_process_nobody_knows_which_has_loaded_an_adapter(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They number their adapters alike, and the files may have changed between the two."""
    loaded, adapter = loading(monkeypatch, WorkerLoRAManager.__module__), LoRARequest("sql", 1, str(folder))
    first, second = (object.__new__(WorkerLoRAManager) for _ in range(2))
    name = named(AdapterNames(), folder)
    assert not loaded.is_loaded(1, name)
    assert first._load_adapter(adapter) == "loaded"
    assert loaded.is_loaded(1, name)
    assert not loaded.is_loaded(1, "another content")
    assert second._load_adapter(adapter) == "loaded"
    assert not loaded.is_loaded(1, name)
