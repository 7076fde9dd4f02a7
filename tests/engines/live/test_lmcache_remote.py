"""LMCache's own tester of remote connectors, with the pool behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("lmcache", reason="make test-engines")

from tests.engines.live.conftest import Home

ROOT = Path(__file__).resolve().parents[3]
KEYS = 5
PLUGIN = "remote_storage_plugin.weir"


def run(
    folder: Path,
    pool: object,
    program: str,
    seed: str = "0",
    algorithm: str = "builtin",
    more: dict[str, object] | None = None,
    **extra: object,
) -> str:
    """A program in a process of its own, whose configuration LMCache reads once."""
    config = {
        "remote_url": "plugin://weir",
        "remote_storage_plugins": ["weir"],
        "remote_serde": "naive",
        "pre_caching_hash_algorithm": algorithm,
        "local_cpu": True,
        "max_local_cpu_size": 0.2,
        "extra_config": {
            f"{PLUGIN}.module_path": "engines.lmcache.remote",
            f"{PLUGIN}.class_name": "WeirRemoteConnector",
            f"{PLUGIN}.pool": pool,
            **extra,
        },
        **(more or {}),
    }
    path = folder / "lmcache.yaml"
    path.write_text(json.dumps(config))  # YAML, too
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "LMCACHE_CONFIG_FILE": str(path),
            "LMCACHE_TRACK_USAGE": "false",
            "PYTHONHASHSEED": seed,
            "HOME": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


TESTER = f"""
import asyncio
from lmcache.v1.check import check_mode_test_remote as tester
asyncio.run(tester.run_test_mode("a/model", num_keys={KEYS}, obj_size=4096))
"""


@pytest.mark.parametrize("describes", [True, False])
def test_lmcaches_tester_finds_every_chunk_right(
    pool_settings: dict[str, object], home: Home, tmp_path: Path, describes: bool
) -> None:
    said = run(tmp_path, pool_settings, TESTER, save_chunk_meta=describes)
    assert said.count(f"{KEYS}/{KEYS} passed (100.0%)") == 4, said
    assert "Test Failed" not in said
    assert len(home.store.places()) == KEYS


def test_wrong_settings_are_said(tmp_path: Path) -> None:
    said = run(tmp_path, {"adress": "10.0.0.1"}, TESTER)
    assert "no pool setting 'adress' exists" in said
    said = run(tmp_path, None, TESTER)
    assert f"extra_config needs '{PLUGIN}.pool'" in said


def test_chunks_from_the_middle_of_a_prompt_are_refused(tmp_path: Path) -> None:
    """CacheBlend names a chunk by its own tokens, wherever in a prompt it was computed."""
    settings = {"address": "127.0.0.2", "homes": ["127.0.0.3"]}
    said = run(tmp_path, settings, TESTER, more={"enable_blending": True})
    assert "with enable_blending, LMCache gives chunks from the middle" in said, said


def test_chunks_that_are_serialized_otherwise_or_in_8_bits_have_other_names(tmp_path: Path) -> None:
    program = """
from types import SimpleNamespace
from engines.lmcache import remote
metadata = SimpleNamespace(model_name=".", kv_shape=(2, 2, 256, 1, 8), kv_dtype="torch.uint8")
assert remote._form(metadata, "naive") != remote._form(metadata, "cachegen")
print("@@", remote.begin_naming(metadata).exception(60))
"""
    assert "@@ LMCache does not say of which 8-bit format the KV is" in run(tmp_path, {}, program)


def test_chunks_that_every_process_names_otherwise_are_refused(tmp_path: Path) -> None:
    """As with LMCache's default hash where PYTHONHASHSEED is not set."""
    settings = {"address": "127.0.0.2", "homes": ["127.0.0.3"]}
    said = run(tmp_path, settings, TESTER, seed="random")
    assert "names the same tokens otherwise in each process" in said
    assert "PYTHONHASHSEED=0" in said


ALGORITHMS = ["builtin", "sha256_cbor", *(["xxhash_cbor"] if find_spec("xxhash") else [])]


@pytest.mark.parametrize(
    ("seed", "refused"),
    [
        (None, {"builtin", "xxhash_cbor"}),
        ("random", {"builtin", "xxhash_cbor"}),
        ("0", set[str]()),
    ],
)
def test_what_is_refused_is_what_processes_name_differently(seed: str | None, refused: set[str]) -> None:
    """LMCache's own names in two processes, beside what the connector says of them."""
    program = f"""
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.token_database import ChunkedTokenDatabase
import json, torch
from engines.lmcache.remote import check_hash_seed
for algorithm in {ALGORITHMS!r}:
    config = LMCacheEngineConfig.from_defaults(chunk_size=256, pre_caching_hash_algorithm=algorithm)
    chunks = ChunkedTokenDatabase(config, None).process_tokens(torch.arange(512), make_key=False)
    names = [str(name) for _, _, name in chunks]
    try:
        check_hash_seed(algorithm)
        print("@@", json.dumps([algorithm, False, names]))
    except Exception as error:
        print("@@", json.dumps([algorithm, True, names]))
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    environment |= {"PYTHONPATH": str(ROOT), "LMCACHE_TRACK_USAGE": "false"}
    environment |= {} if seed is None else {"PYTHONHASHSEED": seed}
    processes = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = []
    for process in processes:
        lines, _ = process.communicate(timeout=600)
        assert process.returncode == 0
        said.append([json.loads(line[2:]) for line in lines.splitlines() if line.startswith("@@")])
    assert [algorithm for algorithm, _, _ in said[0]] == ALGORITHMS
    for (algorithm, is_refused, names), (_, is_refused_too, other_names) in zip(*said, strict=True):
        assert is_refused == is_refused_too == (algorithm in refused)
        assert (names != other_names) == (algorithm in refused)


def test_chunks_of_other_weights_are_not_found(pool_settings: dict[str, object], tmp_path: Path) -> None:
    """LMCache knows the model's name alone, which other weights may have, too."""
    program = f"""
import asyncio, torch
from types import SimpleNamespace
from lmcache.utils import CacheEngineKey
from engines.lmcache import remote

def connector(model):
    one = object.__new__(remote.WeirRemoteConnector)
    metadata = SimpleNamespace(model_name=model, kv_shape=(2, 2, 256, 1, 8))
    one._form, one._weights, one._name = remote._form(metadata, "naive"), remote.begin_naming(metadata), None
    one._pool = SimpleNamespace(seal=remote_seal)
    try:
        one._weights.result(60)
    except Exception as error:
        print("@@", error)
    assert one._is_named()
    return one

from hostlib.protocol.seal import PUBLIC_SECRET, Seal
remote_seal = Seal(0, PUBLIC_SECRET)
for model in {[str(tmp_path / name) for name in ("one", "same", "other", "nothing", "nothing")]!r}:
    key = CacheEngineKey("the same name", 1, 0, 7, torch.float32)
    print("@@", connector(model)._block(key).key.hex())
"""
    for name, content in (("one", b"1"), ("same", b"1"), ("other", b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(content)
    time.sleep(0.05)  # a process's start is known to a tick of 10 ms
    said = run(tmp_path, pool_settings, program)
    keys = [line for line in said.splitlines() if line.startswith("@@") and " is neither " not in line]
    assert len(keys) == 5, said
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


def test_what_callers_write_into_their_tags_is_no_other_name(tmp_path: Path) -> None:
    """LMCache keeps tenants apart by tags, but writes different tags as one and the same text."""
    program = """
import torch
from types import SimpleNamespace
from lmcache.utils import CacheEngineKey
from engines.lmcache import remote
from hostlib.protocol.seal import PUBLIC_SECRET, Seal

one = object.__new__(remote.WeirRemoteConnector)
one._form, one._name, one._pool = "", "weights", SimpleNamespace(seal=Seal(0, PUBLIC_SECRET))

def key(**tags):
    tags = {f"lmcache.tag.{name}": value for name, value in tags.items()}
    return CacheEngineKey("a/model", 1, 0, 7, torch.float32, {"lmcache.skip_save": False, **tags})

keys = [key(user="a", role="admin"), key(user="a@role%admin"), key(user="a"), key()]
keys += key(user="a").split_layers(2)
print("@@", keys[0].to_string() == keys[1].to_string(), len({one._block(key).key for key in keys}))
same = CacheEngineKey("a/model", 1, 0, 7, torch.float32, {"lmcache.tag.user": "a"})
print("@@", one._block(keys[2]) == one._block(same))
"""
    said = [line for line in run(tmp_path, {}, program).splitlines() if line.startswith("@@")]
    assert said == ["@@ True 6", "@@ True"]
