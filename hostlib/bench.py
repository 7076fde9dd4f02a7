"""How fast hosts are: blocks requested, received and checked over UDP on the loopback interface.

    python -m hostlib.bench [--blocks N] [--block-bytes N] [--chain N]

One process serves and one fetches, so that the CPU time of each end is its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import time
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from hostlib.block import Place
from hostlib.client import Client
from hostlib.client_options import ClientOptions
from hostlib.content import derivation
from hostlib.endpoint import UdpEndpoint
from hostlib.health import HealthOptions
from hostlib.members import Members
from hostlib.observe import percentile
from hostlib.seal import PUBLIC_SECRET, Seal
from hostlib.storage_node import StorageNode
from hostlib.store import BlockStore
from hostlib.transfer import BlockRef
from hostlib.wire import TENANT_PUBLIC, fragment_count

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_PLACE = f"{os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
HOME = f"127.253.{_PLACE}"  # benchmarks that run at the same time don't meet
NODE = f"127.254.{_PLACE}"
SEAL = Seal(TENANT_PUBLIC, PUBLIC_SECRET)


def bench_keys(count: int) -> list[bytes]:
    """Keys as good as any."""
    return [blake2b(number.to_bytes(8, "big"), digest_size=16).digest() for number in range(count)]


def serve(pipe: Connection, keys: list[bytes], block_bytes: int) -> None:
    """The storage end: announce readiness, serve until told to stop, report the CPU seconds used."""

    async def main() -> None:
        store = BlockStore(len(keys) * block_bytes, None, derivation(SEAL))
        places = [Place(TENANT_PUBLIC, key) for key in keys]
        store.preload(places, block_bytes)
        for place in places:  # derive the contents before the clock runs
            store.get(place)
        endpoint = UdpEndpoint(HOME)
        StorageNode(endpoint, store)
        started_s = time.process_time()
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_reader(pipe.fileno(), stopped.set)
        pipe.send(None)
        await stopped.wait()
        pipe.send(time.process_time() - started_s)
        endpoint.close()

    asyncio.run(main())


async def fetch(keys: list[bytes], block_bytes: int, blocks: int, chain: int) -> dict[str, Any]:
    """The node's end: `blocks` blocks in chains of `chain`, one chain after the other."""
    endpoint = UdpEndpoint(NODE)
    patient = ClientOptions(health=HealthOptions(silence_s=10.0))  # a busy machine is no dead home
    client = Client(endpoint, Members.of([HOME]), SEAL, patient)
    started_s, started_cpu_s = time.perf_counter(), time.process_time()
    fetched = 0
    while fetched < blocks:
        refs = [BlockRef(keys[(fetched + at) % len(keys)], at, chain) for at in range(chain)]
        result = await client.get_chain(refs)
        if result.ended_by:
            raise result.ended_by
        fetched += len(result.blocks)
    wall_s, cpu_s = time.perf_counter() - started_s, time.process_time() - started_cpu_s
    endpoint.close()
    fragments = fetched * fragment_count(block_bytes)
    return {
        "blocks_per_s": round(fetched / wall_s),
        "fragments_per_s": round(fragments / wall_s),
        "client_us_per_fragment": round(1e6 * cpu_s / fragments, 2),
        "get_ms": {
            f"p{share}": round(1000 * percentile(client.get_latencies_s, share / 100), 2)
            for share in (50, 99)
        },
        "retransmits": client.stats.retransmits,
        "socket_drops": endpoint.stats.socket_drops,
        "fragments": fragments,
    }


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m hostlib.bench", description=__doc__)
    parser.add_argument("--blocks", type=int, default=4000)
    parser.add_argument("--block-bytes", type=int, default=16384)
    parser.add_argument("--chain", type=int, default=16)
    options = parser.parse_args(arguments)
    keys = bench_keys(256)
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs, keys, options.block_bytes), daemon=True)
    server.start()
    ours.recv()
    result = asyncio.run(fetch(keys, options.block_bytes, options.blocks, options.chain))
    ours.send(None)
    result["storage_us_per_fragment"] = round(1e6 * float(ours.recv()) / result["fragments"], 2)
    server.join()
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
