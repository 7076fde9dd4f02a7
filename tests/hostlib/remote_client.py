"""A client as a process: one JSON command a line on stdin, one JSON answer on stdout.

{"address": ..., "homes": [...], "replicas": R, "controller": ...}        first
{"put": [NUMBER, ...], "replicas": R} | {"get": [NUMBER, ...]} | {"members": true}
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.protocol.errors import TransferError
from hostlib.protocol.members import Members
from hostlib.transport.endpoint import UdpEndpoint
from tests.hostlib.sealed import SEAL
from tests.hostlib.world import content, ref

BLOCK_BYTES = 16_384


async def put(client: Client, number: int, replicas: int) -> str:
    try:
        await client.put(ref(number), content(number, BLOCK_BYTES), durable=True, replicas=replicas)
    except TransferError as error:
        return type(error).__name__
    return "held"


async def get(client: Client, number: int) -> str:
    try:
        block = await client.get(ref(number))
    except TransferError as error:
        return str(error)
    return "right" if block.content == content(number, BLOCK_BYTES) else "wrong"


async def obey(client: Client, command: dict[str, Any]) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    done: list[str] = []
    if "put" in command:
        done = await asyncio.gather(*(put(client, n, command["replicas"]) for n in command["put"]))
    elif "get" in command:
        done = await asyncio.gather(*(get(client, n) for n in command["get"]))
    members = [(node.address, node.state.name) for node in client.members.nodes]
    return {
        "event": "done",
        "results": done,
        "took_s": loop.time() - began_s,
        "epoch": client.members.epoch,
        "members": dict(members),
        "repeated": client.stats.retransmits,
    }


async def main() -> None:
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    setup = json.loads(await lines.readline())
    members = Members.of(setup["homes"], setup["replicas"])
    options = ClientOptions(controller=setup["controller"])
    client = Client(UdpEndpoint(setup["address"]), members, SEAL, options)
    print(json.dumps({"event": "ready"}), flush=True)
    while (line := await lines.readline()) and line.strip() != b"stop":
        print(json.dumps(await obey(client, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
