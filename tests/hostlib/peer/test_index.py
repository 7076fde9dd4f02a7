"""The index as nodes see it, and what it does with those that are none."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hostlib.peer.index import IndexConfig, IndexProcess
from hostlib.process.config import load_config
from hostlib.process.lines import to_line
from hostlib.protocol.errors import ConfigError
from tests.asynchronous import in_real_time, until
from tests.hostlib.lenders import index, known
from tests.hostlib.world import key

A, B = NODES = ["10.0.0.1", "10.0.0.2"]
HELD = {"held": [key(1).hex()]}
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def say(folder: Path, *messages: dict[str, Any]) -> Connection:
    reader, writer = await asyncio.open_unix_connection(str(folder / "index"))
    writer.write(b"".join(map(to_line, messages)))
    return reader, writer


async def ended(connection: Connection) -> None:
    reader, writer = connection
    assert await asyncio.wait_for(reader.read(), 60) == b""
    writer.close()


def test_a_question_is_answered_with_its_number(tmp_path: Path) -> None:
    async def main(served: IndexProcess) -> None:
        holder = await say(tmp_path, {"node": B}, HELD)
        await known(served, 1)
        reader, writer = await say(tmp_path, {"node": A}, {"find": [key(1).hex(), key(2).hex()], "number": 7})
        said = json.loads(await asyncio.wait_for(reader.readline(), 60))
        assert said == {"number": 7, "nodes": [B], "waits_s": {B: 0.0}}
        assert served.report() == {
            "blocks": 1, "refused": 0, "questions": 1, "asked": 2, "located": 1, "promised": 0,
        }  # fmt: skip
        for _, each in (holder, (reader, writer)):
            each.close()

    asyncio.run(_with(tmp_path, main))


@pytest.mark.parametrize(
    "messages",
    [
        [HELD],
        [{"node": "10.9.9.9"}],
        [{"node": [B]}],
        [{"node": A}, {"held": ["zz"]}],
        [{"node": A}, {"held": [key(1).hex()[:-2]]}],
        [{"node": A}, {"gone": 3}],
        [{"node": A}, {"find": {"a": 1}}],
        [{"node": A}, {"promised": [A]}],
        [{"node": A}, {"promised": {"10.9.9.9": 1}}],
    ],
)
def test_who_says_what_cannot_be_is_not_listened_to_and_lends_nothing(
    tmp_path: Path, messages: list[dict[str, Any]]
) -> None:
    async def main(served: IndexProcess) -> None:
        await ended(await say(tmp_path, *messages))
        await until(lambda: served.report()["refused"] == 1)
        assert served.report()["blocks"] == 0
        _, writer = await say(tmp_path, {"node": A}, HELD)  # the index goes on, and the node may come again
        await known(served, 1)
        writer.close()

    asyncio.run(_with(tmp_path, main))


def test_nobody_speaks_for_a_node_that_is_there(tmp_path: Path) -> None:
    async def main(served: IndexProcess) -> None:
        _, writer = await say(tmp_path, {"node": A}, HELD)
        await known(served, 1)
        await ended(await say(tmp_path, {"node": A}, {"gone": HELD["held"]}))
        assert served.report()["blocks"] == 1
        writer.close()
        await known(served, 0)

    asyncio.run(_with(tmp_path, main))


async def _with(folder: Path, main: Any) -> None:
    async with index(folder, NODES) as served:
        await main(served)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nodes": []}, "nodes must name at least one node"),
        ({"nodes": [A, A]}, "each once"),
        ({"nodes": ["here"]}, "nodes: "),
        ({"link_bit_s": 0}, "link_bit_s must be above 0"),
        ({"block_fragments": 0}, "block_fragments must be above 0"),
    ],
)
def test_a_bad_configuration_is_one_clear_error(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    given = {"result": "r", "socket": "s", "nodes": NODES, "block_fragments": 32, "link_bit_s": 1e6}
    (tmp_path / "index.json").write_text(json.dumps(given | changes))
    with pytest.raises(ConfigError, match=said):
        load_config(IndexConfig, tmp_path / "index.json")


@in_real_time
async def test_a_socket_that_cannot_be_is_a_clear_error(tmp_path: Path) -> None:
    config = IndexConfig(
        result="r", socket=str(tmp_path / "no" / "s"), nodes=NODES, block_fragments=32, link_bit_s=1e6
    )
    with pytest.raises(ConfigError, match="socket: "):
        IndexProcess(config)
