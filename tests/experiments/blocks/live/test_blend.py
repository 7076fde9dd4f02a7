"""CacheBlend on an untrained model: what must hold whatever the weights are (make test-blocks)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="make test-blocks")
pytest.importorskip("transformers", reason="make test-blocks")

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from experiments.blocks.blend import COVERED, Blender, chunk_kv
from experiments.blocks.model.architecture import make_model
from experiments.blocks.model.load import ModelError, Transformer, cache_of, kv_of, load_transformer
from experiments.blocks.overlap import CODECS, Layers
from kvcodec.layout import Floats

CHUNK, CHUNKS = 16, 5
CONTEXTS = np.random.default_rng(5).integers(97, 123, (3, CHUNK * CHUNKS))


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Transformer:
    folder = tmp_path_factory.mktemp("model")
    make_model(3).eval().save_pretrained(folder)
    return load_transformer(folder)


@pytest.fixture(scope="module")
def exact(transformer: Transformer) -> Floats:
    with torch.inference_mode():
        return kv_of(transformer.model(torch.from_numpy(CONTEXTS), use_cache=True).past_key_values)


@pytest.fixture(scope="module")
def reused(transformer: Transformer) -> Floats:
    return chunk_kv(transformer, CONTEXTS, CHUNK)


def off(kv: Floats, exact: Floats) -> float:
    return float(np.square(kv - exact).mean())


def test_a_cache_becomes_an_array_and_a_cache_again(transformer: Transformer, exact: Floats) -> None:
    assert np.array_equal(kv_of(cache_of(exact, transformer)), exact)


def test_recomputing_all_gives_the_models_own_kv(
    transformer: Transformer, exact: Floats, reused: Floats
) -> None:
    blended = Blender(transformer).blend(CONTEXTS, reused, 1.0)
    assert np.allclose(blended.kv, exact, atol=1e-4)
    assert blended.flops_saved == pytest.approx(0)


@pytest.mark.parametrize("kind", COVERED)
def test_every_type_of_model_that_is_covered_is_recomputed_exactly(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(2)
    config = AutoConfig.for_model(
        kind, vocab_size=256, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, sliding_window=None,
        initializer_range=0.5,
    )  # fmt: skip
    AutoModelForCausalLM.from_config(config).eval().save_pretrained(tmp_path)
    of = load_transformer(tmp_path)
    with torch.inference_mode():
        exact = kv_of(of.model(torch.from_numpy(CONTEXTS), use_cache=True).past_key_values)
    blended = Blender(of).blend(CONTEXTS, chunk_kv(of, CONTEXTS, CHUNK), 1.0)
    assert np.allclose(blended.kv, exact, atol=1e-3)


def test_models_that_cannot_be_blended_are_refused(tmp_path: Path) -> None:
    config = AutoConfig.for_model(
        "llama", vocab_size=256, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2,
    )  # fmt: skip
    AutoModelForCausalLM.from_config(config).eval().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"has 2 layers: .* expected 3 layers or more"):
        Blender(load_transformer(tmp_path))


def test_the_first_chunk_and_layer_0_need_no_recomputing(exact: Floats, reused: Floats) -> None:
    assert np.allclose(reused[:, :, :, :CHUNK], exact[:, :, :, :CHUNK], atol=1e-4)
    assert np.allclose(reused[:, 0], exact[:, 0], atol=1e-3)
    assert off(reused[:, 1:, :, CHUNK:], exact[:, 1:, :, CHUNK:]) > 1e-4


def test_more_recomputing_comes_nearer_and_saves_less(
    transformer: Transformer, exact: Floats, reused: Floats
) -> None:
    results = [Blender(transformer).blend(CONTEXTS, reused, share) for share in (0.0, 0.1, 0.3, 1.0)]
    errors = [off(one.kv, exact) for one in results]
    assert errors == sorted(errors, reverse=True)
    saved = [one.flops_saved for one in results]
    assert saved == sorted(saved, reverse=True)
    assert saved[0] == 1
    assert 0.05 < results[1].recomputed < 0.15


@pytest.mark.parametrize("given", CODECS)
def test_layers_that_come_while_others_are_computed_are_blended_as_if_all_had_been_there(
    transformer: Transformer, given: tuple[str, int]
) -> None:
    layers = Layers(transformer, chunk_kv(transformer, CONTEXTS, CHUNK), *given)
    layers.load_all()
    blended = Blender(transformer).blend(CONTEXTS, layers.kv, 0.2).kv
    layers.kv[:] = np.nan
    with ThreadPoolExecutor(1) as loader:
        same = Blender(transformer).blend(CONTEXTS, layers.kv, 0.2, layers.loading(loader)).kv
    assert np.array_equal(same, blended)


def test_tokens_that_deviate_most_do_more_than_others(
    transformer: Transformer, exact: Floats, reused: Floats
) -> None:
    """Where reused KV is wrong in a few tokens alone, those are found."""
    wrong = exact.copy()
    wrong[:, 1:, :, 40:44] += 3.0
    blended = Blender(transformer).blend(CONTEXTS, wrong, 0.1)
    assert off(blended.kv, exact) < 0.01 * off(wrong, exact)


def test_models_that_are_not_covered_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        load_transformer(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "no such type"}')
    with pytest.raises(ModelError, match="can't load it as a causal model"):
        load_transformer(tmp_path)
