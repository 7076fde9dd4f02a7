"""A night of seeds goes on where it ended, and says what was broken."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from experiments.simulate_faults.history import KINDS, LOST
from experiments.simulate_faults.night import Night
from experiments.simulate_faults.run import RunOutcome

HOURS = 1.0


def played(seed: int) -> RunOutcome:
    broken = ("lost a block",) if seed == 12 else ()
    return RunOutcome(seed, broken, {"faults": 3, "read": 5, LOST: len(broken)}, f"{seed:x}", 10.0, 0.5)


def test_it_goes_on_with_the_seeds_that_were_not_run(tmp_path: Path) -> None:
    first = Night(tmp_path, "abc", 100)
    assert [outcome.seed for outcome in islice(first.play(HOURS, 10, played), 2)] == [10, 11]
    with first.path.open("a") as file:
        file.write('\n{"revision": "abc", "operations": 100, "took_s": 1.0, "outc')  # killed while it wrote
    again = Night(tmp_path, "abc", 100)
    assert [outcome.seed for outcome in islice(again.play(HOURS, 10, played), 2)] == [12, 13]
    said = Night(tmp_path, "abc", 100).summary()
    assert (said["seeds"], said["runs"], said["operations"], said["faults"]) == ("10 to 13", 4, 400, 12)
    assert said["failed"] == [12]
    assert {kind: said[kind] for kind in KINDS} == dict.fromkeys(KINDS, 0) | {LOST: 1}


def test_runs_of_another_revision_or_length_do_not_count(tmp_path: Path) -> None:
    list(islice(Night(tmp_path, "abc", 100).play(HOURS, 1, played), 1))
    for other in (Night(tmp_path, "def", 100), Night(tmp_path, "abc", 200)):
        assert other.summary()["runs"] == 0


def test_it_ends_when_all_runs_together_took_so_long(tmp_path: Path) -> None:
    night = Night(tmp_path, "abc", 100)
    seeds = [outcome.seed for outcome in night.play(1e-9, 1, played)]
    assert 1 <= len(seeds) < 1000
    assert list(Night(tmp_path, "abc", 100).play(0.0, 1, played)) == []
