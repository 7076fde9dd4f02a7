"""make incast: let many nodes ask one storage node for the same blocks, for different ones and for a mix."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

from commands.command import Screen, run_command
from emulator.result import PROGRAM, revision
from emulator.running import Watch
from experiments.incast.emulation import Emulation
from experiments.incast.options import IncastOptions, parse_options
from experiments.incast.page import write_page
from experiments.incast.report import print_report
from experiments.incast.result import Point, evaluate, write_summary
from experiments.incast.scenario import POLICY, POOL_BLOCKS, Scenario, make_scenario
from experiments.incast.table import markdown
from experiments.live import Dashboard
from experiments.logs import open_network
from experiments.pictures import can_draw
from experiments.run.watching import watch_with
from topologies.engines import Engine, make_engine
from topologies.machine_check import check_machine


def main(arguments: Sequence[str]) -> int:
    """Run the experiment; returns its exit code.

    It is 0 if every block arrived and was right, 1 if not, and 2 if it could not run.
    """
    return run_command(arguments, parse_options, _run)


def _run(screen: Screen, options: IncastOptions) -> int:
    check_machine()
    engine = make_engine(options.engine)
    scenario = make_scenario(options)
    _announce(screen, scenario)
    points = _play(screen, scenario, engine)
    print_report(screen.console, _title(scenario), points)
    plots = _drawn(screen, points, scenario)
    (options.results / "table.md").write_text(markdown(points))
    page = write_page(options.results, _title(scenario), _about(scenario), points)
    names = ", ".join(("table.md", *(path.name for path in plots)))
    screen.say(f"Written to {options.results / 'summary.json'}, {names}; to look at: {page}")
    return 1 if any(point.errors or point.corrupt for point in points) else 0


def _drawn(screen: Screen, points: Sequence[Point], scenario: Scenario) -> list[Path]:
    """Draw the plots as files, if that is possible; returns their paths. The page has its own plots."""
    if not can_draw(screen):
        return []
    from experiments.incast.plots import draw

    return draw(points, _title(scenario), scenario.options.results)


def _play(screen: Screen, scenario: Scenario, engine: Engine) -> list[Point]:
    """Measure all points. The summary is written after each, so an interrupted run leaves its results."""
    points: list[Point] = []
    cases = list(scenario.cases())
    options, about = scenario.options, _about(scenario)
    dashboard = Dashboard(POOL_BLOCKS) if options.live and screen.can_live else None
    with ExitStack() as stack:
        watch = _watch(screen, scenario, dashboard, stack)
        progress = stack.enter_context(screen.progress(below=dashboard))
        network = stack.enter_context(open_network(screen, scenario.fabric, engine, options.results, about))
        task = progress.add_task(f"compiling the P4 program ({engine.name})", total=len(cases))
        artifacts = network.compile(PROGRAM, scenario.defines)
        emulation = Emulation(scenario, network, artifacts, watch)
        for mode, members in groupby(cases, key=lambda case: case.mode):
            with emulation.mode(mode) as running:
                for case in members:
                    progress.update(task, description=case.label)
                    points.append(evaluate(case, running.measure(case, options.pause_s), scenario.fragments))
                    write_summary(options.results / "summary.json", about, points)
                    progress.advance(task)
    return points


def _watch(screen: Screen, scenario: Scenario, dashboard: Dashboard | None, stack: ExitStack) -> Watch | None:
    """Return the watch for dashboard and metrics, or None without both, as taking samples costs CPU time."""
    options = scenario.options
    if dashboard is None and not options.metrics:
        return None
    about = {
        "engine": options.engine,
        "topology": scenario.fabric.name,
        "policy": POLICY,
        "seed": str(options.seed),
        "revision": revision(),
        "sigma": f"{options.scale:g}",
    }
    return watch_with(dashboard, options.metrics, about, screen.say, stack)


def _announce(screen: Screen, scenario: Scenario) -> None:
    options, fabric = scenario.options, scenario.fabric
    rate_bit_s = fabric.link_rate_bit_s(fabric.stores[0])
    screen.say(
        f"Nodes: {len(fabric.nodes)}, storage nodes: {len(fabric.stores)}, switches: {len(fabric.switches)} "
        f"({options.engine}). Sigma {scenario.scale.sigma:g}: a {options.link_gbit_s:g} Gbit/s link is "
        f"{rate_bit_s / 1e6:g} Mbit/s, a block {scenario.block_bytes:,} bytes. At each point, in "
        f"{options.bursts} bursts, every node asks for {options.blocks} blocks at the same moment."
    )


def _title(scenario: Scenario) -> str:
    options = scenario.options
    return f"incast on {scenario.fabric.name}, {options.engine}, sigma {options.scale:g}, seed {options.seed}"


def _about(scenario: Scenario) -> dict[str, object]:
    options = scenario.options
    return {
        "engine": options.engine,
        "topology": scenario.fabric.name,
        "switches": len(scenario.fabric.switches),
        "revision": revision(),
        "seed": options.seed,
        "scale": options.scale,
        "link_gbit_s": options.link_gbit_s,
        "block_bytes": scenario.block_bytes,
        "blocks": options.blocks,
        "bursts": options.bursts,
        "pause_s": options.pause_s,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
