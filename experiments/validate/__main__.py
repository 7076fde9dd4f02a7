"""make validate: the simulator against the packet-level emulator (needs root) and against the literature."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from experiments.command import Screen, run_command
from experiments.run.machine import ADVICE
from experiments.run.result import revision
from experiments.simulator.simulation import prepare
from experiments.validate import literature
from experiments.validate.emulator import Comparison, compare, incast, star
from experiments.validate.options import ValidateOptions, parse_options
from experiments.validate.rows import Row, markdown

INCAST_SPEED = 1.0


def main(arguments: Sequence[str]) -> int:
    """Exit code 0: the tables are made, whatever they say; 2: they could not be."""
    return run_command(
        arguments, lambda given: parse_options(given, "python -m experiments.validate", __doc__ or ""), _run
    )


def _run(screen: Screen, options: ValidateOptions) -> int:
    if options.trace is not None:
        prepare(star(options.trace, options.requests))  # a trace that can't be used is refused at once
    parts = list(_sections(options, screen))
    _write(options.results, parts)
    for title, rows, text in parts:
        agreeing = [row.agrees for row in rows if row.agrees is not None]
        screen.show(f"\n[bold]{title}[/]: {sum(agreeing)} of {len(agreeing)} figures within tolerance\n")
        print(text)
    screen.say(f"Written to {options.results / 'validation.md'} and summary.json")
    return 0


Section = tuple[str, list[Row], str]


def _sections(options: ValidateOptions, screen: Screen) -> Iterator[Section]:
    if options.part in ("all", "emulator"):
        if os.geteuid():
            screen.warn("not root: the comparison with the emulator is left out (it needs namespaces).")
        else:
            for comparison in _comparisons(options, screen):
                rows = list(comparison.rows)
                yield f"Against the emulator: {comparison.name}", rows, _emulator_text(comparison)
    if options.part in ("all", "literature"):
        rows = list(literature.arithmetic())
        yield "Against the literature: Mooncake's arithmetic", rows, markdown(rows, "published")
        rows = list(_watched(literature.beluga(), screen))
        yield "Against the literature: Beluga", rows, markdown(rows, "published")
        if options.trace is None:
            screen.warn("no TRACE: Mooncake's global pool needs its conversation trace and is left out.")
        else:
            rows = list(literature.mooncake_pool(options.trace))
            yield "Against the literature: Mooncake's global pool", rows, markdown(rows, "published")


def _comparisons(options: ValidateOptions, screen: Screen) -> Iterator[Comparison]:
    def on_play(name: str) -> None:
        screen.say(f"emulating: {name}")

    yield from compare(incast(options.results), options.scale, INCAST_SPEED, on_play)
    if options.trace is None:
        screen.warn("no TRACE: the star on a slice of the conversation trace is left out.")
    else:
        yield from compare(star(options.trace, options.requests), options.scale, None, on_play)


def _watched(rows: Iterable[Row], screen: Screen) -> Iterator[Row]:
    """Say which scenario is being simulated."""
    last = ""
    for row in rows:
        if row.what != last:
            screen.say(f"simulated: {row.what}")
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
