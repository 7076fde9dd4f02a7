"""A model's weights by samples of their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.identity import SAMPLE_BYTES, model_identity
from hostlib.errors import KeySpaceError


def folder(path: Path, weights: bytes | bytearray, name: str = "model.safetensors") -> str:
    path.mkdir()
    (path / name).write_bytes(weights)
    (path / "config.json").write_text("{}")
    return str(path)


def test_the_same_weights_have_one_name_wherever_they_lie(tmp_path: Path) -> None:
    weights = bytes(range(256)) * 1000
    assert model_identity(folder(tmp_path / "a", weights)) == model_identity(folder(tmp_path / "b", weights))


@pytest.mark.parametrize("at", [0, 8 * SAMPLE_BYTES, 16 * SAMPLE_BYTES - 1])
def test_other_weights_have_another(tmp_path: Path, at: int) -> None:
    weights = bytearray(16 * SAMPLE_BYTES)
    right = model_identity(folder(tmp_path / "a", weights))
    weights[at] ^= 1
    assert model_identity(folder(tmp_path / "b", weights)) != right
    assert model_identity(folder(tmp_path / "c", weights[:-1])) != right


def test_a_model_of_a_hub_is_its_name_and_revision() -> None:
    assert model_identity("a/model") == "a/model@main"
    assert model_identity("a/model", "v2") == "a/model@v2"


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeySpaceError, match="no weights found"):
        model_identity(folder(tmp_path / "a", b"", name="readme.md"))


def test_the_same_weights_under_another_configuration_have_another(tmp_path: Path) -> None:
    """As where YaRN is switched on in config.json: every key is rotated otherwise."""

    def configured(name: str, said: str) -> str:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(bytes(1000))
        (tmp_path / name / "config.json").write_text(said)
        return model_identity(str(tmp_path / name))

    plain = configured("plain", '{"heads": 2, "rope_scaling": null, "transformers_version": "5.1"}')
    assert configured("spaced", '{"rope_scaling":null,\n"heads":2, "transformers_version": "5.2"}') == plain
    assert configured("yarn", '{"heads": 2, "rope_scaling": {"type": "yarn", "factor": 4.0}}') != plain
    with pytest.raises(KeySpaceError, match=r"config\.json can't be read"):
        configured("broken", "{")
