"""Who watches a play while it goes on, as the options ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from experiments.live import Dashboard
from experiments.run.metrics import Exporter
from experiments.run.result import revision
from experiments.run.running import Running, Watch
from experiments.run.scenario import Scenario


def start_watching(
    scenario: Scenario, say: Callable[[str], None], stack: ExitStack, dashboard: Dashboard | None = None
) -> Watch:
    """Start what lasts for all plays, until `stack` is left; what to do with each play."""
    watches: list[Watch] = []
    if dashboard is not None:
        watches.append(dashboard.watching)
    if scenario.options.metrics:
        watches.append(_exporter(scenario, say, stack).watching)

    @contextmanager
    def watch(running: Running) -> Iterator[None]:
        with ExitStack() as play:
            for one in watches:
                play.enter_context(one(running))
            yield

    return watch


def _exporter(scenario: Scenario, say: Callable[[str], None], stack: ExitStack) -> Exporter:
    options = scenario.options
    about = {
        "engine": options.engine,
        "topology": scenario.fabric.name,
        "policy": options.policy,
        "seed": str(options.seed),
        "revision": revision(),
        "sigma": f"{scenario.scale.sigma:g}",
    }
    exporter = stack.enter_context(Exporter(options.metrics, about))
    say(f"Metrics of all processes, for Prometheus: {exporter.url}")
    return exporter
