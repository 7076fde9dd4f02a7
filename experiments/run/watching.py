"""Who watches a play while it goes on, as the options ask for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext

from experiments.run.metrics import Exporter
from experiments.run.result import revision
from experiments.run.running import Watch
from experiments.run.scenario import Scenario


def start_watching(scenario: Scenario, say: Callable[[str], None], stack: ExitStack) -> Watch:
    """Start what lasts for all plays, until `stack` is left; what to do with each play."""
    options = scenario.options
    if not options.metrics:
        return lambda running: nullcontext()
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
    return exporter.watching
