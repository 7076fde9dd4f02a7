"""The controller as a process: its workers, what it prints, and what it reports at the end."""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from controller.block_id import tenant_of
from controller.costs import add_up
from controller.deletions import Deletions
from controller.errors import ConfigError, ControllerError
from controller.membership import Membership, first_epoch
from controller.p4_constants import OUTCOME_NAMES
from controller.p4runtime.channel import let_threads_sleep
from controller.p4runtime.session import Session
from controller.policies import PolicyError, make_policy
from controller.policies.eventlog import Head, to_line
from controller.policies.explain import in_words
from controller.policies.reuse.reuse import Reuse
from controller.pool import residents
from controller.pool.phantom import PhantomAdapter, other_key
from controller.pool.placement import View, admits
from controller.pool.pool import Pool
from controller.pool.residents import ResidentsReport
from controller.pool.residual_value import ResidualValue
from controller.worker import SwitchWorker
from hostlib.protocol import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from controller.config import Config, SwitchConfig
    from controller.operations import Adapter
    from controller.policies import Event
    from controller.pool.block_history import BlockRecord

PROGRESS_PERIOD_S: Final = 1.0
HOTTEST_BLOCKS: Final = 20
STOP_TIMEOUT_S: Final = 0.7
"""Seconds to wait for all workers together at the end; a switch that does not answer must not hold it up."""


class ControllerProcess:
    """One run of the controller, from ready to stop. Use as a context manager: it closes the event logs."""

    def __init__(self, config: Config, event_logs: Path | None = None) -> None:
        """Make the controller. Raises ConfigError or P4InfoError."""
        self._config = config
        self._started_s = time.monotonic()
        self._stopping = threading.Event()
        self._files = ExitStack()
        # Of two controllers, the one that was started last is the switches' primary one.
        first_election_id = int(time.time() * 1000) << 16
        stores = {store for switch in config.switches for store in switch.stores}
        self.membership = Membership(stores, config.replicas, first_epoch(time.time()))
        self._deletions = Deletions(wire.numbered_from(self._started_s))
        self.workers = [self._worker(switch, first_election_id, event_logs) for switch in config.switches]
        self._residents = None if config.router is None else ResidentsReport(config.router)

    def __enter__(self) -> ControllerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()
        if self._residents is not None:
            self._residents.close()

    def stop(self) -> None:
        """Make `run` return."""
        self._stopping.set()

    def report(self) -> None:
        """Print the results so far."""
        _emit("report", **self.results())

    def run(self) -> None:
        """Work until `stop`; raises ControllerError if a worker can't go on."""
        let_threads_sleep()
        for worker in self.workers:
            worker.start()
        ready = False
        due_s = time.monotonic() + PROGRESS_PERIOD_S
        try:
            while not self._stopping.wait(0.02 if not ready else self._pause_s(due_s)):
                self._raise_failure()
                if self._residents is not None:
                    self._residents.tell(self.held())
                if not ready and all(worker.ready.is_set() for worker in self.workers):
                    ready = True
                    _emit("ready")
                if time.monotonic() >= due_s:
                    due_s += PROGRESS_PERIOD_S
                    _emit("progress", **self._progress())
        finally:
            self._stop_workers()

    def _pause_s(self, due_s: float) -> float:
        pause_s = max(0.0, due_s - time.monotonic())
        return pause_s if self._residents is None else min(pause_s, residents.PERIOD_S)

    def held(self) -> dict[str, list[bytes]]:
        """Return each switch's blocks as a router hears of them: a phantom's under keys that nobody asks
        for."""
        known_as = other_key if self._config.phantom else bytes
        return {worker.name: [known_as(key) for key in worker.pool.there] for worker in self.workers}

    def results(self) -> dict[str, Any]:
        """Return sums over all switches, then each switch."""
        totals = add_up(
            [part for worker in self.workers for part in (worker.pool.counts, worker.session.costs)]
        )
        return {
            "policy": self._config.policy if self._config.pool else None,
            "wall_s": self._wall_s,
            "cpu_s": round(time.process_time(), 3),
            **totals,
            "members": {member.address: member.state.name for member in self.membership.members.nodes},
            "outcomes": self._outcomes,
            "switches": {worker.name: _switch_results(worker) for worker in self.workers},
        }

    @property
    def _wall_s(self) -> float:
        return round(time.monotonic() - self._started_s, 3)

    @property
    def _outcomes(self) -> dict[str, int]:
        """Return the packets by outcome, of all switches together."""
        return _named([sum(each) for each in zip(*(worker.outcomes for worker in self.workers), strict=True)])

    def hottest(self) -> dict[str, list[dict[str, Any]]]:
        """Return, by switch, what its pool did with the blocks that were wanted most, and why, as its policy
        says.

        Times are CLOCK_MONOTONIC's. Policies that give no reasons have none here.
        """
        return {worker.name: _hottest(worker.pool) for worker in self.workers}

    def _progress(self) -> dict[str, Any]:
        counts = [worker.pool.counts for worker in self.workers]
        costs = [worker.session.costs for worker in self.workers]
        return {
            "t_s": self._wall_s,
            "cpu_s": round(time.process_time(), 3),
            "connected": sum(worker.connected for worker in self.workers),
            "resident": sum(len(worker.pool.resident) for worker in self.workers),
            "free_slots": sum(worker.pool.slots.free_slots for worker in self.workers),
            "used_slots": sum(worker.pool.used_slots for worker in self.workers),
            "admitted": sum(one.admitted for one in counts),
            "evicted": sum(one.evicted for one in counts),
            "hits": sum(one.hits for one in counts),
            "digests": sum(one.digests for one in costs),
            "p4runtime_writes": sum(one.p4runtime_writes for one in costs),
            "outcomes": self._outcomes,
            "pools": {
                worker.name: {
                    "resident": len(worker.pool.resident),
                    "hottest": worker.pool.block_history.hot_residents,
                    "decisions": worker.pool.block_history.decisions,
                }
                for worker in self.workers
            },
        }

    def _stop_workers(self) -> None:
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        for worker in self.workers:
            worker.stop()
        for worker in self.workers:
            worker.join(max(0.0, deadline_s - time.monotonic()))

    def _raise_failure(self) -> None:
        for worker in self.workers:
            if worker.failure is not None:
                raise worker.failure

    def _worker(self, switch: SwitchConfig, first_election_id: int, logs: Path | None) -> SwitchWorker:
        config = self._config
        size, thresholds = switch.pool, config.thresholds
        if not config.pool:
            # Nothing is reported (0: never), and no block fits.
            size, thresholds = replace(size, blocks=0), replace(thresholds, report_count=0)
        capacity_blocks, capacity_slots = size.capacity(thresholds.spare_blocks(size.whole_blocks))
        cost = config.costs.cost_model()
        links_bit_s = {link.store: link.link_bit_s for link in config.costs.home_links}
        residual = ResidualValue(cost, config.costs.link_bit_s, config.costs.speed, links_bit_s)
        try:
            policy = make_policy(
                config.policy,
                capacity_blocks,
                seed=config.seed,
                cost=cost,
                link_bit_s=config.costs.link_bit_s,
                capacity_slots=capacity_slots,
            )
        except PolicyError as error:
            raise ConfigError(str(error)) from None
        session = Session(switch, first_election_id, config.merging)
        adapter: Adapter = session.adapter
        if config.phantom:
            adapter, thresholds = PhantomAdapter(adapter), replace(thresholds, eviction="drop")
        head = Head(
            config.policy,
            capacity_blocks,
            capacity_slots,
            config.costs.link_bit_s,
            config.costs.model,
            config.costs.gpu,
            config.costs.block_tokens,
            config.costs.stored_share,
        )
        log = None if logs is None else self._event_log(logs / f"{switch.name}.jsonl", head)
        placed_here = partial(admits, config.placement, View.of(switch))
        pool = Pool(
            size, thresholds, switch.stores, policy, adapter, residual, log, config.push, placed_here
        )  # fmt: skip
        hosts = [port.host.ipv4 for port in switch.ports if port.host is not None]
        return SwitchWorker(
            switch.name, session, pool, self.membership, hosts, switches=len(config.switches),
            deletions=self._deletions,
        )  # fmt: skip

    def _event_log(self, path: Path, head: Head) -> Callable[[Event], None]:
        try:
            file = self._files.enter_context(path.open("w"))
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from None
        print(head.to_line(), file=file)
        return lambda event: print(to_line(event), file=file)


def _switch_results(worker: SwitchWorker) -> dict[str, Any]:
    return {
        "resident": len(worker.pool.resident),
        "tenants": worker.pool.held_by_tenant(),
        "pool": asdict(worker.pool.counts),
        "costs": asdict(worker.session.costs),
        "outcomes": _named(worker.outcomes),
    }


def _named(packets: Iterable[int]) -> dict[str, int]:
    """Return the packets by the name of what became of them, without the zeros."""
    return {name: count for name, count in zip(OUTCOME_NAMES, packets, strict=True) if count}


def _hottest(pool: Pool) -> list[dict[str, Any]]:
    return [_described(pool, *found) for found in pool.block_history.most_wanted(HOTTEST_BLOCKS)]


def _described(pool: Pool, block: bytes, record: BlockRecord) -> dict[str, Any]:
    policy = pool.policy
    why = in_words(policy.explain(block, tenant_of(block))) if isinstance(policy, Reuse) else []
    return {
        "block": block.hex(),
        "depth": record.depth,
        "reported": record.reported,
        "hits": record.hits,
        "in_pool": block in pool.resident,
        "turns": list(record.turns),
        "why": why,
    }


def _emit(event: str, **fields: Any) -> None:
    # One write: the main thread and the one that obeys commands both come here.
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Write the results file; raises ControllerError."""
    try:
        path.write_text(json.dumps(results, indent=1) + "\n")
    except OSError as error:
        raise ControllerError(f"{path}: {error.strerror}") from None
