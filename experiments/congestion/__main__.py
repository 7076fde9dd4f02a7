"""make congestion: many storage nodes answer one node, one storage node answers many, and both at once.

Each node asks for all of its blocks at the same moment, over links whose queues at the switch hold 64
packets, with the pool and without. Goals: loss below 1 %, Jain's index 0.95 or more, throughput within 10 %
of the link, and hits that do not wait for a home that is busy with others. Needs root.
"""

from __future__ import annotations

import contextlib
import json
import queue
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Variable, Within
from commands.options import read
from controller.config import Config, PoolSize, Thresholds
from emulator.control_plane import stand_behind, start_controller, switch_configs
from emulator.machine import CpuWatch
from emulator.processes import READY_TIMEOUT_S, Events, LineProcess, wait_for
from emulator.result import PROGRAM, revision
from experiments.congestion.page import write_page
from experiments.congestion.patterns import HITS, PATTERNS, Group, Keys, groups
from experiments.congestion.result import Burst, Point, evaluate
from experiments.logs import open_network
from topologies.engines import Artifacts, Embedded
from topologies.machine_check import check_machine
from topologies.network import Network
from topologies.registry import make_topology

MODES = ("none", "both")
POOL_BLOCKS = 2048
DEADLINE_S = 30.0
SILENCE_S = 120.0
START_DELAY_S = 0.2
PAUSE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class CongestionOptions:
    """In the order of `OPTIONS`."""

    patterns: tuple[Annotated[str, OneOf(PATTERNS)], ...] = PATTERNS
    """Who asks whom."""
    modes: tuple[Annotated[str, OneOf(MODES)], ...] = MODES
    """None: the switch forwards; both: it merges and pools."""
    nodes: Annotated[int, Within(2, 63)] = 16
    """Nodes."""
    stores: Annotated[int, Within(2, 60)] = 8
    """Storage nodes."""
    blocks: Annotated[int | None, Within(1, 1000)] = None
    """Blocks of each node's flow; default: 8 for every 5 Mbit/s, at most 32."""
    fragments: Annotated[int, Within(1, 256)] = 16
    """Of 512 bytes, in a block."""
    link_mbit_s: Annotated[float, Within(0.1, 10_000), Variable("LINK_MBIT")] = 5.0
    """Rate of each link, Mbit/s."""
    queue_packets: Annotated[int, Within(4, 10_000), Variable("QUEUE")] = 64
    """Packets that the queue of each of the switch's ports holds."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Of the keys."""
    results: Path = Path("results/congestion")
    """Folder for summary.json."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: all goals are met; 1: not; 2: it could not run."""
    return run_command(
        arguments,
        lambda given: read(CongestionOptions, given, "weir congestion", __doc__ or ""),
        _run,
    )


def _run(screen: Screen, options: CongestionOptions) -> int:
    check_machine()
    points = play(screen, options)
    options.results.mkdir(parents=True, exist_ok=True)
    about = _about(options)
    said = [asdict(point) | {"missed": point.missed_goals()} for point in points]
    (options.results / "summary.json").write_text(json.dumps(about | {"points": said}, indent=1) + "\n")
    _show(screen, points)
    screen.say(f"To look at: {write_page(options.results, about, points)}")
    return 1 if any(point.missed_goals() for point in points) else 0


def _about(options: CongestionOptions) -> dict[str, object]:
    return {
        "engine": Embedded.name,
        "revision": revision(),
        "seed": options.seed,
        "nodes": options.nodes,
        "stores": options.stores,
        "link_mbit_s": options.link_mbit_s,
        "queue": options.queue_packets,
    }


def _pool_size(options: CongestionOptions) -> PoolSize:
    return PoolSize(POOL_BLOCKS, POOL_BLOCKS * options.fragments, options.fragments)


def play(screen: Screen, options: CongestionOptions) -> list[Point]:
    """Play all patterns in all modes, on one network, and return their points."""
    rate_bit_s = 1e6 * options.link_mbit_s
    fabric = make_topology("star", rate_bit_s, options.nodes, options.stores)
    engine = Embedded()
    points = []
    with (
        screen.status("compiling the P4 program") as show,
        open_network(
            screen, fabric, engine, options.results, _about(options), queue_packets=options.queue_packets
        ) as network,
    ):
        artifacts = network.compile(PROGRAM, _pool_size(options).defines)
        stores = {name: str(fabric.hosts[name].ipv4) for name in fabric.stores}
        keys = Keys(stores, options.seed)
        played = {
            (mode, pattern): groups(pattern, fabric.nodes, fabric.stores, keys, blocks_of(options))
            for mode in options.modes
            for pattern in options.patterns
            if mode == "both" or pattern != HITS
        }
        hosts = Hosts(network, options, list(played.values()))
        for mode in options.modes:
            with _controller(network, artifacts, options, mode, hosts.events):
                for pattern in options.patterns:
                    if (mode, pattern) in played:
                        show(f"{mode}, {pattern}")
                        points.append(_point(hosts, options, mode, pattern, played[mode, pattern]))
    return points


def blocks_of(options: CongestionOptions) -> int:
    """Return the blocks of each node's flow: with 16 nodes, 2 s of a shared link of up to 20 Mbit/s.

    Windows become even in some tens of round trips, and the pool has room for no more.
    """
    return options.blocks or max(1, min(32, round(8 * options.link_mbit_s / 5)))


def _point(
    hosts: Hosts, options: CongestionOptions, mode: str, pattern: str, asked: Sequence[Group]
) -> Point:
    """With a pool, the blocks are in it when it counts; of `hits_beside`, those of the first group alone."""
    alone = None
    if mode == "both":
        for _ in range(2):
            hosts.burst(asked[:1] if pattern == HITS else asked)
    if pattern == HITS:
        alone = hosts.burst(asked[:1])
    burst = hosts.burst(asked)
    return evaluate(pattern, mode, asked, burst, options.fragments, 1e6 * options.link_mbit_s, alone)


@contextlib.contextmanager
def _controller(
    network: Network, artifacts: Artifacts, options: CongestionOptions, mode: str, events: Events
) -> Iterator[None]:
    directory = network.directory / mode
    directory.mkdir()
    network.start_switches()
    try:
        size = _pool_size(options)
        config = Config(
            switches=switch_configs(network, artifacts, size),
            policy="lru",
            pool=mode == "both",
            merging=mode == "both",
            thresholds=Thresholds(report_count=1, fill="on_the_way"),
        )
        controller = start_controller(config, network, directory, events)
        wait_for("ready", [controller], events, READY_TIMEOUT_S)
        stand_behind(controller)
        yield
        controller.stop()
    finally:
        network.stop_switches()


class Hosts:
    """The processes of nodes and storage nodes."""

    def __init__(
        self, network: Network, options: CongestionOptions, asked: Sequence[Sequence[Group]]
    ) -> None:
        self.events: Events = queue.SimpleQueue()
        self._network, fabric = network, network.fabric
        block_bytes = 512 * options.fragments
        flows = [flow for groups_ in asked for group in groups_ for flow in group.flows]
        homes = [str(fabric.hosts[name].ipv4) for name in fabric.stores]
        self._lines: dict[str, LineProcess] = {}
        for name, endpoint in fabric.hosts.items():
            config: dict[str, object] = {
                "address": str(endpoint.ipv4),
                "result": str(network.directory / f"{name}.result.json"),
                "block_bytes": block_bytes,
            }
            if name in fabric.stores:
                held = [key.hex() for flow in flows if flow.store == name for key in flow.keys]
                listed = network.directory / f"{name}.keys"
                listed.write_text("".join(f"{key}\n" for key in held))
                config |= {"dram_bytes": max(1, len(held)) * block_bytes, "preload": str(listed)}
                config |= {"link_bit_s": 1e6 * options.link_mbit_s}
            else:
                config |= {"homes": homes, "pushed_blocks": 1, "deadline_s": DEADLINE_S}
            module = "hostlib.storage.storage" if name in fabric.stores else "experiments.incast.reader"
            self._lines[name] = self._start(name, module, config)
        wait_for("ready", self._lines.values(), self.events, READY_TIMEOUT_S)
        for store in fabric.stores:
            self._lines[store].send("start")

    def burst(self, asked: Sequence[Group]) -> Burst:
        """Have all ask at the same moment, and wait until all have got everything."""
        time.sleep(PAUSE_S)
        chains: dict[str, list[list[str]]] = {}
        for flow in (flow for group in asked for flow in group.flows):
            chains.setdefault(flow.node, []).append([key.hex() for key in flow.keys])
        drops = self._network.link_drops()
        watch = CpuWatch()
        watch.start()
        at_s = time.monotonic() + START_DELAY_S
        readers = [self._lines[node] for node in chains]
        for reader in readers:
            reader.send(json.dumps({"at_s": at_s, "chains": chains[reader.name], "push": False}))
        wait_for("finished", readers, self.events, SILENCE_S)
        reports: Mapping[str, dict[str, object]] = {one.name: one.said["finished"] for one in readers}
        return Burst(reports, self._network.link_drops() - drops, watch.stop().mean)

    def _start(self, name: str, module: str, config: dict[str, object]) -> LineProcess:
        path = self._network.directory / f"{name}.json"
        path.write_text(json.dumps(config))
        command = [sys.executable, "-m", module, str(path)]
        log = self._network.directory / f"{name}.log"
        return LineProcess(name, command, log, partial(self._network.popen, name), self.events)


def _show(screen: Screen, points: Sequence[Point]) -> None:
    table = Table(
        "pattern", "mode", "pool", "loss", "Jain", "of the link", "p99, ms", "again", "hits p99, ms", "CPU"
    )
    for one in points:
        hits = " → ".join(f"{ms:.0f}" for ms in one.hits_p99_ms) if one.hits_p99_ms else ""
        table.add_row(
            one.pattern, one.mode, f"{one.from_pool:.0%}", f"{one.loss:.2%}", f"{one.jain:.3f}",
            f"{one.throughput:.0%}", f"{one.p99_ms:.0f}", str(one.retransmits), hits, f"{one.cpu:.0%}",
        )  # fmt: skip
    screen.show(table)
    for one in points:
        for goal in one.missed_goals():
            screen.show(f"[bold red]missed:[/] {one.pattern}, {one.mode}: {goal}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
