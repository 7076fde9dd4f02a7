"""make validate: the simulator against the packet-level emulator (needs root) and against the literature.

The machine is measured before and after each play on the emulator, and the simulator uses its measured times.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from commands.command import Screen, run_command
from emulator.result import revision
from experiments.logs import Open, OpenNetworks
from experiments.validate import literature, mooncake
from experiments.validate.calibrate import calibrate
from experiments.validate.emulator import Comparison, compare, compare_drawn, incast, star
from experiments.validate.kvswitch import kvswitch, other_settings
from experiments.validate.options import ValidateOptions, parse_options
from experiments.validate.page import SEED, write_page
from experiments.validate.report import Section, drawn_table, emulated_section, write
from experiments.validate.rows import Row, markdown
from simulator.simulation import prepare

INCAST_SPEED = 1.0


def main(arguments: Sequence[str]) -> int:
    """Run the comparisons and return the exit code: 0 if the tables are written, whatever
    they say, else 2."""
    return run_command(arguments, lambda given: parse_options(given, "weir validate", __doc__ or ""), _run)


def _run(screen: Screen, options: ValidateOptions) -> int:
    if options.trace is not None:
        prepare(star(options.trace, options.requests))  # refuses an unusable trace at once
    parts = list(_sections(options, screen))
    write(options.results, parts)
    for part in parts:
        agreeing = [row.agrees for row in part.rows if row.agrees is not None]
        screen.show(f"\n[bold]{part.title}[/]: {sum(agreeing)} of {len(agreeing)} figures within tolerance\n")
        print(part.text)
    emulated = any(part.source is None for part in parts)
    complaints = [text for part in parts for text in part.complaints] if emulated else None
    seed = f"{SEED}, drawn scenarios {options.first} and on" if emulated else f"{SEED}"
    tables = [(part.title, part.rows) for part in parts]
    page = write_page(options.results, tables, seed, complaints)
    screen.say(f"Written to {options.results / 'validation.md'} and summary.json; to look at: {page}")
    return 0


def _sections(options: ValidateOptions, screen: Screen) -> Iterator[Section]:
    if options.part in ("all", "emulator", "drawn"):
        if os.geteuid():
            screen.warn("not root: the comparison with the emulator is left out (it needs namespaces).")
        else:
            yield from _emulated(options, screen)
    if options.part in ("all", "literature"):
        for what, source, rows in _literature(options, screen):
            yield _published(what, source, _watched(rows, screen))


def _literature(options: ValidateOptions, screen: Screen) -> Iterator[tuple[str, str, Iterable[Row]]]:
    """Yield for each publication its name, the source, and the rows, which are simulated as they are read."""
    yield "Mooncake's arithmetic", "Mooncake, FAST'25, section 3.1", mooncake.arithmetic()
    yield "Beluga", "Beluga, arXiv 2511.20172v2, second-hand", literature.beluga()
    yield "ShadowServe", "ShadowServe, arXiv 2509.16857, partly second-hand", literature.shadowserve()
    yield "KVSwitch", "github.com/kaiitunnz/kvswitch, revision 8e87844", kvswitch()
    yield "KVSwitch, other settings", "github.com/kaiitunnz/kvswitch, revision 8e87844", other_settings()
    yield "Mooncake, a long prompt", "Mooncake, FAST'25, figure 14", mooncake.long_prompt()
    yield "Mooncake, one request", "Mooncake, FAST'25, figure 14", mooncake.one_request()
    if options.trace is None:
        screen.warn("no TRACE: NetKV and Mooncake's cluster need Mooncake's trace and are left out.")
    else:
        yield "NetKV", "NetKV, arXiv 2606.03910, partly second-hand", literature.netkv(options.trace)
        source = "Mooncake, FAST'25, figures 8 to 10"
        yield "Mooncake's global cache", source, mooncake.global_cache(options.trace)
        yield "Mooncake's scheduling", "Mooncake, FAST'25, figure 5", mooncake.scheduling(options.trace)
        yield "Mooncake's split of nodes", "Mooncake, FAST'25, figure 15", mooncake.splits(options.trace)


def _published(what: str, source: str, rows: Iterable[Row]) -> Section:
    found = tuple(rows)
    return Section(f"Against the literature: {what}", source, found, markdown(found, "published"))


def _emulated(options: ValidateOptions, screen: Screen) -> Iterator[Section]:
    opened = OpenNetworks(screen, options.results, {"revision": revision()})
    if options.part != "drawn":
        for comparison in _comparisons(options, screen, opened):
            yield emulated_section(comparison)
    if options.part != "emulator" and options.drawn:
        comparisons: list[Comparison] = []
        for number in range(options.first, options.first + options.drawn):
            comparisons += compare_drawn(
                number,
                options.scale,
                options.results / "drawn",
                lambda name: screen.say(f"emulating: {name}"),
                opened,
                calibrate,
            )
        yield from (emulated_section(comparison) for comparison in comparisons)
        text = drawn_table(comparisons)
        yield Section("Scenarios drawn at random", None, (), text)


def _comparisons(options: ValidateOptions, screen: Screen, opened: Open) -> Iterator[Comparison]:
    def on_play(name: str) -> None:
        screen.say(f"emulating: {name}")

    yield from compare(incast(options.results), options.scale, INCAST_SPEED, on_play, opened, calibrate)
    if options.trace is None:
        screen.warn("no TRACE: the star on a slice of the conversation trace is left out.")
    else:
        scenario = star(options.trace, options.requests)
        yield from compare(scenario, options.scale, None, on_play, opened, calibrate)


def _watched(rows: Iterable[Row], screen: Screen) -> Iterator[Row]:
    """Yield the rows, and print which scenario was simulated."""
    last = ""
    for row in rows:
        if row.what != last:
            screen.say(f"simulated: {row.what}")
        last = row.what
        yield row


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
