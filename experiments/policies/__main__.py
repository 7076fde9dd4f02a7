"""`make policies`: replay traces through all policies; print, plot and write the results."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.progress import TimeRemainingColumn

from commands.command import Screen, run_command
from experiments.policies import plots, report
from experiments.policies.compare import OURS, compare
from experiments.policies.jobs import ABLATION, WITHOUT, make_jobs, run_jobs
from experiments.policies.options import PoliciesOptions, parse_options
from experiments.policies.page import write_page
from experiments.policies.replay import Result
from experiments.policies.studies import run_cross, run_explain, run_hints
from workload.cost import CostModel, make_cost_model
from workload.trace import Trace


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code: 2 for options, traces or files that cannot be used."""
    return run_command(arguments, parse_options, _run, interrupted="interrupted")


def _run(screen: Screen, options: PoliciesOptions) -> int:
    cost = make_cost_model(options.model, options.gpu)
    is_drawn = options.cross or options.session_hints or options.events is not None
    traces = [] if is_drawn else options.load()
    for trace in traces:
        for warning in trace.warnings:
            screen.warn(warning, "trace")
    console, bar = screen.console, partial(_bar, screen)
    if options.cross:
        run_cross(console, options, cost, bar)
    elif options.session_hints:
        run_hints(console, options, cost, bar)
    elif options.explain:
        run_explain(console, options, traces, cost)
    else:
        _report(screen, options, _replay(screen, options, traces, cost))
    return 0


def _bar(screen: Screen, jobs: int) -> Callable[[], None]:
    """Return a function to call after each job, which prints progress about 20 times in all.

    Lines are printed, because a live bar would overwrite the tables that follow.
    """
    begun_s, done = time.monotonic(), 0

    def advance() -> None:
        nonlocal done
        done += 1
        if done == jobs or done % max(1, jobs // 20) == 0:
            left_s = (time.monotonic() - begun_s) * (jobs - done) / done
            screen.say(f"{done} of {jobs} done, {left_s:.0f} s left")

    return advance


def _replay(
    screen: Screen, options: PoliciesOptions, traces: Sequence[Trace], cost: CostModel
) -> dict[str, list[Result]]:
    names = [*options.policies, *(WITHOUT if options.ablation and OURS in options.policies else ())]
    jobs = make_jobs(len(traces), names, options.blocks)
    with screen.progress(TimeRemainingColumn()) as progress:
        task = progress.add_task("replaying", total=len(jobs))
        done = run_jobs(jobs, traces, cost, options.processes, lambda: progress.advance(task), options.links)
    order = {name: place for place, name in enumerate(names)}
    results: dict[str, list[Result]] = {}
    for job in sorted(done, key=lambda job: (job.trace, order[job.policy], job.blocks)):
        results.setdefault(traces[job.trace].name, []).append(done[job])
    return results


def _report(screen: Screen, options: PoliciesOptions, results: dict[str, list[Result]]) -> None:
    whole = {name: [r for r in rows if not r.policy.startswith(ABLATION)] for name, rows in results.items()}
    ablated = {name: [r for r in rows if r.policy.startswith(ABLATION)] for name, rows in results.items()}
    comparisons = []
    for name, rows in whole.items():
        shown = Path(name).name
        report.print_hits(screen.console, shown, rows)
        report.print_savings(screen.console, shown, rows)
        report.print_ablation(screen.console, shown, rows, ablated[name])
        plots.plot_trace(options.results, name, rows)
        if ablated[name]:
            plots.plot_ablation(options.results, name, rows, ablated[name])
        comparisons += compare(shown, rows)
    if comparisons:
        report.print_comparison(screen.console, comparisons)
    report.write_results(options.results / "summary.json", whole)
    if any(ablated.values()):
        report.write_results(options.results / "ablation.json", ablated)
    page = write_page(options, whole)
    screen.say(f"results: {options.results / 'summary.json'}, with plots beside it; to look at: {page}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
