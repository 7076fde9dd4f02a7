"""make validate: the simulator against the packet-level emulator (needs root) and against the literature."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from controller.errors import ControllerError
from experiments.interrupt import raise_on_signals
from experiments.options import OptionError
from experiments.run.machine import ADVICE
from experiments.run.processes import ProcessError
from experiments.run.result import revision
from experiments.simulator.schema import ScenarioError
from experiments.simulator.simulation import prepare
from experiments.validate import literature
from experiments.validate.emulator import Comparison, compare, incast, star
from experiments.validate.options import ValidateOptions, parse_options
from experiments.validate.rows import Row, markdown
from topologies.errors import EngineError, TopologyError

BAD_INPUT = (OptionError, ScenarioError, TopologyError, EngineError, ControllerError, ProcessError)
INCAST_SPEED = 1.0


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: the tables are made, whatever they say; 2: they could not be."""
    console = Console()
    raise_on_signals()
    try:
        options = parse_options(arguments, "python -m experiments.validate", __doc__ or "")
        if options.trace is not None:
            prepare(star(options.trace, options.requests))  # a trace that can't be used is refused at once
        parts = list(_sections(options, console))
    except BAD_INPUT as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has ended")
        return 130
    _write(options.results, parts)
    for title, rows, text in parts:
        agreeing = [row.agrees for row in rows if row.agrees is not None]
        console.print(f"\n[bold]{title}[/]: {sum(agreeing)} of {len(agreeing)} figures within tolerance\n")
        print(text)
    console.print(f"Written to {options.results / 'validation.md'} and summary.json")
    return 0


Section = tuple[str, list[Row], str]


def _sections(options: ValidateOptions, console: Console) -> Iterator[Section]:
    if options.part in ("all", "emulator"):
        if os.geteuid():
            console.print("Not root: the comparison with the emulator is left out (it needs namespaces).")
        else:
            for comparison in _comparisons(options, console):
                rows = list(comparison.rows)
                yield f"Against the emulator: {comparison.name}", rows, _emulator_text(comparison)
    if options.part in ("all", "literature"):
        rows = list(literature.arithmetic())
        yield "Against the literature: Mooncake's arithmetic", rows, markdown(rows, "published")
        rows = list(_watched(literature.beluga(), console))
        yield "Against the literature: Beluga", rows, markdown(rows, "published")
        if options.trace is None:
            console.print("No TRACE: Mooncake's global pool needs its conversation trace and is left out.")
        else:
            rows = list(literature.mooncake_pool(options.trace))
            yield "Against the literature: Mooncake's global pool", rows, markdown(rows, "published")


def _comparisons(options: ValidateOptions, console: Console) -> Iterator[Comparison]:
    def on_play(name: str) -> None:
        console.print(f"emulating: {name}", highlight=False)

    yield from compare(incast(options.results), options.scale, INCAST_SPEED, on_play)
    if options.trace is None:
        console.print("No TRACE: the star on a slice of the conversation trace is left out.")
    else:
        yield from compare(star(options.trace, options.requests), options.scale, None, on_play)


def _watched(rows: Iterable[Row], console: Console) -> Iterator[Row]:
    """Say which scenario is being simulated."""
    last = ""
    for row in rows:
        if row.what != last:
            console.print(f"simulated: {row.what}", highlight=False)
        last = row.what
        yield row


def _emulator_text(comparison: Comparison) -> str:
    text = markdown(comparison.rows, "emulator")
    if not comparison.emulated.overloaded:
        return text
    complaints = "; ".join(comparison.emulated.complaints)
    verdict = "**The machine did not keep up, so the emulator's figures don't count**"
    return f"{text}\n{verdict} ({complaints}). {ADVICE}\n"


def _write(folder: Path, parts: Sequence[Section]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(f"### {title}\n\n{body}" for title, _, body in parts)
    (folder / "validation.md").write_text(f"Revision {revision()}\n\n{text}")
    tables = {
        title: [asdict(row) | {"deviation": row.deviation, "agrees": row.agrees} for row in rows]
        for title, rows, _ in parts
    }
    record = {"revision": revision(), "tables": tables}
    (folder / "summary.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
