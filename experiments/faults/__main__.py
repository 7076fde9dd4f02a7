"""make faults: kill, stop and cut off parts of a network while nodes read and write.

Nodes write durable blocks at two homes, read them, and compare what they read with what they wrote. Each
operation is timed, before, during and after the fault. Then all parts are killed and started again, and every
acknowledged block is read back. Needs root.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import grpc
from rich.table import Table

from commands.command import Screen, run_command
from commands.errors import ExperimentError
from controller.config import PoolSize
from emulator.machine import MOST_CPU_SHARE, CpuWatch, busy_complaints
from emulator.result import PROGRAM, revision
from experiments.faults.cases import CASES, Case, small_disk
from experiments.faults.cluster import POOL_BLOCKS, REPLICAS, Plan, cluster
from experiments.faults.faulty_disk import build
from experiments.faults.options import FaultsOptions, parse_options
from experiments.faults.page import write_page
from experiments.faults.result import PHASES, Played, Result, broken_off, evaluate
from experiments.logs import open_network
from topologies.engines import Artifacts, Embedded
from topologies.errors import TopologyError
from topologies.machine_check import check_machine
from topologies.network import Network
from topologies.registry import make_topology

NODES, STORES = 3, 3
SIZES = {"star": {}, "leafspine": {"leaves": 2, "spines": 2}}
LINK_BIT_S = 100e6
START_DELAY_S = 0.3
BROKEN_OFF = (ExperimentError, TopologyError, grpc.RpcError, OSError)
"""Errors that end one case, while the others go on."""


def main(arguments: Sequence[str]) -> int:
    """Run the experiment; returns its exit code.

    It is 0 if no block was wrong or lost and no operation failed that should not, 1 if not, and 2 if it could
    not run.
    """
    return run_command(arguments, lambda given: parse_options(given, "weir faults", __doc__ or ""), play_all)


def play_all(screen: Screen, options: FaultsOptions) -> int:
    """Run all cases and write their results; returns the exit code."""
    check_machine()
    results: list[Result] = []
    try:
        for topology in options.topologies:
            _play_topology(screen, options, topology, results)
    finally:  # an interrupted run also leaves its results
        about = _about(options)
        _write(options, results)
        busy = {f"{one.fault} on {one.topology}": one.cpu for one in results}
        page = write_page(options.results, about, results, busy_complaints(busy))
        screen.say(f"To look at: {page}")
    return _report(screen, results)


def _play_topology(screen: Screen, options: FaultsOptions, topology: str, results: list[Result]) -> None:
    """Run a topology's cases. Add each result, also of a case that breaks off, and write all so far."""
    names = _names(options, topology)
    if not names:
        return
    append = bool(results)
    fabric = make_topology(topology, LINK_BIT_S, NODES, STORES, **SIZES[topology])
    compiling = f"{topology}: compiling the P4 program"
    about = {"revision": revision(), "seed": options.seed, "topology": topology}
    with (
        screen.status(compiling) as show,
        open_network(screen, fabric, Embedded(), options.results, about, append=append) as network,
    ):
        artifacts = compile_program(network, options.fragments)
        for number, name in enumerate(names, 1):
            show(f"{topology}, case {number} of {len(names)}: {CASES[name].title}")
            try:
                results.append(play(network, artifacts, options, name))
            except BROKEN_OFF as error:
                results.append(broken_off(name, topology, str(error)))
            _write(options, results)
            screen.say(_line(results[-1]))


def _names(options: FaultsOptions, topology: str) -> list[str]:
    """Return the names of the cases chosen that run on a topology."""
    return [name for name in options.cases if topology in CASES[name].topologies]


def compile_program(network: Network, fragments: int) -> Artifacts:
    """Compile the P4 program with the clusters' pool, and with losses on request."""
    size = PoolSize(POOL_BLOCKS, POOL_BLOCKS * fragments, fragments)
    return network.compile(PROGRAM, size.defines | {"FAULTS": 1})


def play(network: Network, artifacts: Artifacts, options: FaultsOptions, name: str) -> Result:
    """Run one case on a running network and return its result.

    Raises ProcessError if a part ends that should live.
    """
    case = CASES[name]
    with contextlib.ExitStack() as stack:
        disks: dict[str, Path] = {}
        if case.small_disk:
            disks[network.fabric.stores[0]] = network.directory / f"{name}.disk"
            stack.enter_context(small_disk(disks[network.fabric.stores[0]]))
        faulty = build(network.directory) if case.faulty_disk else None
        plan = Plan(
            options.fragments, options.rate_per_s, options.seed, disks=disks, proxied=case.proxied,
            faulty_disk=faulty,
        )  # fmt: skip
        running = stack.enter_context(cluster(network, artifacts, plan, name, case.shims))
        with CpuWatch() as watch:
            part_s = options.seconds / 3
            at_s = time.monotonic() + START_DELAY_S
            running.play(at_s, options.seconds)
            time.sleep(START_DELAY_S + part_s)
            fault_s = time.monotonic()
            case.do(running, part_s)
            fault_end_s = time.monotonic()
            operations = running.played()
        evictions, suspicions = running.evictions, running.suspicions
        wrong, lost = running.check()
    played = Played(operations, fault_s, fault_end_s, wrong, lost, watch.use.mean, evictions, suspicions)
    return evaluate(name, network.fabric.name, played)


def _about(options: FaultsOptions) -> dict[str, object]:
    return {
        "engine": Embedded.name,
        "replicas": REPLICAS,
        "nodes": NODES,
        "stores": STORES,
        "seconds": options.seconds,
        "rate_per_s": options.rate_per_s,
        "fragments": options.fragments,
        "seed": options.seed,
        "revision": revision(),
    }


def _write(options: FaultsOptions, results: Sequence[Result]) -> None:
    path = options.results / "summary.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    planned = sum(len(_names(options, topology)) for topology in options.topologies)
    cases = [asdict(result) for result in results]
    complete = len(results) == planned
    path.write_text(json.dumps({**_about(options), "complete": complete, "cases": cases}, indent=1) + "\n")


def _report(screen: Screen, results: Sequence[Result]) -> int:
    counted = ("operations", "failed", "refused", "wrong", "lost", "evicted", "suspected")
    table = Table("fault", "topology", *counted, "recover, s")
    for phase in PHASES:
        table.add_column(f"p99 {phase}, ms", justify="right")
    table.add_column("slowest, ms", justify="right")
    for one in results:
        broken = (one.failed, one.refused, one.wrong_blocks, one.lost_blocks)
        counts = (one.operations, *broken, one.evictions, one.suspicions)
        times = (*(f"{one.p99_ms[phase]:.0f}" for phase in PHASES), f"{one.slowest_ms:.0f}")
        table.add_row(one.fault, one.topology, *map(str, counts), f"{one.recover_s:.1f}", *times)
    screen.show(table)
    busy = sum(one.cpu > MOST_CPU_SHARE for one in results)
    if busy:
        screen.warn(
            f"the machine was over {MOST_CPU_SHARE:.0%} busy in {busy} of {len(results)} cases: "
            "times are longer for that."
        )
    missed = [(one, _missed(CASES[one.fault], one)) for one in results]
    for one, goals in missed:
        for goal in goals:
            screen.show(f"[bold red]missed:[/] {one.fault} on {one.topology}: {goal}")
    return 1 if any(goals for _, goals in missed) else 0


def _missed(case: Case, result: Result) -> list[str]:
    return result.missed(case.may_fail, case.may_refuse)


def _line(result: Result) -> str:
    why = "".join(f"\n    {count} times {what}" for what, count in itertools.islice(result.why.items(), 4))
    missed = _missed(CASES[result.fault], result)
    return (
        f"{'[red]missed[/]' if missed else '[green]right[/]'}  {result.topology} {result.fault}: "
        f"{result.operations} operations, {result.failed} failed, {result.refused} refused{why}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
