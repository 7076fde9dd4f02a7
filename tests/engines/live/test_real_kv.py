"""make run MODEL=folder: blocks that a real model computed, through network and pool, equal to the bit."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="make test-engines")

import torch
from transformers import AutoModelForCausalLM, DynamicCache, LlamaConfig, LlamaForCausalLM

from emulator.kv_blocks import EXIT_UNUSABLE, block_tokens, main
from hostlib.protocol.kv_file import KvFile
from workload.keys import KeySpace

ROOT = Path(__file__).resolve().parents[3]
TOKENS = 8
TOKEN_BYTES = 2 * 2 * 2 * 16 * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(2)
    config = LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=8192,
    )  # fmt: skip
    made = tmp_path_factory.mktemp("model") / "tiny"
    LlamaForCausalLM(config).eval().save_pretrained(made)
    return made


def job(folder: Path, out: Path, block_bytes: int, chains: list[list[int]]) -> Path:
    keys = [[key.hex() for key in KeySpace().chain(chain)] for chain in chains]
    path = out.with_suffix(".json")
    record = {"model": str(folder), "block_bytes": block_bytes, "seed": 5, "chains": chains, "keys": keys}
    path.write_text(json.dumps(record | {"out": str(out)}))
    return path


def test_the_blocks_are_the_kv_of_the_chains_tokens(folder: Path, tmp_path: Path) -> None:
    size = TOKENS * TOKEN_BYTES + 100  # the rest, less than a token, is 0
    chains = [[1, 2, 3], [1, 9]]
    assert main(str(job(folder, tmp_path / "kv", size, chains))) == 0
    file, model = KvFile(tmp_path / "kv"), AutoModelForCausalLM.from_pretrained(folder).eval()
    assert len(file) == 4
    for chain in chains:
        prompt = [token for hash_id in chain for token in block_tokens(hash_id, TOKENS, 128, 5)]
        cache = DynamicCache(config=model.config)
        with torch.no_grad():
            model(torch.tensor([prompt]), past_key_values=cache)
        for number, key in enumerate(KeySpace().chain(chain)):
            content = file(key, size)
            kv = torch.frombuffer(bytearray(content[:-100]), dtype=torch.float32).view(2, 2, 2, TOKENS, 16)
            for index, layer in enumerate(cache.layers):
                own = slice(number * TOKENS, (number + 1) * TOKENS)
                assert torch.allclose(kv[index, 0], layer.keys[0, :, own], atol=1e-5)
                assert torch.allclose(kv[index, 1], layer.values[0, :, own], atol=1e-5)
            assert content[-100:] == bytes(100)


def test_a_model_whose_kv_does_not_fit_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(str(job(folder, tmp_path / "kv", TOKEN_BYTES - 1, [[1]]))) == EXIT_UNUSABLE
    assert "give a smaller SCALE" in capsys.readouterr().err
    assert main(str(job(folder, tmp_path / "kv", TOKEN_BYTES * 5000, [[1, 2]]))) == EXIT_UNUSABLE
    assert "the model takes 8,192" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(str(job(tmp_path / "empty", tmp_path / "kv", 1024, [[1]]))) == EXIT_UNUSABLE
    assert "is no folder of a model" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_trace_is_played_with_real_kv_in_its_blocks(folder: Path, tmp_path: Path) -> None:
    few = ["--requests", "30", "--hosts", "2", "--speed", "2", "--gpu-blocks", "4", "--dram-blocks", "8"]
    command = [str(ROOT / ".venv/bin/python"), "-m", "experiments.run", *few, "--modes", "pool"]
    scale = ["--scale", "20000", "--model", str(folder), "--results", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*command, *scale],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = json.loads((tmp_path / "summary.json").read_text())["runs"].values()
    assert run["compared"] > 20
    assert (run["corrupt"], run["failed"]) == (0, 0)
    assert run["blocks"]["pool"] > 0
