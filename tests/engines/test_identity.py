"""A model by the whole content of its files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engines import digests
from engines.identity import ModelFiles, in_background, model_identity, process_start_s
from hostlib.protocol.errors import KeySpaceError

WEIGHTS = bytes(range(256)) * 1000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "weir" / "digests"


def folder(path: Path, weights: bytes | bytearray = WEIGHTS, name: str = "model.safetensors") -> Path:
    path.mkdir()
    (path / name).write_bytes(weights)
    (path / "config.json").write_text("{}")
    return path


def test_the_same_weights_have_one_name_wherever_they_lie(tmp_path: Path) -> None:
    assert model_identity(folder(tmp_path / "a")) == model_identity(str(folder(tmp_path / "b")))


@pytest.mark.parametrize("at", [0, 1, 5 * 1000 + 7, len(WEIGHTS) - 1])
def test_every_byte_counts(tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "CHUNK_BYTES", 4096)
    weights = bytearray(WEIGHTS)
    weights[at] ^= 1
    right = model_identity(folder(tmp_path / "a"))
    assert model_identity(folder(tmp_path / "b", weights)) != right
    assert model_identity(folder(tmp_path / "c", WEIGHTS[:-1])) != right
    assert model_identity(folder(tmp_path / "d", WEIGHTS + b"\0")) != right


def test_parts_of_a_large_file_count_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "CHUNK_BYTES", 4)
    names = {
        model_identity(folder(tmp_path / str(number), one))
        for number, one in enumerate([b"abcdefgh", b"efghabcd"])
    }
    assert len(names) == 2


def copied(change: Callable[[Path], object]) -> Callable[[Path], str]:
    def identity(path: Path) -> str:
        change(folder(path))
        return model_identity(path)

    return identity


@pytest.mark.parametrize(
    "change",
    [
        lambda path: (path / "modeling_own.py").write_text("scale = 2"),
        lambda path: (path / "quantization.json").write_text("{}"),
        lambda path: (path / "model-00002.safetensors").write_bytes(b"more"),
        lambda path: (path / "part").mkdir() or (path / "part" / "model.bin").write_bytes(b"more"),
        lambda path: (path / "preprocessor_config.json").write_text('{"size": 224}'),
        lambda path: (path / "model.safetensors").rename(path / "consolidated.safetensors"),
        lambda path: (path / "config.json").unlink(),
        lambda path: (path / "tokenizer-e351c8d8.safetensors").write_bytes(b"of a codec"),
        lambda path: (path / "vocab.PT").write_bytes(b"weights"),
        lambda path: (path / "tokenizer.py").write_text("scale = 2"),
    ],
)
def test_files_that_may_change_what_is_computed_count(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    assert copied(change)(tmp_path / "changed") != model_identity(folder(tmp_path / "plain"))


@pytest.mark.parametrize(
    "name",
    [
        "tokenizer.json",
        "generation_config.json",
        "optimizer.pt",
        "rng_state_0.pth",
        "README.md",
        ".gitattributes",
        ".cache/lock",
        "original/w.pth",
    ],
)
def test_files_that_change_no_kv_do_not_count(tmp_path: Path, name: str) -> None:
    def add(path: Path) -> None:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text("whatever")

    assert copied(add)(tmp_path / "changed") == model_identity(folder(tmp_path / "plain"))


def test_the_same_weights_under_another_configuration_have_another_name(tmp_path: Path) -> None:
    """As where YaRN is switched on in config.json: every key is rotated otherwise."""

    def configured(name: str, said: str) -> str:
        folder(tmp_path / name)
        (tmp_path / name / "config.json").write_text(said)
        return model_identity(tmp_path / name)

    plain = configured("plain", '{"heads": 2, "rope_scaling": null, "transformers_version": "5.1"}')
    assert configured("spaced", '{"rope_scaling":null,\n"heads":2, "transformers_version": "5.2"}') == plain
    assert configured("yarn", '{"heads": 2, "rope_scaling": {"type": "yarn", "factor": 4.0}}') != plain
    with pytest.raises(KeySpaceError, match=r"config\.json can't be read"):
        configured("broken", "{")
    with pytest.raises(KeySpaceError, match=r"names other models as parts of this one: some/llama"):
        configured("parts", '{"text_model_id": "some/llama", "audio_model_id": null}')


def test_a_single_file_of_weights_is_a_model(tmp_path: Path) -> None:
    one = folder(tmp_path / "a") / "model.safetensors"
    other = folder(tmp_path / "b", name="other.gguf") / "other.gguf"
    assert model_identity(one) == model_identity(other)


@pytest.mark.parametrize("what", ["a/model", "empty"])
def test_what_has_no_files_has_no_name(tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(KeySpaceError, match=r"is no file or folder|holds no files"):
        model_identity(tmp_path / what)


def test_a_file_that_changes_while_it_is_read_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = folder(tmp_path / "a")
    read = digests._hash_chunk

    def read_while_written(descriptor: int, start: int) -> bytes:
        digest = read(descriptor, start)
        (model / "model.safetensors").write_bytes(WEIGHTS[::-1])
        return digest

    monkeypatch.setattr(digests, "_hash_chunk", read_while_written)
    with pytest.raises(KeySpaceError, match="changes while it is read"):
        model_identity(model)


def test_a_file_added_while_the_others_are_read_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = folder(tmp_path / "a")
    read = digests._hash_chunk

    def read_while_added(descriptor: int, start: int) -> bytes:
        (model / "model-2.safetensors").write_bytes(b"more")
        return read(descriptor, start)

    monkeypatch.setattr(digests, "_hash_chunk", read_while_added)
    with pytest.raises(KeySpaceError, match="changes while it is read"):
        model_identity(model)


def now_s() -> float:
    """The time, so that all changes before have an earlier one and all that come a later one."""
    time.sleep(0.05)  # the clock of file systems ticks every few milliseconds
    at_s = time.time()
    time.sleep(0.05)
    return at_s


@pytest.mark.parametrize(
    "change",
    [
        lambda at: (at / "model" / "model.safetensors").write_bytes(WEIGHTS[::-1]),
        lambda at: os.utime(at / "model" / "model.safetensors", (1, 1)),
        lambda at: (at / "model" / "other.py").write_text(""),
        lambda at: (at / "second" / "model.safetensors").replace(at / "model" / "model.safetensors"),
        lambda at: ((at / "model").rename(at / "old"), (at / "second").rename(at / "model")),
        lambda at: ((at / "link").unlink(), (at / "link").symlink_to(at / "second")),
        lambda at: ((at / "stable").unlink(), (at / "stable").symlink_to(at / "second")),
    ],
)
def test_whatever_may_have_changed_after_an_engine_loaded_a_model_is_noticed(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    folder(tmp_path / "model")
    folder(tmp_path / "second", WEIGHTS[::-1])
    (tmp_path / "stable").symlink_to(tmp_path / "model")
    (tmp_path / "link").symlink_to("stable")
    loaded_s = now_s()
    (tmp_path / "another model").mkdir()  # beside it, which says nothing
    assert ModelFiles.of(tmp_path / "link").changed_after(loaded_s) is None
    change(tmp_path)
    assert ModelFiles.of(tmp_path / "link").changed_after(loaded_s) is not None


def test_a_hub_cache_is_followed_to_its_files(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "c0ffee"
    folder(blobs, name="a1b2")
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to("../../blobs/a1b2")
    (snapshot / "config.json").symlink_to("../../blobs/config.json")
    assert model_identity(snapshot) == model_identity(folder(tmp_path / "plain"))
    loaded_s = now_s()
    assert ModelFiles.of(snapshot).changed_after(loaded_s) is None
    (blobs / "a1b2").write_bytes(WEIGHTS[::-1])
    assert ModelFiles.of(snapshot).changed_after(loaded_s) is not None


def test_this_process_started_before_now_and_after_its_parent() -> None:
    assert time.time() - 3600 < process_start_s() < time.time()


def test_files_may_have_any_name_that_a_disk_takes(tmp_path: Path) -> None:
    """Also one that is no text, as of an archive from elsewhere."""
    one, other = folder(tmp_path / "a"), folder(tmp_path / "b")
    for path, name in ((one, b"caf\xe9.bin"), (other, b"caf\xe8.bin")):
        (path / os.fsdecode(name)).write_bytes(b"more")
    assert model_identity(one) != model_identity(other)


def test_whatever_goes_wrong_in_the_background_is_a_reason_not_to_share() -> None:
    def name() -> str:
        raise MemoryError("no room")

    error = in_background(name).exception(60)
    assert isinstance(error, KeySpaceError)
    assert "MemoryError('no room')" in str(error)
