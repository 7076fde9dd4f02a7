"""Runner of the simulation that a scenario describes."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from commands.toml_file import ScenarioError
from scenario import Scenario
from simulator.checks import check, in_gb
from simulator.control import SwitchControl
from simulator.events import Event, Steps
from simulator.outcome import outcome
from simulator.result import SimResult
from simulator.switch import Switch
from simulator.system import System
from simulator.workload import Demand, make_demand
from workload.schedule import Route
from workload.session_order import awaited, waits_for
from workload.trace import Request

LONGEST_DRAIN_S = 1e6
"""Seconds after the last arrival at which a run that is not done is given up."""


def simulate(scenario: Scenario) -> SimResult:
    """Run a scenario and return its result; raises ScenarioError if it is impossible."""
    with _without_collector():
        return _simulated(scenario, time.process_time())


def _simulated(scenario: Scenario, began_s: float) -> SimResult:
    prepared, demand = prepare(scenario)
    system = System(prepared, demand)
    _Run(system).to_the_end()
    return outcome(system, time.process_time() - began_s)


def prepare(scenario: Scenario) -> tuple[Scenario, Demand]:
    """Return a checked scenario, with memory in GB, and its demand; raises ScenarioError.

    This finds everything that can be found wrong before anything runs.
    """
    check(in_gb(scenario))
    demand = make_demand(scenario.workload, scenario.model.block_tokens, scenario.nodes.blend)
    scenario = in_gb(scenario.changed(model={"block_tokens": demand.block_tokens}))
    check(scenario)
    return scenario, demand


@contextmanager
def _without_collector() -> Iterator[None]:
    """Switch the garbage collector off: with millions of objects and hardly any cycles it took a third of a
    run."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.collect(0)  # once: nothing refers to a simulation that has ended
            gc.enable()


class _Run:
    def __init__(self, system: System) -> None:
        self._system, self._loop = system, system.loop
        self._left = len(system.demand.requests)
        self._done = self._loop.event()
        self._answered: dict[int, Event] = {
            number: self._loop.event() for number in awaited(system.demand.requests)
        }
        """Events of the answers that other requests wait for, by number of the request."""

    def to_the_end(self) -> None:
        """Run until all requests are served; raises ScenarioError if that is out of reach."""
        system, requests = self._system, self._system.demand.requests
        for control in system.controls:
            self._tick(control)
        for switch in system.switches:
            self._forget(switch)
        arrivals = system.router.arrivals(requests)
        system.warm()
        if system.scenario.workload.clients:
            for _ in range(min(system.scenario.workload.clients, len(requests))):
                self._loop.start(self._client(arrivals))
        else:
            self._loop.start(self._arrivals(arrivals))
        self._loop.run(until=self._done)

    def _tick(self, control: SwitchControl) -> None:
        self._loop.after(control.tick(), self._tick, control)

    def _forget(self, switch: Switch) -> None:
        if self._loop.now > self._system.demand.requests[-1].arrival_s + LONGEST_DRAIN_S:
            raise ScenarioError(
                f"{self._left} requests were not served {LONGEST_DRAIN_S:.0f} s after the last came: "
                "the load is far beyond what this hardware can bear"
            )
        switch.forget_counts()
        self._loop.after(self._system.scenario.pool.sketch_epoch_s, self._forget, switch)

    def _arrivals(self, arrivals: Iterator[tuple[Request, Route | None]]) -> Steps:
        for request, planned in arrivals:
            before = waits_for(request, self._answered)
            if before:
                self._loop.start(self._follow(request, planned, before))
                continue
            if request.arrival_s > self._loop.now:
                yield request.arrival_s - self._loop.now
            self._loop.start(self._serve(request, planned))

    def _follow(self, request: Request, planned: Route | None, before: Sequence[int]) -> Steps:
        """Serve a session's next request after the answers it waits for, so a slow system delays it."""
        assert request.place is not None
        for number in before:
            yield self._answered[number]
        yield request.place.think_s
        yield from self._serve(request, planned)

    def _client(self, arrivals: Iterator[tuple[Request, Route | None]]) -> Steps:
        for request, planned in arrivals:
            yield self._loop.process(self._serve(request, planned))

    def _first_token(self, request: Request, route: Route) -> None:
        if request.place is not None:
            self._system.session_times.first_token(request.place, self._loop.now)
        self._system.router.prefilled(route)

    def _serve(self, request: Request, planned: Route | None) -> Steps:
        route = self._system.router.route(request, planned)
        if route is not None:
            chain = self._system.library.chain(request)
            done = partial(self._first_token, request, route)
            if request.place is not None:
                self._system.session_times.came(request.place, self._loop.now)
            chunks = self._system.library.chunks(request)
            yield from self._system.nodes[route.node].serve(request, chain, chunks, route.fetch, done)
            self._system.router.answered(route)
        self._left -= 1
        if request.place is not None and request.place.number in self._answered:
            self._answered[request.place.number].succeed()
        if not self._left:
            self._done.succeed()
