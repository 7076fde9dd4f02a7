"""KV is found by engines that would compute the same, and by no others: with vLLM's own engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make test-engines")

import torch
from safetensors.torch import load_file, save_file
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from experiments.engines import model
from tests.engines.live.conftest import Home
from tests.engines.live.test_vllm_situations import assert_same, tokens, transfer
from tests.engines.live.vllm_process import Engine

HITS = "external_prefix_cache_hits"
Start = Callable[..., Engine]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Engine] = []

    def start_one(folder: Path, **more: Any) -> Engine:
        engine = Engine(tmp_path, folder, **more)
        started.append(engine)
        return engine

    yield start_one
    for engine in started:
        engine.close()


def test_one_edited_tensor_makes_another_model(start: Start, home: Home, tmp_path: Path) -> None:
    """Same folder name, same sizes: the engine of the edited model finds nothing, that of a copy all."""
    one, edited, copy = (tmp_path / name / "chat" for name in ("one", "edited", "copy"))
    model.make(one, hidden=128, layers=4)
    shutil.copytree(one, copy)
    shutil.copytree(one, edited)
    weights = load_file(edited / "model.safetensors")
    name = next(name for name in weights if name.endswith("layers.2.mlp.down_proj.weight"))
    weights[name] = -weights[name]
    save_file(weights, edited / "model.safetensors", {"format": "pt"})

    prompt = tokens(200, 1)
    first = start(one, transfer=transfer(home))
    right = first.generate(prompt)
    first.settle()
    first.close()
    other = start(edited, transfer=transfer(home))
    assert other.generate(prompt) != right
    assert other.counter(HITS) == 0
    other.close()
    same = start(copy, transfer=transfer(home), max_num_seqs=3, gpu_memory_utilization=0.5)
    assert_same(same.generate(prompt), right)
    assert same.counter(HITS) == 192


ADAPTER = """
import json, torch
from pathlib import Path
from safetensors.torch import save_file
from vllm import SamplingParams
from vllm.lora.request import LoRARequest

def write(seed):
    choice, weights = torch.Generator().manual_seed(seed), {}
    for layer in range(4):
        for name, out in (("q_proj", HEADS * 64), ("v_proj", 64)):
            at = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            weights[f"{at}.lora_A.weight"] = torch.randn(8, 128, generator=choice)
            weights[f"{at}.lora_B.weight"] = torch.randn(out, 8, generator=choice) * 0.2
    Path(FOLDER).mkdir(exist_ok=True)
    save_file(weights, FOLDER + "/adapter_model.safetensors")
    said = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"],
            "task_type": "CAUSAL_LM", "base_model_name_or_path": "x", "bias": "none", "lora_dropout": 0.0}
    Path(FOLDER, "adapter_config.json").write_text(json.dumps(said))

def ask(prompt, number):
    sampling = SamplingParams(temperature=0, max_tokens=4, ignore_eos=True, detokenize=False)
    adapter = LoRARequest(f"sql{number}", number, FOLDER)
    before = counter("external_prefix_cache_hits")
    llm.generate([{"prompt_token_ids": prompt}], sampling, lora_request=adapter, use_tqdm=False)
    settle()
    llm.reset_prefix_cache()
    return counter("external_prefix_cache_hits") - before
"""


def test_an_adapter_is_what_vllm_loaded_and_not_what_its_files_hold(
    start: Start, home: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "tiny"
    model.make(folder, hidden=128, layers=4)
    engine = start(folder, transfer=transfer(home), enable_lora=True, max_lora_rank=8, max_loras=2)
    heads = engine.run("result = llm.llm_engine.model_config.hf_config.num_attention_heads")
    engine.run(f"HEADS, FOLDER = {heads}, {str(tmp_path / 'adapter')!r}\n{ADAPTER}")
    old, new = tokens(200, 1), tokens(200, 2)
    engine.run(f"write(1); ask({tokens(40, 3)}, 1)")
    engine.run(f"ask({old}, 1)")
    assert engine.run(f"result = ask({old}, 1)") == 192

    # The files change; vLLM goes on with what it has loaded, which is stored under neither name.
    # The first request finds them not hashed yet, the second finds other content than before under the name.
    engine.run(f"write(2); ask({new}, 1)")
    for _ in range(2):
        assert engine.run(f"result = ask({new}, 1)") == 0
    assert engine.log.read_text(errors="replace").count("KV of adapter sql1 is not shared until") == 1
    assert engine.log.read_text(errors="replace").count("files have changed since vLLM loaded it") == 1

    # Loaded anew, under another number: what the former adapter computed is not found, its own is.
    assert engine.run(f"result = ask({old}, 2)") == 0
    assert engine.run(f"result = ask({new}, 2)") == 0
    assert engine.run(f"result = ask({new}, 2)") == 192


def test_sliding_windows_beside_full_attention_are_right(start: Start, home: Home, tmp_path: Path) -> None:
    """As in Gemma 3: vLLM keeps all tokens of all layers for such a connector."""
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        vocab_size=256, hidden_size=128, intermediate_size=256, num_hidden_layers=6, num_attention_heads=2,
        num_key_value_heads=1, head_dim=64, sliding_window=64, max_position_embeddings=1024,
        initializer_range=0.1, bos_token_id=2, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    Gemma3ForCausalLM(config).eval().save_pretrained(tmp_path / "gemma")
    prompts = [tokens(300, 1), tokens(200, 2)]
    engine = start(tmp_path / "gemma", transfer=transfer(home))
    right = engine.generate(*prompts, tokens=16)
    engine.settle()
    engine.forget()
    assert_same(engine.generate(*prompts, tokens=16), right)
    assert engine.counter(HITS) == 288 + 192
