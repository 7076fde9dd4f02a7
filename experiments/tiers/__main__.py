"""`make tiers`: simulate traces in the whole hierarchy; print, plot and write the results."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from commands.command import Screen, run_command
from experiments.tiers import plots, report
from experiments.tiers.jobs import make_jobs, run_jobs
from experiments.tiers.options import TiersOptions, parse_options
from experiments.tiers.page import write_page
from experiments.tiers.scenarios import Result
from workload.trace import Trace


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code: 2 for options, traces or files that cannot be used."""
    return run_command(arguments, parse_options, _run, interrupted="interrupted")


def _run(screen: Screen, options: TiersOptions) -> int:
    options.results.mkdir(parents=True, exist_ok=True)
    traces = options.traces()
    for trace in traces:
        for warning in trace.warnings:
            screen.warn(warning, "trace")
    results = _play(screen, options, traces)
    report.print_report(screen.console, results)
    report.write_results(options.results / "summary.json", options, results)
    for trace_name, rows in results.items():
        plots.plot_trace(options.results, trace_name, rows)
    page = write_page(options, results)
    screen.say(
        f"results: {options.results / 'summary.json'}, with a plot a trace beside it; to look at: {page}"
    )
    return 0


def _play(screen: Screen, options: TiersOptions, traces: Sequence[Trace]) -> dict[str, list[Result]]:
    jobs = make_jobs(len(traces), options)
    with screen.progress() as progress:
        task = progress.add_task("simulating", total=len(jobs))
        done = run_jobs(jobs, traces, options, lambda: progress.advance(task))
    results: dict[str, list[Result]] = {}
    for job, result in zip(jobs, done, strict=True):
        results.setdefault(traces[job[0]].name, []).append(result)
    return results


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
