"""Computation of points on a Dask cluster, a local one or one given by address, each at most once."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

# distributed takes a second to import, so that it is imported only where it is used. It has type hints for
# its users, but not on all of its functions: hence the ignores below.
from commands.errors import ExperimentError
from experiments.study.results import Figures, ResultStore, code_hash, point_name
from scenario import Scenario
from simulator.simulation import simulate

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

RETRIES = 3
"""Number of times that a point is computed again because its worker died."""
CONNECT_TIMEOUT_S = 10
TASKS_PER_THREAD = 2
QUEUED_S = 10.0
"""Seconds of work that wait for each process of a cluster that grows.

Dask starts another worker for each five seconds of waiting work.
"""
MOST_QUEUED = 10_000
"""Largest number of points that such a cluster has at a time."""
RESUME_HINT = "what was computed is kept: start it again and it goes on from there"

OnDone = Callable[[int, int, int], None]
"""Function called with the number of points done, of all points, and of the done points known before."""


class ClusterError(ExperimentError):
    """A cluster that cannot be reached, ended, or runs other code."""


def compute_point(scenario: Scenario, code: str) -> Figures:
    """Compute a point on a worker; raises ClusterError if the worker's code does not have the hash `code`."""
    if code_hash() != code:
        raise ClusterError(_other_code([socket.gethostname()]))
    figures = simulate(scenario).to_dict()
    del figures["link_bytes"]  # hundreds of figures that the study does not read
    return figures


def _other_code(workers: Sequence[str]) -> str:
    return (
        f"SCHEDULER: workers have other files of Weir than this machine: {', '.join(workers)}. Check out the "
        "same revision there, with the same changes, and start them again"
    )


def check_workers(client: Client, address: str) -> None:
    """Raise ClusterError if Python, packages or code differ among the client, the scheduler and the workers.

    A worker that comes later is checked at its first point.
    """
    try:
        client.get_versions(check=True)
    except ValueError as error:
        raise ClusterError(
            f"SCHEDULER {address}: versions differ: {error}\nUse the environment of make setup-all, of one "
            "revision, everywhere"
        ) from None
    hashes = client.run(code_hash)
    others = [worker for worker, code in hashes.items() if code != code_hash()]
    if others:
        raise ClusterError(_other_code(sorted(others)))


@contextmanager
def cluster(address: str | None, workers: int | None = None) -> Iterator[Client]:
    """Yield a client of the scheduler at `address` (tcp://host:port), or of a local cluster on all cores."""
    import dask
    from distributed import Client

    # Futures report failures. A heartbeat that comes while workers end would log a traceback besides.
    dask.config.set(
        {"distributed.scheduler.allowed-failures": RETRIES, "distributed.logging.distributed": "critical"}
    )
    if address:
        try:
            client = Client(address, timeout=CONNECT_TIMEOUT_S)  # type: ignore[no-untyped-call]
        except (OSError, ValueError, TimeoutError) as error:
            raise ClusterError(f"SCHEDULER {address}: no Dask scheduler answers there ({error})") from None
        with client, _quiet_if_cut_off():
            check_workers(client, address)
            yield client
        return
    count = workers or len(os.sched_getaffinity(0))
    with (
        _local_cluster(count) as local,
        Client(local) as client,  # type: ignore[no-untyped-call]
        _quiet_if_cut_off(),
    ):
        yield client


@contextmanager
def _quiet_if_cut_off() -> Iterator[None]:
    """Silence the tracebacks of calls that an interrupt or the scheduler's end cut off."""
    try:
        yield
    except (KeyboardInterrupt, ClusterError):
        for name in ("tornado.application", "distributed.client", "distributed.utils"):
            logging.getLogger(name).disabled = True
        raise


def _local_cluster(workers: int) -> LocalCluster:
    """Start a local cluster whose processes ignore Ctrl-C, which goes to all of a terminal; they
    end with this one."""
    from distributed import LocalCluster

    previous_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # processes started meanwhile inherit it
    try:
        return LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        )
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def _next(arriving: Any) -> Any:
    """Return the next future with its figures, or None after the last; raises ClusterError if
    the cluster is gone."""
    from distributed import KilledWorker

    try:
        future, figures = next(arriving)
    except StopIteration:
        return None
    except KilledWorker as error:
        died = f"the worker of one point died {RETRIES + 1} times ({error})"
        raise ClusterError(f"{died}; {RESUME_HINT}") from None
    if isinstance(figures, BaseException):  # what futures give that ended with their scheduler
        raise _gone(figures)
    return future, figures


def _gone(error: BaseException) -> ClusterError:
    return ClusterError(f"the Dask scheduler is gone ({type(error).__name__}); {RESUME_HINT}")


class Computer:
    """Figures of scenarios, from the store or from the cluster."""

    def __init__(self, client: Client, store: ResultStore, on_done: OnDone, grows: bool = False) -> None:
        """Take the client and the store; `grows` says whether the cluster may start
        workers for waiting points."""
        self._client, self._store, self._on_done, self._grows = client, store, on_done, grows
        self._computed_points, self._computing_s = 0, 0.0

    def all(self, scenarios: Sequence[Scenario]) -> list[Figures]:
        """Return the figures in the order of the scenarios; each is stored as soon as it is computed."""
        found = self.simulate_until(scenarios, float("inf"))
        return [figures for figures in found if figures is not None]

    def simulate_until(self, scenarios: Sequence[Scenario], deadline_s: float) -> list[Figures | None]:
        """Return the figures, or None for scenarios that are not computed by
        the deadline (of time.monotonic).

        Points that the cluster has by then are waited for. Scenarios are begun in their order, one for each
        process, so that those left out are the last ones.
        """
        names = [point_name(scenario) for scenario in scenarios]
        found: dict[str, Figures] = {}
        missing: dict[str, Scenario] = {}
        for name, scenario in zip(names, scenarios, strict=True):
            figures = self._store.get(name)
            if figures is None:
                missing[name] = scenario
            else:
                found[name] = figures
        total, known = len(found) + len(missing), len(found)
        self._on_done(known, total, known)
        for name, figures in self._computed(missing, deadline_s):
            self._store.put(name, figures)
            found[name] = figures
            self._on_done(len(found), total, known)
        return [found.get(name) for name in names]

    def _computed(self, missing: dict[str, Scenario], deadline_s: float) -> Iterator[tuple[str, Figures]]:
        if not missing:
            return
        from distributed import as_completed

        waiting = iter(missing.items())
        futures: dict[Any, str] = {}
        arriving = as_completed([], with_results=True)  # type: ignore[no-untyped-call]
        while True:
            if time.monotonic() < deadline_s:
                for name, scenario in islice(waiting, max(0, self._most_at_a_time() - len(futures))):
                    future = self._submit(name, scenario)
                    futures[future] = name
                    arriving.add(future)  # type: ignore[no-untyped-call]
            done = _next(arriving)
            if done is None:
                return
            future, figures = done
            self._computed_points += 1
            self._computing_s += figures["cpu_s"]
            yield futures.pop(future), figures

    def _submit(self, name: str, scenario: Scenario) -> Any:
        return self._client.submit(compute_point, scenario, code_hash(), key=f"point-{name}", retries=RETRIES)

    def _most_at_a_time(self) -> int:
        """Return how many simulations the cluster gets at a time: for each process one that runs
        and one that waits.

        A cluster that grows gets more, because it starts workers by the seconds of work that
        wait for each process.
        """
        try:
            threads = max(1, sum(self._client.nthreads().values()))  # type: ignore[no-untyped-call]
        except (OSError, TimeoutError) as error:
            raise _gone(error) from None
        most = TASKS_PER_THREAD * threads
        if self._grows and self._computing_s:
            each_s = self._computing_s / self._computed_points
            most = max(most, min(MOST_QUEUED, math.ceil(threads * QUEUED_S / each_s)))
        return most
