"""weir-kv-conformance: run the cases against connectors, and write results/kv-conformance.

    weir-kv-conformance --connector lmcache --case adapter
    weir-kv-conformance --connector-config '{"kv_connector": "MyConnector", …}'

Exit code 0: no case of the first connector failed; 1: one did; 2: it could not run; 130: interrupted.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from engines.conformance import cases as _registered  # noqa: F401
from engines.conformance.case import CASES, Case, chosen
from engines.conformance.options import OptionError, Options, parse
from engines.conformance.outcome import FAILED, PASSED, Outcome, SuiteError
from engines.conformance.revision import engine_version, revision
from engines.conformance.run import make_models, opened, run_case
from engines.conformance.summary import Summary
from engines.conformance.table import markdown_table, outcome_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    console = Console(highlight=False, soft_wrap=True)
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        if options.list_cases:
            _list(console)
            return 0
        if options.markdown:
            print(markdown_table(Summary.written(options.results)))
            return 0
        return _run(console, options)
    except (OptionError, SuiteError, OSError) as error:
        console.print(f"[bold red]error:[/] {error}", markup=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has ended")
        return 130


def _run(console: Console, options: Options) -> int:
    engine = engine_version()
    if engine == "no vLLM":
        raise SuiteError(
            f"vLLM is not installed for {sys.executable}: run this in its environment (make kv-conformance)"
        )
    summary = Summary(options.results, engine, revision(), options.seed)
    asked = chosen(options.cases)
    deadline_s = time.monotonic() + 60 * options.minutes
    console.print(f"{len(asked)} cases with {', '.join(options.connectors)} in {engine}, seed {options.seed}")
    left = 0
    with Progress(
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console,
    ) as progress:  # fmt: skip
        task = progress.add_task("making the models", total=len(asked) * len(options.connectors))
        models = make_models(options.folder, options.seed)
        for name in options.connectors:
            progress.update(task, description=f"{name}: starting")
            with opened(options, name, models) as bench:
                for case in asked:
                    if time.monotonic() > deadline_s:
                        left += 1
                        continue
                    progress.update(task, description=f"{name}: {case.name}")
                    outcome = run_case(bench, case)
                    summary.add(name, bench.connector.version, case.name, outcome)
                    _show(console, name, case, outcome)
                    progress.advance(task)
    console.print(outcome_table(summary))
    if left:
        console.print(
            f"[yellow]warning:[/] {left} cases were not begun within {options.minutes:g} minutes (--minutes)"
        )
    console.print(
        f"Written to {options.results / 'summary.json'}; what was measured is in measured.json beside it"
    )
    failed = any(one.result == FAILED for one in summary.of(options.connectors[0]).values())
    return 1 if failed else 0


def _show(console: Console, connector: str, case: Case, outcome: Outcome) -> None:
    about = (
        outcome.message
        if outcome.result != PASSED
        else ", ".join(f"{k} {v}" for k, v in outcome.measured.items())
    )
    console.print(f"{connector} {case.name}: {outcome.result} ({outcome.took_s:.0f} s) {about}", markup=False)


def _list(console: Console) -> None:
    for case in CASES.values():
        console.print(f"{case.name}: {case.about} ({', '.join(case.sources)})", markup=False)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
