"""Connectors as the suite configures them, and what it does to Weir's and vLLM's stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.conformance.connectors import CONNECTORS, Given
from engines.conformance.connectors.vllm import Example
from engines.conformance.connectors.weir import Weir
from engines.conformance.outcome import LeftOut
from hostlib.engine import Item, KvSpace, PoolConfig, open_pool
from hostlib.engine.blocking import BlockingPool
from tests.hostlib.loopback import own_address

SPACE = KvSpace(name="m", model="w", layout="l", dtype="f", block_tokens=16, object_bytes=(4096,))
BLOCKS = 40


@pytest.fixture
def weir(tmp_path: Path) -> Iterator[Weir]:
    connector = Weir(tmp_path)
    connector.start()
    try:
        yield connector
    finally:
        connector.resume()
        connector.stop()


@pytest.fixture
def pool(weir: Weir) -> Iterator[BlockingPool]:
    homes = weir.transfer()["kv_connector_extra_config"]["homes"]
    opened = open_pool(
        PoolConfig.from_mapping({"address": own_address(), "homes": homes, "retry_s": 0.1}), SPACE
    )
    try:
        yield opened
    finally:
        opened.close()


def stored(pool: BlockingPool) -> list[list[bytes]]:
    """Blocks that follow none, so that each is found by itself."""
    chains = [
        list(SPACE.block_keys(pool.seal, list(range(16 * number, 16 * number + 16))))
        for number in range(BLOCKS)
    ]
    for chain in chains:
        (reference,) = pool.blocks.references(chain, 0)
        assert pool.begin_store_blocks([[Item(reference, bytes(4096))]]).result(60) == 1
    return chains


def found(pool: BlockingPool, chains: list[list[bytes]]) -> int:
    return sum(pool.exists(chain) for chain in chains)


def test_half_of_weirs_objects_can_be_lost(weir: Weir, pool: BlockingPool) -> None:
    chains = stored(pool)
    assert found(pool, chains) == BLOCKS
    lost = weir.lose_half()
    assert BLOCKS // 4 < lost < 3 * BLOCKS // 4
    assert found(pool, chains) == BLOCKS - lost


def test_weirs_store_comes_back_empty_at_its_address(weir: Weir, pool: BlockingPool) -> None:
    chains = stored(pool)
    weir.restart_empty()
    assert found(pool, chains) == 0


def test_each_engine_of_weirs_has_its_own_address(weir: Weir) -> None:
    addresses = {weir.transfer()["kv_connector_extra_config"]["address"] for _ in range(3)}
    assert len(addresses) == 3


def test_files_of_vllms_connectors_are_lost_and_removed(tmp_path: Path) -> None:
    example = Example(tmp_path)
    example.start()
    for number in range(20):
        (example.files / f"{number}.safetensors").write_bytes(b"kv")
    lost = example.lose_half()
    assert 0 < lost < 20
    assert len(list(example.files.iterdir())) == 20 - lost
    example.restart_empty()
    assert not list(example.files.iterdir())


def test_what_a_store_can_not_do_leaves_the_case_out(tmp_path: Path) -> None:
    example = Example(tmp_path)
    with pytest.raises(LeftOut, match="fall silent"):
        example.silence()


def test_only_a_connectors_own_warnings_are_its_messages(tmp_path: Path) -> None:
    log = "\n".join(
        (
            "WARNING 11-26 03:04:05 [cpu.py:10] Environment variable is not set",
            "INFO 11-26 03:04:05 [example_connector.py:90] Shared storage path",
            "WARNING 11-26 03:04:05 [example_connector.py:90] not stored",
        )
    )
    assert Example(tmp_path).messages(log) == ["WARNING 11-26 03:04:05 [example_connector.py:90] not stored"]


def test_a_given_configuration_is_filled_in(tmp_path: Path) -> None:
    config = {
        "kv_connector": "Mine",
        "kv_connector_extra_config": {"paths": ["{folder}/x"], "port": "90{number}"},
    }
    given = Given(tmp_path, config)
    given.transfer()
    assert given.transfer()["kv_connector_extra_config"] == {"paths": [f"{tmp_path}/x"], "port": "902"}


@pytest.mark.parametrize("name", CONNECTORS)
def test_every_connector_recomputes_what_can_not_be_loaded(name: str, tmp_path: Path) -> None:
    connector = CONNECTORS[name](tmp_path)
    if name == "lmcache":
        connector._port = 1  # type: ignore[attr-defined] # as start() chooses it
    if name.startswith("weir"):
        connector._address = own_address()  # type: ignore[attr-defined] # as start() chooses it
    transfer = connector.transfer()
    assert transfer["kv_load_failure_policy"] == "recompute"
    assert transfer["kv_role"] == "kv_both"
    assert connector.version
