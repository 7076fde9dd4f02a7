"""`make tiers`: replay traces through the whole hierarchy, then report, write and plot."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from controller.policies import PolicyError
from experiments.options import OptionError
from experiments.tiers import plots, report
from experiments.tiers.jobs import make_jobs, run_jobs
from experiments.tiers.options import TiersOptions, parse_options
from experiments.tiers.replay import Result
from workload.generate import GenerateError
from workload.trace import Trace, TraceError


def main(arguments: Sequence[str]) -> int:
    """The command; 2 where it was asked for what cannot be."""
    console = Console()
    try:
        options = parse_options(arguments)
        options.results.mkdir(parents=True, exist_ok=True)
        traces = options.traces()
        for trace in traces:
            for warning in trace.warnings:
                console.print(f"[yellow]warning:[/] {warning}", highlight=False, soft_wrap=True)
        results = _replay(console, options, traces)
    except OSError as error:
        console.print(f"[bold red]error:[/] RESULTS {error.filename}: {error.strerror}", highlight=False)
        return 2
    except (OptionError, TraceError, GenerateError, PolicyError) as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted")
        return 130
    report.print_report(console, results)
    report.write_results(options.results / "summary.json", options, results)
    for trace_name, rows in results.items():
        plots.plot_trace(options.results, trace_name, rows)
    console.print(f"results: {options.results / 'summary.json'}, with a plot a trace beside it")
    return 0


def _replay(console: Console, options: TiersOptions, traces: Sequence[Trace]) -> dict[str, list[Result]]:
    jobs = make_jobs(len(traces), options)
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("replaying", total=len(jobs))
        done = run_jobs(jobs, traces, options, lambda: progress.advance(task))
    results: dict[str, list[Result]] = {}
    for job, result in zip(jobs, done, strict=True):
        results.setdefault(traces[job[0]].name, []).append(result)
    return results


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
