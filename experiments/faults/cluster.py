"""Cluster under load: nodes that read and write, storage nodes with disks, and a controller."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from controller.config import Config, PoolSize, Port, SwitchConfig, Thresholds
from emulator.control_plane import start_controller, switch_configs
from emulator.processes import READY_TIMEOUT_S, LineProcess, ProcessError, check_switches
from experiments.faults.children import POLL_S, kill, wait_for_event
from experiments.faults.faulty_disk import FaultyDisk
from experiments.faults.load import PUT_SHARE
from experiments.faults.wires import Wires, shimmed
from topologies.engines import Artifacts
from topologies.network import Network

TENANT = 7
SECRET = b"known to the loading nodes alone".hex()
REPLICAS = 2
POOL_BLOCKS = 1024
"""Number of blocks in the pool: more than are written, so that nothing is evicted."""
DRAM_BLOCKS = 32
"""Number of blocks in a storage node's DRAM: few, so that it reads most from its disk."""
SSD_BLOCKS = 20_000
MOST_PUTS = 8
"""Limit on a port's PUTs over the mean of what a node writes, which leaves room for bursts."""
UP_TIMEOUT_S = 60.0
WORK_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a cluster: its load, and which parts are special."""

    fragments: int
    rate_per_s: float
    seed: int
    own_blocks: int = 0
    """Number of blocks that each node puts again and again; 0: each PUT is of a new block."""
    disks: dict[str, Path] = field(default_factory=dict)
    """Folders of disks that are not in the cluster's own folder, by storage node."""
    intruder: str | None = None
    """Node that does not work, because it attacks."""
    insider: bool = False
    """Whether the intruder belongs to the others' tenant."""
    proxied: bool = False
    """Whether P4Runtime goes through proxies, which can hang."""
    faulty_disk: FaultyDisk | None = None
    """Disk of the first storage node, if it can fail on request."""

    @property
    def block_bytes(self) -> int:
        """Return the bytes of a block, whose last fragment is shorter than the others."""
        return self.fragments * 512 - 100

    @property
    def puts_per_s(self) -> int:
        """Return the limit on PUTs a second that an operator who knows this load sets for a node's port."""
        return round(MOST_PUTS * self.rate_per_s * PUT_SHARE * self.fragments)


class Cluster:
    """Cluster whose files are in `directory`.

    Call `start`, and `stop` in the end, also if `start` failed.
    """

    def __init__(
        self,
        network: Network,
        artifacts: Artifacts,
        plan: Plan,
        directory: Path,
        wires: Wires | None = None,
    ) -> None:
        self.wires = wires
        self.network, self.fabric, self.plan, self.directory = network, network.fabric, plan, directory
        self.artifacts = artifacts
        self._homes = [str(self.fabric.hosts[name].ipv4) for name in self.fabric.stores]
        self._controllers = 0
        self._controllers_and_stores: list[LineProcess] = []
        """All controllers and storage nodes that were started, also those that have ended."""
        self._children: list[LineProcess] = []
        """All processes that were started, also those that have ended."""
        self.proxies: list[LineProcess] = []
        self.stores: dict[str, LineProcess] = {}
        self.nodes: dict[str, LineProcess] = {}
        self.controller: LineProcess

    def start(self) -> None:
        """Start all parts, and wait until all storage nodes are up; raises ProcessError or CrashError."""
        self.network.start_switches()
        if self.plan.proxied:
            self.proxies = [self._start_proxy(name) for name in self.fabric.switches]
        wait_for_event("ready", self.proxies, READY_TIMEOUT_S)
        self.controller = self.start_controller()
        self.stores = {name: self.start_store(name) for name in self.fabric.stores}
        nodes = [name for name in self.fabric.nodes if name != self.plan.intruder]
        self.nodes = {name: self._start_node(name) for name in nodes}
        wait_for_event("ready", [*self.stores.values(), *self.nodes.values()], READY_TIMEOUT_S)
        self.until_up()

    def stop(self) -> None:
        """End everything but the network."""
        for process in self._children:
            kill(process)
        self.network.stop_switches()

    def play(self, at_s: float, seconds: float) -> None:
        """Let all nodes work for `seconds` from `at_s` (CLOCK_MONOTONIC), without waiting; see `played`."""
        for node in self.nodes.values():
            node.last_events.pop("played", None)
            node.send(json.dumps({"play": seconds, "at_s": at_s}))

    @property
    def evictions(self) -> int:
        """Return how many blocks pools evicted and storage nodes dropped, by their latest reports."""
        reports = [process.progress for process in self._controllers_and_stores]
        return sum(int(one.get("evicted", 0)) + int(one.get("ssd_dropped", 0)) for one in reports)

    @property
    def suspicions(self) -> int:
        """Return how often a living node suspected that a home had failed: the most of any node."""
        stats = [node.last_events["played"]["stats"] for node in self.alive_nodes()]
        return int(max((one["homes_suspected"] for one in stats), default=0))

    def played(self) -> list[dict[str, Any]]:
        """Wait until the living nodes have ended their operations; return these.

        Raises ProcessError, or CrashError if a switch has ended.
        """
        alive = self.alive_nodes()
        wait_for_event("played", alive, WORK_TIMEOUT_S)
        check_switches(self.network)
        files = (self.directory / f"{node.name}.records" for node in alive)
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def check(self) -> tuple[int, list[str]]:
        """Kill everything, start it again, and return how many blocks are wrong and which are lost.

        The pools begin empty, so what is read comes from disks.
        """
        for store in self.stores.values():
            kill(store)
        kill(self.controller)
        self.network.stop_switches()
        self.network.start_switches()
        self.controller = self.start_controller()
        self.stores = {name: self.start_store(name) for name in self.fabric.stores}
        wait_for_event("ready", self.stores.values(), READY_TIMEOUT_S)
        self.until_up()
        alive = self.alive_nodes()
        for node in alive:
            node.send(json.dumps({"check": True}))
        wait_for_event("checked", alive, WORK_TIMEOUT_S)
        checks = [node.last_events["checked"] for node in alive]
        return sum(one["wrong"] for one in checks), [lost for one in checks for lost in one["lost"]]

    def alive_nodes(self) -> list[LineProcess]:
        """Return the nodes that were not killed."""
        return [node for node in self.nodes.values() if not node.stopping]

    def until_up(self) -> None:
        """Wait until all storage nodes have caught up, and every living node's list says that they are up.

        Raises ProcessError, or CrashError if one of them ends.
        """
        deadline_s = time.monotonic() + UP_TIMEOUT_S
        while not (
            all(store.progress.get("caught_up") for store in self.stores.values())
            and all(_all_up(node) for node in self.alive_nodes())
        ):
            for process in (*self.stores.values(), *self.alive_nodes()):
                if process.process.poll() is not None:
                    raise process.failure()
            if time.monotonic() > deadline_s:
                lists = {node.name: node.last_events.get("members") for node in self.alive_nodes()}
                missing = [name for name, one in self.stores.items() if not one.progress.get("caught_up")]
                raise ProcessError(
                    f"not all storage nodes are up after {UP_TIMEOUT_S:g} s; still catching up: "
                    f"{', '.join(missing) or 'none'}; lists of the nodes: {lists}"
                )
            time.sleep(POLL_S)

    def start_controller(self) -> LineProcess:
        """Start another controller, which takes over; it is ready on return. Raises ProcessError."""
        self._controllers += 1
        directory = self.directory / f"controller{self._controllers}"
        directory.mkdir(exist_ok=True)
        blocks = POOL_BLOCKS
        size = PoolSize(blocks, blocks * self.plan.fragments, self.plan.fragments)
        config = Config(
            switches=tuple(map(self._adapted, switch_configs(self.network, self.artifacts, size))),
            policy="lru",
            replicas=REPLICAS,
            thresholds=Thresholds(report_count=2, fill="on_the_way"),
        )
        controller = start_controller(config, self.network, directory)
        self._controllers_and_stores.append(controller)
        self._children.append(controller)
        wait_for_event("ready", [controller], READY_TIMEOUT_S)
        return controller

    def start_store(self, name: str) -> LineProcess:
        """Start a storage node, with what is on its disk. It is not ready yet on return."""
        config = self._common(name) | {
            "result": str(self.directory / f"{name}.result.json"),
            "block_bytes": self.plan.block_bytes,
            "dram_bytes": DRAM_BLOCKS * self.plan.block_bytes,
            "ssd_dir": str(self.disk(name)),
            "ssd_bytes": SSD_BLOCKS * self.plan.block_bytes,
        }
        faulty = self.plan.faulty_disk if name == self.fabric.stores[0] else None
        store = self._start(name, "hostlib.storage.storage", config, faulty)
        store.send("start")
        self._controllers_and_stores.append(store)
        return store

    def disk(self, store: str) -> Path:
        """Return the folder of a storage node's SSD."""
        return self.plan.disks.get(store, self.directory) / f"{store}.ssd"

    def cut(self, one: str, other: str, whole: bool) -> None:
        """Take the link between a switch and its neighbour down at the switch, or up again with `whole`."""
        self.network.mininet[one].cmd(f"ip link set {self._port(one, other)} {'up' if whole else 'down'}")

    def port_of(self, host: str) -> str:
        """Return the interface, at its switch, of the link to a host."""
        return self._port(self.switch_of(host), host)

    def _port(self, one: str, other: str) -> str:
        """Return the interface of a switch towards a neighbour."""
        port = next(port.number for port in self.fabric.ports(one) if port.peer == other)
        return f"{one}-eth{port}"

    def switch_of(self, host: str) -> str:
        """Return the switch that a host is linked to."""
        (switch,) = self.fabric.graph.adj[host]
        return str(switch)

    def start_flood(self, name: str, interface: str) -> LineProcess:
        """Start a generator of frames (`experiments.faults.flood`) in a host's namespace, and return it."""
        command = [sys.executable, "-m", "experiments.faults.flood", interface]
        log = self.directory / f"{interface}.log"
        flood = LineProcess(f"flood {interface}", command, log, partial(self.network.popen, name))
        self._children.append(flood)
        wait_for_event("ready", [flood], READY_TIMEOUT_S)
        return flood

    def _adapted(self, switch: SwitchConfig) -> SwitchConfig:
        """Return a switch's configuration with tenants, limits and, if there is one, the proxy's address."""
        outside = None if self.plan.insider else self.plan.intruder
        working = {self.fabric.hosts[name].ipv4 for name in self.fabric.nodes if name != outside}
        ports = tuple(
            replace(port, tenants=(TENANT,)) if port.host and port.host.ipv4 in working else port
            for port in map(self._limited, switch.ports)
        )
        address = f"unix:{self._proxy_socket(switch.name)}" if self.plan.proxied else switch.grpc_address
        return replace(switch, ports=ports, grpc_address=address)

    def _limited(self, port: Port) -> Port:
        """Return the port with the plan's limit on PUTs, if it had a limit on PUTs."""
        if port.limits is None or port.limits.puts_per_s is None:
            return port
        return replace(port, limits=replace(port.limits, puts_per_s=self.plan.puts_per_s))

    def _proxy_socket(self, switch: str) -> Path:
        return self.directory / f"{switch}.proxy"

    def _start_proxy(self, switch: str) -> LineProcess:
        server = self.network.address(switch).removeprefix("unix:")
        command = [sys.executable, "-m", "experiments.faults.proxy", str(self._proxy_socket(switch)), server]
        log = self.directory / f"{switch}.proxy.log"
        self._children.append(LineProcess(f"proxy of {switch}", command, log, self.network.popen_here))
        return self._children[-1]

    def _start_node(self, name: str) -> LineProcess:
        config = self._common(name) | {
            "tenant": TENANT,
            "secret": SECRET,
            "result": str(self.directory / f"{name}.result.json"),
            "records": str(self.directory / f"{name}.records"),
            "seed": self.plan.seed,
            "block_bytes": self.plan.block_bytes,
            "rate_per_s": self.plan.rate_per_s,
            "own_blocks": self.plan.own_blocks,
        }
        return self._start(name, "experiments.faults.load", config)

    def _common(self, name: str) -> dict[str, Any]:
        return {
            "address": str(self.fabric.hosts[name].ipv4),
            "homes": self._homes,
            "replicas": REPLICAS,
            "controller": str(self.fabric.controller_of(name).ipv4),
        }

    def _start(
        self, name: str, module: str, config: dict[str, Any], disk: FaultyDisk | None = None
    ) -> LineProcess:
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps(config))

        def popen(*arguments: Any, **options: Any) -> Any:
            return self.network.popen(name, *arguments, **options)

        command = [sys.executable, "-m", module, str(path)]
        if disk is not None:
            command = disk.command(command)
        self._children.append(LineProcess(name, command, self.directory / f"{name}.log", popen))
        return self._children[-1]


@contextlib.contextmanager
def cluster(
    network: Network, artifacts: Artifacts, plan: Plan, name: str, shims: bool = False
) -> Iterator[Cluster]:
    """Run a cluster with empty disks during the `with` block; with `shims`, its links can damage frames."""
    directory = network.directory / name
    directory.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        stack.callback(_clear, directory)
        wires = stack.enter_context(shimmed(network, plan.seed)) if shims else None
        stack.callback(network.stop_switches)
        started = Cluster(network, artifacts, plan, directory, wires)
        stack.callback(started.stop)
        started.start()
        yield started


def _all_up(node: LineProcess) -> bool:
    members = node.last_events.get("members", {})
    return bool(members.get("epoch", 0)) and set(members["states"]) == {"UP"}


def _clear(directory: Path) -> None:
    """Delete the disks, which take space. Logs stay, because they may be followed."""
    for path in directory.rglob("*"):
        if path.is_dir() and path.suffix == ".ssd":
            shutil.rmtree(path, ignore_errors=True)


Fault = Callable[[Cluster, float], None]
"""Function that causes a fault in a cluster for a number of seconds; after it, all parts are as before."""
