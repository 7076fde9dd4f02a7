"""make guidelines: Beluga's guidelines for load and store, through segments on a star of the emulator.

Readers and storage nodes are real processes on real links; nothing is scaled. What depends on the cost of a
request is measured with one reader on fast links, what depends on many sharing a link on slow ones. A second
table has each ratio beside the one that Beluga's paper gives. Writes results/guidelines/summary.json.
"""

from __future__ import annotations

import json
import queue
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

from pydantic.dataclasses import dataclass
from rich.table import Table

from commands.command import Screen, run_command
from commands.declarations import DECLARED, Variable, Within
from commands.intervals import mean_interval
from commands.options import read
from controller.config import Config, PoolSize, Thresholds
from emulator.control_plane import start_controller, switch_configs
from emulator.machine import CpuWatch, busy_complaints
from emulator.processes import READY_TIMEOUT_S, Events, LineProcess, wait_for
from emulator.result import PROGRAM, revision
from experiments.guidelines.cases import PAGE_BYTES, SEGMENT_BYTES, Case, cases
from experiments.guidelines.page import write_page
from experiments.guidelines.result import Compared, Measured, compare
from experiments.logs import open_network
from hostlib.protocol.wire import fragment_count
from topologies.engines import make_engine
from topologies.machine_check import check_machine
from topologies.network import Network
from topologies.star import star

POOL_BLOCKS = 256
STORES = 2
ENGINE = "embedded"
SEED = 0
"""Of the first reader in the first run; each has one of its own."""
STORE_BYTES = 256 << 20
START_DELAY_S = 0.4
"""From the command to the first load: readers look for the segment's version meanwhile."""
WARM_S = 0.4
"""From the first load to the first byte that counts."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class GuidelinesOptions:
    """How much is measured."""

    nodes: Annotated[int, Within(2, 32)] = 8
    """Reading nodes at the most."""
    link_mbit_s: Annotated[float, Within(1, 10_000), Variable("LINK_MBIT")] = 20.0
    """Rate of links where they are to be full, Mbit/s."""
    fast_link_mbit_s: Annotated[float, Within(1, 10_000), Variable("FAST_LINK_MBIT")] = 1000.0
    """Rate of links for a single reader, Mbit/s."""
    seconds: Annotated[float, Within(0.1, 60)] = 1.2
    """That each case is measured."""
    runs: Annotated[int, Within(1, 20)] = 3
    """How often each case is measured, all cases in turn."""
    results: Path = Path("results/guidelines")
    """Folder for the results."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0; 2: it could not run."""

    def parse(given: Sequence[str]) -> GuidelinesOptions:
        return read(GuidelinesOptions, given, "weir guidelines", __doc__ or "")

    return run_command(arguments, parse, _run)


def _run(screen: Screen, options: GuidelinesOptions) -> int:
    check_machine()
    engine = make_engine(ENGINE)
    wanted = cases(options.nodes)
    found: dict[Case, list[Measured]] = {case: [] for case in wanted}
    fragments = fragment_count(PAGE_BYTES)
    size = PoolSize(POOL_BLOCKS, POOL_BLOCKS * fragments, fragments)
    watch = CpuWatch()
    watch.start()
    with screen.progress() as progress:
        task = progress.add_task("loading", total=options.runs * len(wanted))
        for full in (False, True):
            rate = 1e6 * (options.link_mbit_s if full else options.fast_link_mbit_s)
            fabric = star(options.nodes if full else 1, STORES, rate)
            about = _about(options)
            with open_network(screen, fabric, engine, options.results, about, append=full) as network:
                artifacts = engine.compile(PROGRAM, size.defines, network.directory)
                for pool in (False, True):
                    these = [case for case in wanted if (case.links_full, case.pool) == (full, pool)]
                    if not these:
                        continue
                    config = Config(
                        switches=switch_configs(network, artifacts, size), policy="lru", pool=pool,
                        merging=pool, thresholds=Thresholds(report_count=1, eviction="drop"),
                    )  # fmt: skip
                    with _cluster(network, config, rate, "pool" if pool else "forward") as cluster:
                        for run in range(options.runs):
                            for case in these:
                                found[case].append(cluster.measure(case, run, options.seconds))
                                progress.advance(task)
    use = watch.stop()
    compared = compare(found)
    screen.show(_table(found))
    screen.show(_comparison(compared))
    failed = sum(one.failed for runs in found.values() for one in runs)
    if failed:
        screen.warn(f"{failed} requests could not be loaded: the machine is too busy for these rates")
    complaints = busy_complaints({"in all cases": use.mean})
    complaints += [f"{failed} requests could not be loaded"] if failed else []
    page = write_page(options.results, _about(options), found, compared, complaints)
    screen.say(f"Written to {_write(options, found, compared)}; to look at: {page}")
    return 0


class Cluster:
    """Storage nodes with segments, and readers."""

    def __init__(self, readers: list[LineProcess], homes: list[str], events: Events) -> None:
        self._readers, self._homes, self._events = readers, homes, events
        self._written: set[str] = set()

    def measure(self, case: Case, run: int, seconds: float) -> Measured:
        """Play a case once."""
        homes = self._homes[: case.homes]
        name = f"{case.page_bytes} over {case.homes}"
        if name not in self._written:
            self._written.add(name)
            segment = {"name": name, "size": SEGMENT_BYTES, "page_bytes": case.page_bytes, "homes": homes}
            self._tell(self._readers[:1], "written", [{"write": segment}])
        at_s = time.monotonic() + START_DELAY_S
        reads = [
            {
                "read": {
                    "name": name, "homes": homes, "request_bytes": case.request_bytes,
                    "in_flight": case.in_flight, "warm_s": WARM_S, "seconds": seconds, "at_s": at_s,
                    "seed": SEED + 1000 * run + number, "hot": case.hot,
                }
            }
            for number in range(case.nodes)
        ]  # fmt: skip
        readers = self._readers[: case.nodes]
        self._tell(readers, "read", reads)
        said = [reader.said["read"] for reader in readers]
        latencies = sorted(one["latency_ms"] for one in said)
        total = sum(one["bytes"] for one in said)
        failed = sum(one["failed"] for one in said)
        return Measured(total / seconds / 1e6, latencies[len(latencies) // 2], failed)

    def _tell(self, readers: list[LineProcess], event: str, commands: list[dict[str, Any]]) -> None:
        for reader, command in zip(readers, commands, strict=True):
            reader.send(json.dumps(command))
        wait_for(event, readers, self._events, READY_TIMEOUT_S)


@contextmanager
def _cluster(network: Network, config: Config, link_bit_s: float, name: str) -> Iterator[Cluster]:
    directory = network.directory / name
    directory.mkdir()
    events: Events = queue.SimpleQueue()
    fabric = network.fabric
    homes = [str(fabric.hosts[store].ipv4) for store in fabric.stores]
    network.start_switches()
    processes: list[LineProcess] = []
    try:
        processes.append(start_controller(config, network, directory, events))
        for host in (*fabric.stores, *fabric.nodes):
            address = str(fabric.hosts[host].ipv4)
            settings: dict[str, Any] = {"address": address, "homes": homes}
            module = "experiments.guidelines.reader"
            if host in fabric.stores:
                module = "hostlib.storage.storage"
                settings = {
                    "address": address, "result": str(directory / f"{host}.result.json"),
                    "block_bytes": PAGE_BYTES, "dram_bytes": STORE_BYTES,
                    "link_bit_s": link_bit_s,
                }  # fmt: skip
            path = directory / f"{host}.json"
            path.write_text(json.dumps(settings))
            command = [sys.executable, "-m", module, str(path)]
            popen = partial(network.popen, host)
            processes.append(LineProcess(host, command, directory / f"{host}.log", popen, events))
        wait_for("ready", processes, events, READY_TIMEOUT_S)
        stores, readers = processes[1 : 1 + STORES], processes[1 + STORES :]
        for store in stores:
            store.send("start")
        yield Cluster(readers, homes, events)
    finally:
        for process in processes:
            process.stop()
        network.stop_switches()


def _table(found: dict[Case, list[Measured]]) -> Table:
    table = Table(title="Load through segments: mean ± 95 % interval over runs", title_justify="left")
    for title in ("guideline", "case", "MB/s", "of the first", "request p50, ms"):
        table.add_column(title, justify="left" if title in ("guideline", "case") else "right")
    first: dict[str, float] = {}
    for case, runs in found.items():
        rate = mean_interval([one.mbyte_s for one in runs])
        latency = mean_interval([one.latency_ms for one in runs])
        new = case.guideline not in first
        base = first.setdefault(case.guideline, rate.mean)
        table.add_row(
            case.guideline if new else "", case.label, f"{rate:.2f}",
            f"{rate.mean / base:.2f}" if base else "", f"{latency.mean:.1f}",
        )  # fmt: skip
    return table


def _comparison(compared: list[Compared]) -> Table:
    table = Table(title="Beside Beluga's paper: ratios of throughput", title_justify="left")
    for title in ("guideline", "ratio of", "here", "published", "direction", "of published"):
        table.add_column(
            title, justify="left" if title in ("guideline", "ratio of", "direction") else "right"
        )
    for one in compared:
        table.add_row(one.published.guideline, *one.cells())
    return table


def _about(options: GuidelinesOptions) -> dict[str, object]:
    return {
        "seed": SEED,
        "revision": revision(),
        "engine": ENGINE,
        "link_mbit_s": options.link_mbit_s,
        "fast_link_mbit_s": options.fast_link_mbit_s,
        "seconds": options.seconds,
    }


def _write(options: GuidelinesOptions, found: dict[Case, list[Measured]], compared: list[Compared]) -> Path:
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / "summary.json"
    record = {
        **_about(options),
        "cases": [asdict(case) | {"runs": [asdict(one) for one in runs]} for case, runs in found.items()],
        "published": [
            asdict(one.published)
            | {"ratio": one.ratio.mean, "half": one.ratio.half if isfinite(one.ratio.half) else None}
            | {"direction": one.direction, "of_published": one.of_published}
            for one in compared
        ],
    }
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
