"""Computing on a real scheduler and real workers over TCP: nothing is lost, nothing computed twice."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.checkout import files_here
from experiments.study.compute import ClusterError, Computer, cluster, compute_point
from experiments.study.results import ResultStore, code_hash, point_name
from experiments.study.systems import Setting, system
from scenario import Scenario

WAIT_S = 60.0
ROOT = Path(__file__).parents[3]


def scenarios(count: int, requests: int = 60) -> list[Scenario]:
    setting = Setting(requests=requests, nodes=4)
    return [system("switch", replace(setting, seed=seed)) for seed in range(1, count + 1)]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, "took too long"
        time.sleep(0.05)


@contextmanager
def process(*arguments: str, folder: Path = ROOT) -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=None if folder == ROOT else {**os.environ, "PYTHONPATH": str(folder)},
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


@contextmanager
def scheduler_with_workers(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler and workers as processes of their own, over TCP; the scheduler is the last."""
    with ExitStack() as stack:
        file = folder / "scheduler.json"
        scheduler = stack.enter_context(
            process("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
                    "--no-dashboard", "--scheduler-file", str(file))
        )  # fmt: skip
        wait_until(lambda: file.exists() and '"address"' in file.read_text())
        address = file.read_text().split('"address": "')[1].split('"')[0]
        assert address.startswith("tcp://")
        started = [
            stack.enter_context(
                process("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny",
                        "--no-dashboard", "--local-directory", str(folder / f"worker{number}"))
            )
            for number in range(workers)
        ]  # fmt: skip
        yield address, [*started, scheduler]


def ignore(done: int, total: int, known: int) -> None:
    pass


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_worker_killed_half_way_loses_nothing(tmp_path: Path) -> None:
    wanted = scenarios(10)
    killed = threading.Event()
    with scheduler_with_workers(tmp_path, 2) as (address, workers), cluster(address) as client:
        client.wait_for_workers(2, timeout=WAIT_S)

        def kill_half_way(done: int, total: int, known: int) -> None:
            if done >= total // 2 and not killed.is_set():
                killed.set()
                os.kill(workers[0].pid, signal.SIGKILL)

        figures = Computer(client, ResultStore(tmp_path / "points"), kill_half_way).all(wanted)
        assert killed.is_set()
        assert workers[0].wait(WAIT_S) == -signal.SIGKILL
        assert workers[1].poll() is None
    assert [found["completed"] for found in figures] == [60] * 10
    alone = compute_point(wanted[-1], code_hash())
    assert {**figures[-1], "cpu_s": 0} == {**alone, "cpu_s": 0}


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_scheduler_killed_half_way_is_a_clear_error_and_nothing_is_lost(tmp_path: Path) -> None:
    wanted, store = scenarios(6, requests=20), ResultStore(tmp_path / "points")
    with scheduler_with_workers(tmp_path, 1) as (address, processes), cluster(address) as client:
        client.wait_for_workers(1, timeout=WAIT_S)

        def kill_half_way(done: int, total: int, known: int) -> None:
            if done == 2:
                processes[-1].kill()

        with pytest.raises(ClusterError, match=r"scheduler is gone.*kept"):
            Computer(client, store, kill_half_way).all(wanted)
    kept = len(store)
    assert 2 <= kept < len(wanted)
    seen: list[int] = []
    with cluster(None, workers=1) as client:
        Computer(client, store, lambda done, total, known: seen.append(known)).all(wanted)
    assert seen[0] == kept


CLIENT = """
import sys
from pathlib import Path
from experiments.study.compute import Computer, cluster
from experiments.study.results import ResultStore
from tests.experiments.study.test_compute import ignore, scenarios
with cluster(sys.argv[1]) as client:
    Computer(client, ResultStore(Path(sys.argv[2])), ignore).all(scenarios(6, requests=20))
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_client_killed_half_way_goes_on_from_what_is_stored(tmp_path: Path) -> None:
    wanted, points = scenarios(6, requests=20), tmp_path / "points"
    command = [sys.executable, "-c", CLIENT]

    def stored() -> dict[str, tuple[int, bytes]]:
        return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in points.glob("*.json")}

    with scheduler_with_workers(tmp_path, 1) as (address, _):
        with subprocess.Popen([*command, address, str(points)], cwd=ROOT) as first:
            wait_until(lambda: len(stored()) >= 2)
            first.kill()
        kept = stored()
        assert first.returncode == -signal.SIGKILL
        assert len(kept) < len(wanted)
        subprocess.run([*command, address, str(points)], cwd=ROOT, check=True, timeout=2 * WAIT_S)
    assert {name: stored()[name] for name in kept} == kept
    assert len(stored()) == len(wanted)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_what_is_known_is_not_computed_again(tmp_path: Path) -> None:
    wanted = scenarios(4, requests=20)
    store = ResultStore(tmp_path / "points")
    seen: list[tuple[int, int, int]] = []
    with cluster(None, workers=1) as client:
        computer = Computer(client, store, lambda *counts: seen.append(counts))
        computer.all(wanted[:2])
        first = {
            name: (tmp_path / "points" / f"{name}.json").stat().st_mtime_ns
            for name in map(point_name, wanted[:2])
        }
        computer.all([*wanted, *wanted])
        assert len(store) == 4
        assert seen[-1] == (4, 4, 2)
        for name, written in first.items():
            assert (tmp_path / "points" / f"{name}.json").stat().st_mtime_ns == written
    store.put(point_name(wanted[0]), {"marked": True})

    class NoClient:
        """Submitting anything to it fails."""

    assert Computer(NoClient(), store, ignore).all([wanted[0]]) == [{"marked": True}]  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_workers_that_come_with_the_points_are_used(tmp_path: Path) -> None:
    from distributed import LocalCluster

    wanted, seen = scenarios(60, requests=20), set()
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=0, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as local:
        local.adapt(minimum=0, maximum=2, interval="200ms", target_duration="500ms")
        with cluster(local.scheduler_address) as client:

            def look(done: int, total: int, known: int) -> None:
                seen.add(len(client.nthreads()))  # type: ignore[no-untyped-call]

            store = ResultStore(tmp_path / "points")
            figures = Computer(client, store, look, grows=True).all(wanted)
    assert len(figures) == len(wanted)
    assert max(seen) == 2


@pytest.mark.timeout(60)
def test_an_interrupted_sweep_keeps_what_it_has(tmp_path: Path) -> None:
    wanted, store = scenarios(4, requests=20), ResultStore(tmp_path / "points")

    def interrupt(done: int, total: int, known: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with cluster(None, workers=1) as client:
        with pytest.raises(KeyboardInterrupt):
            Computer(client, store, interrupt).all(wanted)
        assert len(store) == 2
        seen: list[int] = []
        Computer(client, store, lambda done, total, known: seen.append(known)).all(wanted)
    assert seen[0] == 2
    assert len(store) == 4


def test_a_worker_with_other_files_computes_nothing() -> None:
    with pytest.raises(ClusterError, match="other files of Weir than this machine"):
        compute_point(scenarios(1)[0], "another")


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_workers_of_another_revision_are_refused_by_name(tmp_path: Path) -> None:
    from distributed import Client

    other = tmp_path / "other"
    for name in files_here():
        if name.endswith((".py", ".json", ".c", ".h", ".toml")) and not name.startswith("tests/"):
            (other / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, other / name)
    with (other / "simulator" / "simulation.py").open("a") as file:
        file.write("# changed\n")
    with scheduler_with_workers(tmp_path, 1) as (address, _), ExitStack() as stack:
        with cluster(address) as client:
            client.wait_for_workers(1, timeout=WAIT_S)
        stack.enter_context(process("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny",
                                    "--no-dashboard", "--name", "stranger", folder=other))  # fmt: skip
        with Client(address) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(2, timeout=WAIT_S)
        with (
            pytest.raises(ClusterError, match=r"other files of Weir.*tcp://127.0.0.1:\d+\. "),
            cluster(address),
        ):
            pass


def test_a_scheduler_that_is_not_there_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.study.compute.CONNECT_TIMEOUT_S", 1)
    with pytest.raises(ClusterError, match="no Dask scheduler answers"), cluster("tcp://127.0.0.1:9"):
        pass
