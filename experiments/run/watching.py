"""The watchers of a play while it runs: dashboard and metrics exporter, as the options ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from emulator.metrics import Exporter
from emulator.result import revision
from emulator.running import Running, Watch
from emulator.scenario import Scenario
from experiments.live import Dashboard


def start_watching(
    scenario: Scenario, say: Callable[[str], None], stack: ExitStack, dashboard: Dashboard | None = None
) -> Watch:
    """Start the watchers that last for all plays, until `stack` is left; return what watches each play."""
    options = scenario.options
    about = {
        "engine": options.emulation.engine,
        "topology": scenario.fabric.name,
        "policy": options.pool.policy,
        "seed": str(options.workload.seed),
        "revision": revision(),
        "sigma": f"{scenario.scale.sigma:g}",
    }
    return watch_with(dashboard, options.emulation.metrics, about, say, stack)


def watch_with(
    dashboard: Dashboard | None,
    port: int,
    about: Mapping[str, str],
    say: Callable[[str], None],
    stack: ExitStack,
) -> Watch:
    """Return what watches a play with the dashboard and an exporter.

    `port` is the exporter's, 0 for none. `about` is the labels of weir_run_info without the mode.
    """
    watches: list[Watch] = []
    if dashboard is not None:
        watches.append(dashboard.watching)
    if port:
        exporter = stack.enter_context(Exporter(port, about))
        say(f"Metrics of all processes, for Prometheus: {exporter.url}")
        watches.append(exporter.watching)

    @contextmanager
    def watch(running: Running) -> Iterator[None]:
        with ExitStack() as play:
            for one in watches:
                play.enter_context(one(running))
            yield

    return watch
