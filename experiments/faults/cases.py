"""Cases of faults. Each fault lasts for a given time, and returns when all parts are as before."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from emulator.processes import READY_TIMEOUT_S
from experiments.faults.attacks import frames
from experiments.faults.children import halted, kill, wait_for_event
from experiments.faults.cluster import Cluster
from experiments.faults.faulty_disk import FULL_HALFWAY, NO_FAILURE, SLOW, TORN
from experiments.faults.losses import losing

REPETITIONS = 3
"""Number of times that a repeated fault happens."""
FULL_DISK_BYTES = 48 << 20
FLOOD_PER_S = 1000


@dataclass(frozen=True, slots=True)
class Case:
    """Fault, with the conditions under which it happens."""

    title: str
    do: Callable[[Cluster, float], None]
    topologies: tuple[str, ...] = ("star", "leafspine")
    may_fail: bool = False
    """Whether operations may fail: a partition leaves too few homes."""
    may_refuse: bool = False
    """Whether PUTs may be refused: with a full disk."""
    small_disk: bool = False
    """Whether the first storage node has a disk of its own, of FULL_DISK_BYTES."""
    shims: bool = False
    """Whether there are shims in all links of hosts."""
    proxied: bool = False
    """Whether P4Runtime goes through proxies."""
    faulty_disk: bool = False
    """Whether the first storage node's disk can fail on request."""


def _nothing(cluster: Cluster, seconds: float) -> None:
    time.sleep(seconds)


def _storage_killed(cluster: Cluster, seconds: float) -> None:
    name = cluster.fabric.stores[0]
    kill(cluster.stores[name])
    time.sleep(seconds)
    cluster.stores[name] = cluster.start_store(name)
    wait_for_event("ready", [cluster.stores[name]], READY_TIMEOUT_S)


def _storage_slow(cluster: Cluster, seconds: float) -> None:
    store = cluster.stores[cluster.fabric.stores[0]]
    for _ in range(REPETITIONS):
        with halted(store):
            time.sleep(seconds / REPETITIONS / 2)
        time.sleep(seconds / REPETITIONS / 2)


def _controller_killed(cluster: Cluster, seconds: float) -> None:
    kill(cluster.controller)
    time.sleep(seconds)
    cluster.controller = cluster.start_controller()


def _storage_and_controller_killed(cluster: Cluster, seconds: float) -> None:
    """Kill both and start the controller first, which hears the storage node only after that is back."""
    name = cluster.fabric.stores[0]
    kill(cluster.stores[name])
    kill(cluster.controller)
    cluster.controller = cluster.start_controller()
    time.sleep(seconds)
    cluster.stores[name] = cluster.start_store(name)
    wait_for_event("ready", [cluster.stores[name]], READY_TIMEOUT_S)


def _controller_hung(cluster: Cluster, seconds: float) -> None:
    with halted(cluster.controller):
        time.sleep(seconds)


def _stream_hung(cluster: Cluster, seconds: float) -> None:
    for proxy in cluster.proxies:
        proxy.send("hang")
    time.sleep(seconds)
    for proxy in cluster.proxies:
        proxy.send("on")


def _digests_flooded(cluster: Cluster, seconds: float) -> None:
    """Flood the network with GETs of which each makes the switch report a subscription to the controller."""
    name = cluster.fabric.nodes[-1]
    generator = cluster.start_flood(name, f"{name}-eth0")
    sent = frames("subscribes", cluster.fabric, cluster.plan.seed)
    generator.send(json.dumps({"frames": sent, "rate_per_s": FLOOD_PER_S}))
    time.sleep(seconds)
    generator.send('{"pause": true}')
    wait_for_event("paused", [generator], READY_TIMEOUT_S)
    kill(generator)


def _two_controllers(cluster: Cluster, seconds: float) -> None:
    """Start a second controller, which takes over; then kill it, and the first takes over again."""
    first = cluster.controller
    cluster.controller = second = cluster.start_controller()
    time.sleep(seconds)
    cluster.controller = first
    kill(second)


def _switch_restarted(cluster: Cluster, seconds: float) -> None:
    """Kill all switches and start them again. They begin empty, and the controller restores their state."""
    for process in cluster.network.switch_processes.values():
        process.kill()
        process.wait()
    cluster.network.stop_switches()
    cluster.network.start_switches()


def _link_flap(cluster: Cluster, seconds: float) -> None:
    store = cluster.fabric.stores[0]
    for _ in range(REPETITIONS):
        with _cut(cluster, cluster.switch_of(store), store):
            time.sleep(seconds / REPETITIONS / 2)
        time.sleep(seconds / REPETITIONS / 2)


def _loss(share: float) -> Callable[[Cluster, float], None]:
    def lose(cluster: Cluster, seconds: float) -> None:
        with contextlib.ExitStack() as stack:
            for name in cluster.fabric.switches:
                network, p4info = cluster.network, cluster.artifacts.p4info
                device = cluster.fabric.device_id(name)
                stack.enter_context(losing(network.address(name), device, p4info, share))
            time.sleep(seconds)

    return lose


def _node_killed(cluster: Cluster, seconds: float) -> None:
    kill(cluster.nodes[cluster.fabric.nodes[-1]])
    time.sleep(seconds)


def _disk_full(cluster: Cluster, seconds: float) -> None:
    ballast = cluster.disk(cluster.fabric.stores[0]).parent / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    time.sleep(seconds)
    ballast.unlink()


def _partition(cluster: Cluster, seconds: float) -> None:
    """Cut two of the storage nodes, or a leaf with all its hosts, off from everything else."""
    fabric = cluster.fabric
    if len(fabric.switches) == 1:
        links = [(cluster.switch_of(store), store) for store in fabric.stores[:2]]
    else:
        leaf = cluster.switch_of(fabric.stores[-1])
        links = [(leaf, port.peer) for port in fabric.ports(leaf) if port.peer in fabric.switches]
    with contextlib.ExitStack() as stack:
        for one, other in links:
            stack.enter_context(_cut(cluster, one, other))
        time.sleep(seconds)


@contextlib.contextmanager
def _cut(cluster: Cluster, one: str, other: str) -> Iterator[None]:
    cluster.cut(one, other, whole=False)
    try:
        yield
    finally:
        cluster.cut(one, other, whole=True)


def _damaged_links(title: str, **shares: float) -> Case:
    def damage(cluster: Cluster, seconds: float) -> None:
        assert cluster.wires is not None
        cluster.wires.damage(**shares)
        time.sleep(seconds)
        cluster.wires.damage()

    return Case(title, damage, shims=True)


def _disk(letter: str) -> Callable[[Cluster, float], None]:
    """Return a fault of the first storage node's disk, named by a letter of `faulty_disk`."""

    def fail(cluster: Cluster, seconds: float) -> None:
        faulty = cluster.plan.faulty_disk
        assert faulty is not None
        faulty.set_failure(letter)
        time.sleep(seconds)
        faulty.set_failure(NO_FAILURE)

    return fail


def _gray(title: str, **shares: float) -> Case:
    """Return a case in which only the first storage node's link, which stays up, loses frames."""

    def damage(cluster: Cluster, seconds: float) -> None:
        assert cluster.wires is not None
        cluster.wires.damage(cluster.port_of(cluster.fabric.stores[0]), **shares)
        time.sleep(seconds)
        cluster.wires.damage()

    return Case(title, damage, shims=True)


CASES = {
    "none": Case("nothing", _nothing),
    "storage_killed": Case("storage node killed (SIGKILL), started again", _storage_killed),
    "storage_slow": Case(f"storage node stopped {REPETITIONS} times (SIGSTOP)", _storage_slow),
    "controller_killed": Case("controller killed (SIGKILL), started again", _controller_killed),
    "storage_and_controller_killed": Case(
        "storage node and controller killed, the controller started again first",
        _storage_and_controller_killed,
    ),
    "switch_restarted": Case("switches killed (SIGKILL), started again", _switch_restarted),
    "link_flap": Case(f"link of a storage node down {REPETITIONS} times", _link_flap),
    "loss_1": Case("1 % of all packets lost at each switch", _loss(0.01)),
    "loss_5": Case("5 % of all packets lost at each switch", _loss(0.05)),
    "node_killed": Case("node killed while it waits", _node_killed),
    "disk_full": Case("disk of a storage node full", _disk_full, may_refuse=True, small_disk=True),
    "partition": Case("partition", _partition, may_fail=True, may_refuse=True),
    "loss_0.1": Case("0.1 % of all packets lost at each switch", _loss(0.001)),
    "two_controllers": Case("a second controller takes over and is killed", _two_controllers),
    "controller_hung": Case("controller stopped (SIGSTOP): its streams hang", _controller_hung),
    "stream_hung": Case("nothing passes between controller and switches", _stream_hung, proxied=True),
    "digests_flooded": Case(f"{FLOOD_PER_S} subscriptions a second from one port", _digests_flooded),
    "reordering": _damaged_links(
        "5 % of all frames come up to 10 ms late, on each link of a host", reorder=0.05
    ),
    "duplication": _damaged_links("5 % of all frames come twice, on each link of a host", duplicate=0.05),
    "flipped_bits": _damaged_links("1 % of all frames have a bit flipped, on each link of a host", flip=0.01),
    "storage_deaf": _gray("nothing reaches a storage node, what it sends passes", deaf=1.0),
    "storage_mute": _gray("nothing that a storage node sends passes, all reaches it", mute=1.0),
    "black_hole": _gray("frames above 600 bytes are lost on the link of a storage node", longest=600),
    "lossy_port": _gray("30 % of all frames are lost on the link of a storage node, each way", lose=0.3),
    "disk_slow": Case("each sync of a storage node's disk takes 50 ms", _disk(SLOW), faulty_disk=True),
    "disk_torn": Case(
        "a storage node's disk gives an error in the middle of each write",
        _disk(TORN),
        may_refuse=True,
        faulty_disk=True,
    ),
    "disk_full_in_commit": Case(
        "a storage node's disk is full in the middle of each write",
        _disk(FULL_HALFWAY),
        may_refuse=True,
        faulty_disk=True,
    ),
}


def small_disk(directory: Path) -> contextlib.ExitStack:
    """Mount a file system of FULL_DISK_BYTES at `directory`; closing the returned stack unmounts it."""
    directory.mkdir()
    size = f"size={FULL_DISK_BYTES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "weir-disk", str(directory)], check=True)
    stack = contextlib.ExitStack()
    stack.callback(subprocess.run, ["umount", "--lazy", str(directory)], check=True)
    return stack
