"""Which weights an engine of vLLM has: by the files that it loaded, or not at all."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make test-engines")

from engines.identity import model_identity
from engines.vllm.weights import name_weights
from hostlib.protocol.errors import KeySpaceError


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def folder(path: Path, weights: bytes = b"weights") -> Path:
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(weights)
    (path / "config.json").write_text("{}")
    return path


def hf_config(**said: Any) -> Any:
    """A model's own configuration."""
    return SimpleNamespace(to_dict=lambda: said)


def config(model: str | Path, draft: str | Path | None = None, **changes: Any) -> Any:
    described = {
        "model": str(model), "model_weights": "", "revision": None, "code_revision": None,
        "trust_remote_code": False, "hf_config": hf_config(), "hf_overrides": {},
    }  # fmt: skip
    load = {"load_format": "auto", "download_dir": None}
    load |= {name: changes.pop(name) for name in list(changes) if name in load}
    model_config = SimpleNamespace(**{**described, **changes})
    speculative = None
    if draft is not None:
        draft_config = SimpleNamespace(**{**described, "model": str(draft)})
        speculative = SimpleNamespace(draft_model_config=draft_config, draft_load_config=None)
    return SimpleNamespace(
        model_config=model_config, load_config=SimpleNamespace(**load), speculative_config=speculative
    )


def later_s() -> float:
    time.sleep(0.05)  # the clock of file systems ticks every few milliseconds
    return time.time()


def test_weights_are_named_by_their_content(tmp_path: Path) -> None:
    one, same, other = folder(tmp_path / "1"), folder(tmp_path / "2"), folder(tmp_path / "3", b"Weights")
    loaded_s = later_s()
    named = [name_weights(config(path), loaded_s) for path in (one, same, other)]
    assert named[0] == named[1] == model_identity(one)
    assert named[2] != named[0]


def test_a_model_that_drafts_is_part_of_the_name(tmp_path: Path) -> None:
    one, draft, other = (folder(tmp_path / name, name.encode()) for name in ("model", "draft", "other"))
    loaded_s = later_s()
    named = {name_weights(config(one, head), loaded_s) for head in (None, draft, other)}
    assert len(named) == 3
    assert name_weights(config(one, one), loaded_s) == name_weights(config(one), loaded_s)


def test_files_written_after_the_engine_started_have_no_name(tmp_path: Path) -> None:
    """They may not be those that it loaded."""
    loaded_s = time.time() - 1
    with pytest.raises(KeySpaceError, match="written after the engine started"):
        name_weights(config(folder(tmp_path / "model")), loaded_s)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"load_format": "dummy"}, "the weights are random"),
        ({"load_format": "tensorizer"}, "not read from the model's files"),
        ({"load_format": "somebody's plugin"}, "not read from the model's files"),
        ({"model_weights": "s3://bucket/model"}, "come from s3://bucket/model"),
        (
            {
                "trust_remote_code": True,
                "hf_config": hf_config(auto_map={"AutoModel": "else/where--m.Own"}),
            },
            "runs code from another place",
        ),
        (
            {
                "trust_remote_code": True,
                "hf_config": hf_config(vision_config={"auto_map": {"AutoModel": "else/where--m.Own"}}),
            },
            "runs code from another place",
        ),
        (
            {
                "trust_remote_code": True,
                "hf_config": hf_config(auto_map={"AutoConfig": "configuration_m.Own"}),
                "hf_config_path": "/another/folder",
            },
            "runs code from another place",
        ),
        ({"load_format": "gguf"}, "not read from the model's files"),
        ({"hf_config": hf_config(text_model_id="some/llama")}, "have the weights of some/llama"),
        (
            {"hf_overrides": {"quantization_config_file": "/tmp/int4.json"}},
            "a file beside the model says how it is quantized",
        ),
        ({"model": "nobody/has-this-model"}, "neither a folder nor in the hub's cache"),
    ],
)
def test_weights_from_elsewhere_have_no_name(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    model = folder(tmp_path / "model")
    with pytest.raises(KeySpaceError, match=why):
        name_weights(
            config(model, **changes) if "model" not in changes else config(changes["model"]), later_s()
        )


def test_a_model_of_a_hub_is_the_content_of_its_commit(tmp_path: Path) -> None:
    """Whatever branch or commit it was asked for by; a branch that moved after the start is in doubt."""
    hub = tmp_path / "hub" / "models--some--model"
    commit = "a" * 40
    snapshot = folder(hub / "snapshots" / commit)
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text(commit)
    loaded_s = later_s()
    by_branch = config("some/model", download_dir=str(tmp_path / "hub"))
    by_commit = config("some/model", revision=commit, download_dir=str(tmp_path / "hub"))
    assert name_weights(by_branch, loaded_s) == name_weights(by_commit, loaded_s) == model_identity(snapshot)
    os.utime(hub / "refs" / "main")
    with pytest.raises(KeySpaceError, match="refs/main was written after"):
        name_weights(by_branch, loaded_s)
    assert name_weights(by_commit, loaded_s) == model_identity(snapshot)
