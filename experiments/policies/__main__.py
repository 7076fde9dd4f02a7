"""`make policies`: replay traces through all policies, then report, write and plot."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from experiments.policies import plots, report
from experiments.policies.compare import OURS, compare
from experiments.policies.explain import ExplainError
from experiments.policies.jobs import ABLATION, WITHOUT, make_jobs, run_jobs
from experiments.policies.options import OptionError, Options, parse_options
from experiments.policies.replay import Result
from experiments.policies.studies import run_bound, run_cross, run_explain, run_live, run_reclaim
from workload.cost import CostError, CostModel, make_cost_model
from workload.generate import GenerateError
from workload.trace import Trace, TraceError


def main(arguments: Sequence[str]) -> int:
    """The command; 2 where it was asked for what cannot be."""
    console = Console()
    try:
        options = parse_options(arguments)
        cost = make_cost_model(options.model, options.gpu)
        traces = [] if options.cross or options.events is not None else options.load()
    except (OptionError, CostError, TraceError, GenerateError) as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        return 2
    for trace in traces:
        for warning in trace.warnings:
            console.print(f"[yellow]warning:[/] {warning}", highlight=False, soft_wrap=True)
    try:
        if options.cross:
            run_cross(console, options, cost, partial(_bar, console))
        elif options.explain:
            run_explain(console, options, traces, cost)
        elif options.live:
            run_live(console, options, traces, cost, partial(_bar, console))
        elif options.reclaim:
            run_reclaim(console, options, traces, cost, partial(_bar, console))
        elif options.bound:
            run_bound(console, options, traces, cost, partial(_bar, console))
        else:
            _report(console, options, _replay(console, options, traces, cost))
    except (TraceError, ExplainError) as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted")
        return 130
    return 0


def _bar(console: Console, jobs: int) -> Callable[[], None]:
    """A line of progress, now and then: tables that come later must not be overwritten."""
    begun_s, done = time.monotonic(), 0

    def advance() -> None:
        nonlocal done
        done += 1
        if done == jobs or done % max(1, jobs // 20) == 0:
            left_s = (time.monotonic() - begun_s) * (jobs - done) / done
            console.print(f"{done} of {jobs} replays, {left_s:.0f} s left", highlight=False)

    return advance


def _replay(
    console: Console, options: Options, traces: Sequence[Trace], cost: CostModel
) -> dict[str, list[Result]]:
    names = [*options.policies, *(WITHOUT if options.ablation and OURS in options.policies else ())]
    jobs = make_jobs(len(traces), names, options.blocks)
    columns = (
        TextColumn("replaying"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("replaying", total=len(jobs))
        done = run_jobs(jobs, traces, cost, options.processes, lambda: progress.advance(task))
    order = {name: place for place, name in enumerate(names)}
    results: dict[str, list[Result]] = {}
    for job in sorted(done, key=lambda job: (job.trace, order[job.policy], job.blocks)):
        results.setdefault(traces[job.trace].name, []).append(done[job])
    return results


def _report(console: Console, options: Options, results: dict[str, list[Result]]) -> None:
    whole = {name: [r for r in rows if not r.policy.startswith(ABLATION)] for name, rows in results.items()}
    ablated = {name: [r for r in rows if r.policy.startswith(ABLATION)] for name, rows in results.items()}
    comparisons = []
    for name, rows in whole.items():
        shown = Path(name).name
        report.print_hits(console, shown, rows)
        report.print_savings(console, shown, rows)
        report.print_ablation(console, shown, rows, ablated[name])
        plots.plot_trace(options.results, name, rows)
        if ablated[name]:
            plots.plot_ablation(options.results, name, rows, ablated[name])
        comparisons += compare(shown, rows)
    if comparisons:
        report.print_comparison(console, comparisons)
    report.write_results(options.results / "summary.json", whole)
    if any(ablated.values()):
        report.write_results(options.results / "ablation.json", ablated)
    console.print(f"results: {options.results / 'summary.json'}, with plots beside it")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
