"""make soak: run one network for long, under mixed load and one random fault after the other.

No block may be wrong or lost, and no operation may fail. The memory of each process that lives to the end
must not grow. In the end no file, namespace, process or slot of a pool may be left over. Needs root.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass as declared
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, Variable, Within
from commands.options import read
from emulator.machine import CpuWatch, busy_complaints
from emulator.result import revision
from experiments.faults.__main__ import LINK_BIT_S, NODES, START_DELAY_S, STORES, compile_program
from experiments.faults.cases import CASES
from experiments.faults.cluster import POOL_BLOCKS, Cluster, Plan, cluster
from experiments.faults.leaks import growth, more_files, namespaces_of, processes_of, sample
from experiments.faults.result import PHASES, Played, Result, evaluate
from experiments.logs import open_network
from experiments.page import Section, bars, lines, write_report
from topologies.engines import Embedded
from topologies.machine_check import check_machine
from topologies.registry import make_topology
from topologies.run_records import RUN_DIRECTORY

FRAGMENTS = 16
OWN_BLOCKS = 200
FAULTS = (
    "none", "storage_killed", "storage_slow", "controller_hung", "two_controllers", "link_flap", "loss_1",
    "stream_hung", "digests_flooded",
)  # fmt: skip
"""Faults after which all processes but a storage node are the same as before."""
MOST_GROWTH = 0.05
"""Most by which a process's memory may grow after the warm-up, as a share."""
WARM_UP = 0.25
"""Share of the rounds that are warm-up."""


@declared(frozen=True, slots=True, kw_only=True, config=DECLARED)
class SoakOptions:
    """Options of `make soak`, which runs one network for long under load and random faults."""

    minutes: Annotated[float, Within(0.05, 10_000)] = 10.0
    """Minutes of load, without start and end."""
    round_s: Annotated[float, Within(3, 600), Variable("ROUND")] = 9.0
    """Seconds of load in a round, which has one fault in its middle."""
    rate_per_s: Annotated[float, Within(1, 1000), Variable("RATE")] = 25.0
    """Operations a second of each node."""
    seed: Annotated[int, Within(0, 2**31)] = 1
    """Seed of load and faults."""
    results: Path = Path("results/soak")
    """Folder for summary.json."""


@dataclass(frozen=True, slots=True)
class Soaked:
    """Results of a soak."""

    rounds: Sequence[Result]
    growth: Mapping[str, float]
    """Growth of memory of each process that lived from the warm-up to the end, as a share."""
    files: Mapping[str, int]
    """Growth in the number of open files of each of these processes."""
    lost_slots: int
    """Number of the pools' slots that are neither free nor in use."""
    wrong_blocks: int
    lost_blocks: int
    left_over: Sequence[str]

    def missed(self) -> list[str]:
        """Return the goals that are not met."""
        found = [goal for one in self.rounds for goal in one.missed(may_fail=False, may_refuse=False)]
        found += [f"{name} grew by {share:.1%}" for name, share in self.growth.items() if share > MOST_GROWTH]
        found += [f"{name} has {count} more files open" for name, count in self.files.items() if count > 0]
        found += [f"{self.lost_slots} slots are lost"] if self.lost_slots else []
        found += [f"{self.wrong_blocks} blocks were wrong in the end"] if self.wrong_blocks else []
        found += [f"{self.lost_blocks} blocks are lost"] if self.lost_blocks else []
        return found + [f"left over: {what}" for what in self.left_over]


def main(arguments: Sequence[str]) -> int:
    """Run the experiment. Returns exit code 0 if all goals are met, 1 if not, and 2 if it could not run."""
    return run_command(
        arguments,
        lambda given: read(SoakOptions, given, "weir soak", __doc__ or ""),
        _run,
    )


def _run(screen: Screen, options: SoakOptions) -> int:
    check_machine()
    soaked = soak(screen, options)
    _write(screen, options, soaked)
    _show(screen, soaked)
    return 1 if soaked.missed() else 0


def soak(screen: Screen, options: SoakOptions) -> Soaked:
    """Run the network from start to end, with a fault in each round, and return the results."""
    fabric = make_topology("star", LINK_BIT_S, NODES, STORES)
    about = {"revision": revision(), "seed": options.seed}
    with (
        screen.status("compiling the P4 program") as show,
        open_network(screen, fabric, Embedded(), options.results, about) as network,
    ):
        artifacts = compile_program(network, FRAGMENTS)
        plan = Plan(FRAGMENTS, options.rate_per_s, options.seed, own_blocks=OWN_BLOCKS, proxied=True)
        with cluster(network, artifacts, plan, "soak") as running:
            rounds, samples = [], []
            draws = random.Random(options.seed)
            count = max(2, round(60 * options.minutes / options.round_s))
            for at in range(count):
                name = draws.choice(FAULTS)
                show(f"round {at + 1} of {count}: {CASES[name].title}")
                rounds.append(_round(running, options.round_s, name))
                samples.append(sample(running))
            last = running.controller.progress
            lost_slots = POOL_BLOCKS * FRAGMENTS - last["free_slots"] - last["used_slots"]
            pids, namespaces = processes_of(running), namespaces_of(network)
            wrong, lost = running.check()
        directory = network.directory
    after = samples[round(WARM_UP * count) :]
    left = [*_left(pids, namespaces), *(str(path) for path in (directory,) if path.exists())]
    left += [str(path) for path in RUN_DIRECTORY.glob(f"*/{directory.name}")]
    return Soaked(rounds, growth(after), more_files(after), lost_slots, wrong, len(lost), left)


def _round(running: Cluster, seconds: float, name: str) -> Result:
    with CpuWatch() as watch:
        at_s = time.monotonic() + START_DELAY_S
        running.play(at_s, seconds)
        time.sleep(START_DELAY_S + seconds / 3)
        fault_s = time.monotonic()
        CASES[name].do(running, seconds / 3)
        fault_end_s = time.monotonic()
        operations = running.played()
        running.until_up()
    used = watch.use.mean
    played = Played(operations, fault_s, fault_end_s, 0, (), used, running.evictions, running.suspicions)
    return evaluate(name, running.fabric.name, played)


def _left(pids: Mapping[int, str], namespaces: Sequence[str]) -> list[str]:
    """Return which of these are still there: processes, and network namespaces that some process is in."""
    left = [f"process {pid} ({name})" for pid, name in pids.items() if Path(f"/proc/{pid}").exists()]
    alive = set(map(str, namespaces_of()))
    return left + [f"namespace {namespace}" for namespace in namespaces if namespace in alive]


def _write(screen: Screen, options: SoakOptions, soaked: Soaked) -> None:
    options.results.mkdir(parents=True, exist_ok=True)
    about = {
        "engine": Embedded.name,
        "revision": revision(),
        "seed": options.seed,
        "minutes": options.minutes,
    }
    result = {**about, **asdict(soaked), "missed": soaked.missed()}
    (options.results / "summary.json").write_text(json.dumps(result, indent=1) + "\n")
    screen.say(f"To look at: {write_page(options.results, about, soaked)}")


def write_page(folder: Path, about: Mapping[str, object], soaked: Soaked) -> Path:
    """Write the page into `folder`, with the rounds and the processes' growth; returns its path."""
    numbers = range(1, len(soaked.rounds) + 1)
    p99 = {
        phase: [(number, one.p99_ms[phase]) for number, one in zip(numbers, soaked.rounds, strict=True)]
        for phase in PHASES
    }
    titles = (
        "round", "fault", "operations", "failed", "refused", "wrong blocks", "recover, s",
        *(f"p99 {phase}, ms" for phase in PHASES), "CPU, %",
    )  # fmt: skip
    rows = [
        [
            number, CASES[one.fault].title, one.operations, one.failed, one.refused, one.wrong_blocks,
            one.recover_s, *(one.p99_ms[phase] for phase in PHASES), 100 * one.cpu,
        ]
        for number, one in zip(numbers, soaked.rounds, strict=True)
    ]  # fmt: skip
    missed = soaked.missed()
    text = f"Missed: {'; '.join(missed)}." if missed else "Nothing was wrong, lost or left over."
    rounds = Section("Rounds", "rounds", titles, rows, [lines("p99 of an operation, ms", "round", p99)], text)
    grown = {name: 100 * share for name, share in soaked.growth.items()}
    memory = Section(
        "Processes, from the warm-up to the end",
        "processes",
        ("process", "memory grew by, %", "more files open"),
        [[name, share, soaked.files[name]] for name, share in grown.items()],
        [bars("memory grew by, %", list(grown), {"%": list(grown.values())})],
    )
    complaints = busy_complaints({f"round {n}": o.cpu for n, o in zip(numbers, soaked.rounds, strict=True)})
    title = "make soak: one network for long, under load and random faults"
    return write_report(folder, title, about, [rounds, memory], complaints)


def _show(screen: Screen, soaked: Soaked) -> None:
    table = Table("process", "memory", "files")
    for name, share in soaked.growth.items():
        table.add_row(name, f"{share:+.1%}", f"{soaked.files[name]:+d}")
    screen.show(table)
    operations = sum(one.operations for one in soaked.rounds)
    failed, refused = sum(one.failed for one in soaked.rounds), sum(one.refused for one in soaked.rounds)
    screen.show(
        f"{len(soaked.rounds)} rounds: {operations} operations, {failed} failed, {refused} refused, "
        f"{soaked.wrong_blocks} wrong, {soaked.lost_blocks} lost in the end; {soaked.lost_slots} slots lost"
    )
    for goal in soaked.missed():
        screen.show(f"[bold red]missed:[/] {goal}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
