"""Benchmark of hosts: blocks requested, received and checked, or put, over UDP on the loopback interface.

    python -m hostlib.tools.bench [--blocks N] [--block-bytes N] [--chain N] [--link-mbit-s RATE]
        [--receive-one-by-one] [--send-one-by-one] [--put] [--pause-ms N]

One process serves and one fetches, so that the CPU time of each end is its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import sys
import time
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from hostlib.client.client import Client
from hostlib.client.client_options import ClientOptions
from hostlib.client.health import HealthOptions
from hostlib.process.observe import percentile
from hostlib.protocol.block import Place
from hostlib.protocol.content import derivation
from hostlib.protocol.members import Members
from hostlib.protocol.seal import PUBLIC_SECRET, Seal
from hostlib.protocol.transfer import BlockRef
from hostlib.protocol.wire import TENANT_PUBLIC, fragment_count
from hostlib.storage.storage_node import StorageNode
from hostlib.storage.store import BlockStore
from hostlib.transport.endpoint import EndpointOptions, UdpEndpoint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

_PLACE = f"{os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
HOME = f"127.253.{_PLACE}"  # benchmarks that run at the same time don't meet
NODE = f"127.254.{_PLACE}"
BLOCKS_KEPT = 256
SEAL = Seal(TENANT_PUBLIC, PUBLIC_SECRET)


def bench_keys(count: int) -> list[bytes]:
    """Return keys as good as any."""
    return [blake2b(number.to_bytes(8, "big"), digest_size=16).digest() for number in range(count)]


def cpu_times() -> tuple[float, float]:
    """Return CPU seconds of this process until now: all, and the kernel's part."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_stime


def cpu_since(before: tuple[float, float]) -> tuple[float, float]:
    """Return the CPU time since then."""
    now = cpu_times()
    return now[0] - before[0], now[1] - before[1]


def serve(pipe: Connection, keys: list[bytes], block_bytes: int, endpoint_options: EndpointOptions) -> None:
    """Run the storage end: announce readiness, serve until told to stop, report the CPU seconds used."""

    async def main() -> None:
        store = BlockStore(BLOCKS_KEPT * block_bytes, None, derivation(SEAL))
        places = [Place(TENANT_PUBLIC, key) for key in keys]
        store.preload(places, block_bytes)
        for place in places:  # derive the contents before the clock runs
            store.get(place)
        endpoint = UdpEndpoint(HOME, endpoint_options)
        StorageNode(endpoint, store)
        before = cpu_times()
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_reader(pipe.fileno(), stopped.set)
        pipe.send(None)
        await stopped.wait()
        pipe.send(cpu_since(before))
        endpoint.close()

    asyncio.run(main())


async def fetch(
    keys: list[bytes],
    block_bytes: int,
    blocks: int,
    chain: int,
    endpoint_options: EndpointOptions,
    pause_s: float = 0.0,
) -> dict[str, Any]:
    """Fetch, as the node's end, `blocks` blocks in chains of `chain`, one after the other, a pause before
    each."""
    endpoint = UdpEndpoint(NODE, endpoint_options)
    patient = ClientOptions(health=HealthOptions(silence_s=10.0))  # a busy machine is no dead home
    client = Client(endpoint, Members.of([HOME]), SEAL, patient)
    started_s, before = time.perf_counter(), cpu_times()
    fetched = 0
    while fetched < blocks:
        if pause_s:
            await asyncio.sleep(pause_s)
        refs = [BlockRef(keys[(fetched + at) % len(keys)], at, chain) for at in range(chain)]
        result = await client.get_chain(refs)
        if result.ended_by:
            raise result.ended_by
        fetched += len(result.blocks)
    latencies_s = client.get_latencies_s
    return _result(client, endpoint, fetched, block_bytes, started_s, before, latencies_s)


async def put(
    keys: list[bytes], block_bytes: int, chain: int, endpoint_options: EndpointOptions
) -> dict[str, Any]:
    """Put, as the node's end, a block for each key, `chain` of them at a time."""
    endpoint = UdpEndpoint(NODE, endpoint_options)
    patient = ClientOptions(health=HealthOptions(silence_s=10.0))
    client = Client(endpoint, Members.of([HOME]), SEAL, patient)
    content = bytes(block_bytes)
    latencies_s: list[float] = []

    async def put_one(ref: BlockRef) -> None:
        began_s = time.perf_counter()
        await client.put(ref, content)
        latencies_s.append(time.perf_counter() - began_s)

    started_s, before = time.perf_counter(), cpu_times()
    for first in range(0, len(keys), chain):
        some = keys[first : first + chain]
        await asyncio.gather(*(put_one(BlockRef(key, at, chain)) for at, key in enumerate(some)))
    return _result(client, endpoint, len(keys), block_bytes, started_s, before, latencies_s)


def _result(
    client: Client,
    endpoint: UdpEndpoint,
    blocks: int,
    block_bytes: int,
    started_s: float,
    before: tuple[float, float],
    latencies_s: Sequence[float],
) -> dict[str, Any]:
    """Return the results of one run: speed, latencies, and the CPU time that the node's process used."""
    wall_s, (cpu_s, kernel_s) = time.perf_counter() - started_s, cpu_since(before)
    endpoint.close()
    fragments = blocks * fragment_count(block_bytes)
    return {
        "blocks_per_s": round(blocks / wall_s),
        "fragments_per_s": round(fragments / wall_s),
        "client_us_per_fragment": round(1e6 * cpu_s / fragments, 2),
        "client_kernel_us_per_fragment": round(1e6 * kernel_s / fragments, 2),
        "block_ms": {
            f"p{share}": round(1000 * percentile(latencies_s, share / 100), 2) for share in (50, 99)
        },
        "retransmits": client.stats.retransmits,
        "socket_drops": endpoint.stats.socket_drops,
        "fragments": fragments,
    }


def main(arguments: list[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m hostlib.tools.bench", description=__doc__)
    parser.add_argument("--blocks", type=int, default=4000)
    parser.add_argument("--block-bytes", type=int, default=16384)
    parser.add_argument("--chain", type=int, default=16)
    parser.add_argument(
        "--link-mbit-s", type=float, default=0, help="batches as on a link of this rate; 0: unlimited"
    )
    parser.add_argument("--receive-one-by-one", action="store_true", help="as behind a switch")
    parser.add_argument("--send-one-by-one", action="store_true", help="as there before Linux 6.11")
    parser.add_argument("--put", action="store_true", help="put each block instead of fetching it")
    parser.add_argument(
        "--pause-ms", type=float, default=0, help="before each chain that is fetched, as under little load"
    )
    options = parser.parse_args(arguments)
    keys = bench_keys(options.blocks if options.put else BLOCKS_KEPT)
    preloaded = [] if options.put else keys
    endpoint_options = replace(
        EndpointOptions.of_link(1e6 * options.link_mbit_s),
        sends_together=not options.send_one_by_one,
        receives_together=not options.receive_one_by_one,
    )
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(
        target=serve, args=(theirs, preloaded, options.block_bytes, endpoint_options), daemon=True
    )
    server.start()
    ours.recv()
    if options.put:
        result = asyncio.run(put(keys, options.block_bytes, options.chain, endpoint_options))
    else:
        result = asyncio.run(
            fetch(
                keys,
                options.block_bytes,
                options.blocks,
                options.chain,
                endpoint_options,
                options.pause_ms / 1000,
            )
        )
    ours.send(None)
    cpu_s, kernel_s = ours.recv()
    result["storage_us_per_fragment"] = round(1e6 * cpu_s / result["fragments"], 2)
    result["storage_kernel_us_per_fragment"] = round(1e6 * kernel_s / result["fragments"], 2)
    server.join()
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
