"""make intruders: flood the network from one port while others work.

For each attack the other nodes work four times. The generator first sends into a sink, because sending takes
CPU time too, then twice to the switch, then once more into the sink. All operations of the others must
succeed, no block may be wrong or lost, and no message of their tenant may reach the intruder. Needs root.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import psutil
from pydantic.dataclasses import dataclass as declared
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, OneOf, Variable, Within
from commands.options import read
from emulator.machine import MOST_CPU_SHARE, CpuWatch, busy_complaints
from emulator.processes import READY_TIMEOUT_S
from emulator.result import percentiles, revision
from experiments.faults.__main__ import BROKEN_OFF, LINK_BIT_S, STORES, compile_program
from experiments.faults.attacks import (
    ATTACKS,
    FRAGMENTS,
    INSIDER_ATTACKS,
    STORAGE_NODE_ATTACKS,
    frames,
    sender,
)
from experiments.faults.children import wait_for_event
from experiments.faults.cluster import TENANT, Cluster, Plan, cluster
from experiments.faults.cores import pin, split_cores
from experiments.faults.load import RIGHT, WRONG
from experiments.faults.result import reasons
from experiments.logs import open_network
from experiments.page import Section, bars, write_report
from topologies.engines import Artifacts, Embedded
from topologies.machine_check import check_machine
from topologies.network import Network
from topologies.registry import make_topology

NODES = 3
"""Number of nodes; the last is the intruder."""
SINK = "sink"
START_DELAY_S = 0.3
MOST_SLOWER = 2.0
"""Most that the others' p99 under attack may be, over that while the generator sends into a sink."""
MOST_BUSY = MOST_CPU_SHARE
"""Share of the machine's CPU time in use above which times are not judged."""
MOST_GROWTH_BYTES = 64 << 20
"""Most bytes of memory by which switch, storage nodes and controller may grow together in one attack."""


@declared(frozen=True, slots=True, kw_only=True, config=DECLARED)
class IntrudersOptions:
    """Options of `make intruders`, which floods the network from one port while others work."""

    attacks: tuple[Annotated[str, OneOf(ATTACKS)], ...] = tuple(ATTACKS)
    """Attacks to run."""
    seconds: Annotated[float, Within(1, 600)] = 4.0
    """Seconds of load, each of four times in an attack."""
    rate_per_s: Annotated[float, Within(1, 1000), Variable("RATE")] = 25.0
    """Operations a second of each node that works."""
    flood_per_s: Annotated[int, Within(100, 100_000), Variable("FLOOD")] = 2000
    """Packets a second that the intruder sends."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Seed of load and attacks."""
    apart: bool = False
    """1: give the intruder a core of its own, and the others to everybody else."""
    results: Path = Path("results/intruders")
    """Folder for summary.json."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one attack, as summary.json has it."""

    attack: str
    sent: int
    operations: int
    failed: int
    failed_sink: int
    """Number of operations that failed while the generator sent into a sink, so not because of the attack."""
    wrong_blocks: int
    lost_blocks: int
    stolen: int
    """Number of messages of the others' tenant that reached an intruder outside that tenant."""
    p99_ms_sink: float
    p99_ms: float
    growth_bytes: int
    cpu: float
    """Mean share of the machine's CPU time in use."""
    why: Mapping[str, int]
    """Number of operations that failed, by text of the error."""
    broken_off: str = ""
    """Reason why the attack ended before all was measured; empty if it did not."""

    def missed(self) -> list[str]:
        """Return the goals that are not met."""
        found = [
            f"{count} {what}"
            for count, what in (
                (self.failed if self.fails_more() else 0, "operations of others failed"),
                (self.wrong_blocks, "blocks were wrong"),
                (self.lost_blocks, "blocks are lost"),
                (self.stolen, "messages of the others' tenant came to the intruder"),
            )
            if count
        ]
        if self.is_slower() and self.cpu <= MOST_BUSY:
            found.append(self.slower())
        if self.growth_bytes > MOST_GROWTH_BYTES:
            found.append(f"memory grew by {self.growth_bytes >> 20} MB")
        if self.broken_off:
            found.append(f"broken off: {self.broken_off}")
        elif not self.operations or not self.sent:
            found.append("nothing was measured")
        return found

    def fails_more(self) -> bool:
        """Return whether more than twice as many operations failed as with the generator's sink."""
        return self.failed > MOST_SLOWER * self.failed_sink

    def is_only_slower(self) -> bool:
        """Return whether the others' slowness is the only goal that is missed."""
        return self.missed() == [self.slower()]

    def is_slower(self) -> bool:
        """Return whether the others were slower than the goal allows."""
        return self.p99_ms > MOST_SLOWER * self.p99_ms_sink

    def remarks(self) -> list[str]:
        """Return what is not judged, because it may be due to the machine.

        Hosts that share cores wait for each other's CPU time, whether or not there is an attack.
        """
        found = []
        if self.is_slower() and self.cpu > MOST_BUSY:
            found.append(f"{self.slower()}: not judged, as the machine was {self.cpu:.0%} busy")
        if self.failed and not self.fails_more():
            found.append(f"{self.failed} operations failed, and {self.failed_sink} with a sink: not judged")
        return found

    def slower(self) -> str:
        """Return the p99s in words."""
        return f"p99 {self.p99_ms:.0f} ms, with a sink {self.p99_ms_sink:.0f} ms"


class Intruder:
    """Generators in the namespace of a host, one for its link and one for a sink."""

    def __init__(self, running: Cluster, name: str) -> None:
        create_link = f"ip link add {SINK} type veth peer name {SINK}p"
        running.network.mininet[name].cmd(f"{create_link} && ip link set {SINK} up && ip link set {SINK}p up")
        self._generators = {way: running.start_flood(name, way) for way in (SINK, f"{name}-eth0")}
        self._link = f"{name}-eth0"
        self.pids = [generator.process.pid for generator in self._generators.values()]

    def flood(self, into_sink: bool, sent: Sequence[str], rate_per_s: int) -> None:
        """Begin to flood the sink or the link, until `pause` is called."""
        generator = self._generators[SINK if into_sink else self._link]
        generator.last_events.pop("paused", None)
        generator.send(json.dumps({"frames": sent, "rate_per_s": rate_per_s}))

    def pause(self, into_sink: bool) -> dict[str, Any]:
        """End the flood; return how many frames were sent, and counts of what came back."""
        generator = self._generators[SINK if into_sink else self._link]
        generator.send('{"pause": true}')
        wait_for_event("paused", [generator], READY_TIMEOUT_S)
        return generator.last_events["paused"]


def main(arguments: Sequence[str]) -> int:
    """Run the experiment; returns its exit code.

    It is 0 if no attack succeeded and none slowed the others down, 1 if not, and 2 if it could not run.
    """
    program = "weir intruders"
    return run_command(arguments, lambda given: read(IntrudersOptions, given, program, __doc__ or ""), _run)


def _run(screen: Screen, options: IntrudersOptions) -> int:
    check_machine()
    results: list[Result] = []
    try:
        _play(screen, options, results)
    finally:  # an interrupted run also leaves its results
        _write(options, results)
    screen.say(f"To look at: {_write_page(options, results)}")
    return _report(screen, results)


def _write(options: IntrudersOptions, results: Sequence[Result]) -> None:
    options.results.mkdir(parents=True, exist_ok=True)
    about = {"engine": Embedded.name, "seed": options.seed, "flood_per_s": options.flood_per_s}
    about["apart"] = options.apart
    text = json.dumps(
        {**about, "revision": revision(), "attacks": [asdict(one) for one in results]}, indent=1
    )
    (options.results / "summary.json").write_text(text + "\n")


def _play(screen: Screen, options: IntrudersOptions, results: list[Result]) -> None:
    """Run all attacks, and add the result of each."""
    fabric = make_topology("star", LINK_BIT_S, NODES, STORES)
    about = {"revision": revision(), "seed": options.seed}
    with (
        screen.status("compiling the P4 program") as show,
        open_network(screen, fabric, Embedded(), options.results, about) as network,
    ):
        artifacts = compile_program(network, FRAGMENTS)
        outsider = fabric.nodes[-1]
        for name in options.attacks:
            show(f"attack: {name}")
            insider = name in INSIDER_ATTACKS
            plan = Plan(FRAGMENTS, options.rate_per_s, options.seed, intruder=outsider, insider=insider)
            result = _measure(network, artifacts, plan, name, name, options)
            if result.is_only_slower():
                screen.say(f"{name}: {result.slower()}: measured once more, as the machine may be why")
                result = _measure(network, artifacts, plan, name, f"{name}-again", options)
            results.append(result)
            verdict = result.missed() or ["in vain"]
            screen.say(f"{name}: {'; '.join([*verdict, *result.remarks()])}")


def _measure(
    network: Network, artifacts: Artifacts, plan: Plan, name: str, folder: str, options: IntrudersOptions
) -> Result:
    """Run one attack on new processes, with their files in `folder`, and return its result."""
    port = sender(network.fabric, name)
    try:
        with cluster(network, artifacts, plan, folder) as running:
            intruder = Intruder(running, port)
            if options.apart:
                _keep_apart(running, intruder)
            return attack(running, intruder, name, options)
    except BROKEN_OFF as error:
        return broken_off(name, str(error))
    finally:
        network.mininet[port].cmd(f"ip link del {SINK}")


def attack(running: Cluster, intruder: Intruder, name: str, options: IntrudersOptions) -> Result:
    """Run one attack and return its result.

    The order is sink, switch, switch, sink, because other load of the machine changes slowly.
    """
    sent = frames(name, running.fabric, options.seed)
    operations: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    floods: list[dict[str, Any]] = []
    before = _memory_bytes(running)
    with CpuWatch() as watch:
        for into_sink in (True, False, False, True):
            intruder.flood(into_sink, sent, options.flood_per_s)
            running.play(time.monotonic() + START_DELAY_S, options.seconds)
            operations[into_sink] += running.played()
            counts = intruder.pause(into_sink)
            floods += [] if into_sink else [counts]
    grown = _memory_bytes(running) - before
    wrong, lost = running.check()
    under_attack = operations[False]
    outcomes = [one["outcome"] for one in under_attack]
    p99_ms = {
        into_sink: percentiles([1000 * (one["end_s"] - one["start_s"]) for one in some]).p99
        for into_sink, some in operations.items()
    }
    received = [tenants for one in floods for tenants in one["received"].values()]
    return Result(
        name,
        sum(one["sent"] for one in floods),
        len(outcomes),
        _failed(under_attack),
        _failed(operations[True]),
        outcomes.count(WRONG) + wrong,
        len(lost),
        0
        if name in INSIDER_ATTACKS | STORAGE_NODE_ATTACKS
        else sum(tenants.get(str(TENANT), 0) for tenants in received),
        p99_ms[True],
        p99_ms[False],
        grown,
        round(watch.use.mean, 2),
        reasons(under_attack, lost),
    )


def broken_off(name: str, why: str) -> Result:
    """Return the result of an attack that could not be measured to its end."""
    return Result(name, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0.0, {}, why)


def _failed(operations: Sequence[dict[str, Any]]) -> int:
    """Return how many operations failed; those that gave a wrong block are counted elsewhere."""
    return sum(one["outcome"] not in (RIGHT, WRONG) for one in operations)


def _keep_apart(running: Cluster, intruder: Intruder) -> None:
    cores = split_cores()
    if cores is not None:
        pin(intruder.pids, cores[0])
        pin([*_serving(running), *(node.process.pid for node in running.nodes.values())], cores[1])


def _serving(running: Cluster) -> list[int]:
    """Return the process ids of controller, storage nodes and switches."""
    processes = [running.controller, *running.stores.values()]
    switches = running.network.switch_processes.values()
    return [one.process.pid for one in processes] + [process.pid for process in switches]


def _memory_bytes(running: Cluster) -> int:
    return sum(psutil.Process(pid).memory_info().rss for pid in _serving(running))


def _write_page(options: IntrudersOptions, results: Sequence[Result]) -> Path:
    titles = (
        "attack", "packets", "operations", "failed", "failed with a sink", "wrong", "lost", "stolen",
        "p99 with a sink, ms", "p99 under attack, ms", "memory grew by, MB", "CPU, %", "missed",
    )  # fmt: skip
    rows = [
        [
            one.attack, one.sent, one.operations, one.failed, one.failed_sink, one.wrong_blocks,
            one.lost_blocks, one.stolen, one.p99_ms_sink, one.p99_ms, one.growth_bytes / 2**20, 100 * one.cpu,
            "; ".join([*one.missed(), *one.remarks()]) or "nothing",
        ]
        for one in results
    ]  # fmt: skip
    names = [one.attack for one in results]
    p99 = {"with a sink": [o.p99_ms_sink for o in results], "under attack": [o.p99_ms for o in results]}
    plots = [bars("p99 of the others' operations, ms", names, p99)]
    text = "Both with the generator running; with a sink its packets never reach the switch."
    about = {
        "seed": options.seed, "revision": revision(), "engine": Embedded.name,
        "packets a second of the intruder": options.flood_per_s,
        "a core for the intruder": "yes" if options.apart else "no",
    }  # fmt: skip
    section = Section("What one port does to the others", "attacks", titles, rows, plots, text)
    complaints = busy_complaints({one.attack: one.cpu for one in results})
    title = "make intruders: one port floods the network"
    return write_report(options.results, title, about, [section], complaints)


def _report(screen: Screen, results: Sequence[Result]) -> int:
    table = Table(
        "attack", "packets", "operations", "failed", "failed with a sink", "wrong", "lost", "stolen",
        "p99 with a sink, ms", "p99 under attack, ms", "memory, MB",
    )  # fmt: skip
    for one in results:
        broken = (one.failed, one.failed_sink, one.wrong_blocks, one.lost_blocks)
        counts = (one.sent, one.operations, *broken, one.stolen)
        times = (f"{one.p99_ms_sink:.0f}", f"{one.p99_ms:.0f}", f"{one.growth_bytes / 2**20:+.0f}")
        table.add_row(one.attack, *map(str, counts), *times)
    screen.show(table)
    for one in results:
        for goal in one.missed():
            screen.show(f"[bold red]missed:[/] {one.attack}: {goal}")
        for remark in one.remarks():
            screen.show(f"{one.attack}: {remark}")
        for reason, count in one.why.items():
            screen.show(f"{one.attack}: {count} times: {reason}")
    return 1 if any(one.missed() for one in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
