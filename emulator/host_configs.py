"""Configuration files of a scenario's hosts: workers, storage nodes, router and index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from emulator.scenario import Scenario
from hostlib.process.observe import OBSERVE_S
from hostlib.protocol.members import Members
from hostlib.protocol.wire import fingerprint
from workload.compression import NONE
from workload.generate import to_line
from workload.levels import ADAPTIVE
from workload.schedule import CONDUCTOR

SSD_BLOCKS = 100_000
Preloads = Mapping[str, Sequence[tuple[bytes, int]]]
"""Blocks that hosts which answer GETs hold from the start: keys with numbers of fragments, by address."""
OBSERVATIONS_PER_S = 640.0
"""Looks at timers per second by all hosts together: each wakes a process, which costs 70 us of CPU."""
SeenBy = Callable[[str, Path], Path]
"""Function that returns where a host finds the file at a path of this machine (topologies.running)."""
ROUTER, INDEX = "router", "index"
"""Names of the processes and files of router and index; no host has them."""


def write_host_configs(
    scenario: Scenario,
    directory: Path,
    kv_file: Path | None = None,
    seen_by: SeenBy = lambda name, path: path,
) -> dict[str, Path]:
    """Write a configuration file for every host, the router and the index, with the files that they name.

    Returns the paths by name. `kv_file` has the content of blocks if it is real KV (emulator.real_kv). Files
    of a host are named NAME.* here, and in the configuration as that host sees them.
    """
    homes = [str(scenario.fabric.hosts[name].ipv4) for name in scenario.fabric.answering]
    lends = scenario.options.lends
    preloads = _spread(scenario, homes) if lends else _preloads(scenario, homes)
    paths = {}
    for name, endpoint in scenario.fabric.hosts.items():
        common = {
            "address": str(endpoint.ipv4),
            "result": str(seen_by(name, directory / f"{name}.result.json")),
            "homes": homes,
            "replicas": scenario.options.storage.replicas,
            # Nodes that lend memory all stay, so none has to be told which nodes there are.
            "controller": None if lends else str(scenario.fabric.controller_of(name).ipv4),
            "kv_file": None if kv_file is None else str(kv_file),
            "observe_s": max(OBSERVE_S, len(scenario.fabric.hosts) / OBSERVATIONS_PER_S),
        }
        is_node = name in scenario.shares
        specific = (_worker if is_node else _store)(scenario, name, directory, seen_by)
        if name in scenario.fabric.answering:
            keys = directory / f"{name}.keys"
            keys.write_text(_held(scenario, preloads[str(endpoint.ipv4)]))
            specific["preload"] = str(seen_by(name, keys))
        paths[name] = directory / f"{name}.json"
        paths[name].write_text(json.dumps(common | specific, indent=1))
    if scenario.options.workload.scheduler == CONDUCTOR:
        paths[ROUTER] = _router(scenario, homes, preloads, directory)
    if lends:
        paths[INDEX] = _index(scenario, homes, directory)
    return paths


def router_socket(scenario: Scenario, directory: Path) -> Path | None:
    """Return the path of the socket of a run's router; None if there is no router."""
    return directory / ROUTER if scenario.options.workload.scheduler == CONDUCTOR else None


def _index_socket(scenario: Scenario, directory: Path) -> Path | None:
    """Return the path of the socket of a run's index; None if there is no index."""
    return directory / INDEX if scenario.options.lends else None


def _index(scenario: Scenario, homes: list[str], directory: Path) -> Path:
    path = directory / f"{INDEX}.json"
    given = {
        "socket": str(_index_socket(scenario, directory)),
        "nodes": homes,
        "block_fragments": scenario.sizes.mean_fragments,
        "link_bit_s": scenario.fabric.link_rate_bit_s(scenario.fabric.nodes[0]),
        "result": str(directory / f"{INDEX}.result.json"),
    }
    path.write_text(json.dumps(given, indent=1))
    return path


def _router(scenario: Scenario, homes: list[str], preloads: Preloads, directory: Path) -> Path:
    trace, stored, path = (directory / f"{ROUTER}.{kind}" for kind in ("trace.jsonl", "keys", "json"))
    trace.write_text("".join(f"{to_line(request)}\n" for request in scenario.trace.requests))
    stored.write_text("".join(f"{key.hex()}\n" for held in preloads.values() for key, _ in held))
    specific = {
        "socket": str(router_socket(scenario, directory)),
        "nodes": list(scenario.fabric.nodes),
        "homes": homes,
        "replicas": scenario.options.storage.replicas,
        "trace": str(trace),
        "stored": str(stored),
        "ttft_slo_s": scenario.options.workload.ttft_slo_s,
        "seed": scenario.options.workload.seed,
        "link_bit_s": scenario.fabric.link_rate_bit_s(scenario.fabric.nodes[0]),
        "result": str(directory / f"{ROUTER}.result.json"),
    }
    path.write_text(json.dumps(_serving(scenario) | specific, indent=1))
    return path


def _serving(scenario: Scenario) -> dict[str, object]:
    """Return the settings of the model that nodes and router need."""
    return {
        "block_tokens": scenario.trace.block_tokens,
        "model": scenario.options.model_choice.preset,
        "gpu": scenario.options.model.gpu,
        "sigma": scenario.scale.sigma,
        "speed": scenario.scale.speed,
        "codec": scenario.options.model.codec,
        "level": scenario.options.model.level,
        "coder": scenario.options.model.coder,
    }


def _worker(scenario: Scenario, name: str, directory: Path, seen_by: SeenBy) -> dict[str, object]:
    trace = directory / f"{name}.trace.jsonl"
    trace.write_text("".join(f"{to_line(request)}\n" for request in scenario.shares[name]))
    options = scenario.options
    router, index = router_socket(scenario, directory), _index_socket(scenario, directory)
    tenant = scenario.tenants.get(name)
    of_tenant = {} if tenant is None else {"tenant": tenant.number, "secret": tenant.secret}
    return {
        **of_tenant,
        "trace": str(seen_by(name, trace)),
        "gpu_blocks": options.gpu_blocks,
        "dram_blocks": options.dram_blocks,
        "tiers": options.nodes.tiers,
        "gate": options.gate and options.fetch and options.model.level != ADAPTIVE,
        "hints": options.hints,
        "ttft_slo_s": options.workload.ttft_slo_s,
        "fetch": options.fetch,
        "link_bit_s": scenario.fabric.link_rate_bit_s(name),
        "push": options.control.push,
        "joins_s": scenario.joins_s if name in scenario.joining else None,
        "blend": options.nodes.blend,
        "blend_share": options.nodes.blend_share,
        "expects": options.control.expects,
        "record_blocks": options.emulation.traces,
        "durable": options.storage.durable,
        "router": None if router is None else str(router),
        "index": None if index is None else str(index),
        "name": name,
        **_serving(scenario),
    }


def _store(scenario: Scenario, name: str, directory: Path, seen_by: SeenBy) -> dict[str, object]:
    return {
        "block_bytes": scenario.block_bytes,
        "dram_bytes": scenario.options.store_blocks * scenario.block_bytes,
        "ssd_dir": str(seen_by(name, directory / f"{name}.ssd")),
        "ssd_bytes": SSD_BLOCKS * scenario.block_bytes,
        "ssd_bytes_per_s": scenario.scale.rate_bit_s(scenario.options.storage.ssd_gbyte_s * 1e9),
        "read_ahead_blocks": scenario.options.storage.read_ahead,
        "link_bit_s": scenario.fabric.link_rate_bit_s(name),
    }


def _held(scenario: Scenario, held: Sequence[tuple[bytes, int]]) -> str:
    """Return the text of a host's preload file, with lengths if a codec makes blocks differ."""
    if scenario.options.model.codec == NONE:
        return "".join(f"{key.hex()}\n" for key, _ in held)
    unit = scenario.scale.fragment_bytes
    return "".join(f"{key.hex()} {fragments * unit}\n" for key, fragments in held)


def _preloads(scenario: Scenario, homes: list[str]) -> Preloads:
    """Return the blocks of the past that each store holds at the start, least recently used first.

    With tenants they hold nothing: a storage node has no secret to name and seal blocks with.
    """
    if scenario.tenants:
        return {home: [] for home in homes}
    held: dict[str, list[tuple[bytes, int]]] = {home: [] for home in homes}
    members, sizes = Members.of(homes, scenario.options.storage.replicas), scenario.sizes
    for stored in (stored for key in _past(scenario) for stored in sizes.stored(key)):
        for home in members.homes(stored[0]):
            held[home.address].append(stored)
    return held


def _spread(scenario: Scenario, homes: list[str]) -> Preloads:
    """Return the blocks of the past that each lending node holds at the start.

    They are spread by their keys over the nodes that are there from the start, as in the simulator.
    """
    held: dict[str, list[tuple[bytes, int]]] = {home: [] for home in homes}
    there = len(homes) - scenario.options.nodes.joining
    for key in _past(scenario):
        home = homes[fingerprint(key) % there]
        held[home] += scenario.sizes.stored(key)
    return held


def _past(scenario: Scenario) -> Iterable[bytes]:
    """Return the keys of the past's blocks, least recently used first."""
    keys = scenario.key_space
    recency: dict[bytes, None] = {}
    for request in scenario.trace.past:
        chunks = keys.chunks(request.chunks) if scenario.options.nodes.blend else ()
        for key in (*keys.chain(request.blocks), *(key for key in chunks if key is not None)):
            recency.pop(key, None)
            recency[key] = None
    return recency
