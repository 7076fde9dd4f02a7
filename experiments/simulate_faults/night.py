"""Seed after seed for some hours, in one process: what ended is in a file, and a later call goes on there."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.simulate_faults.history import KINDS
from experiments.simulate_faults.run import RunOutcome

NAME = "night.jsonl"


@dataclass(frozen=True, slots=True)
class Played:
    """One seed, as the file has it."""

    revision: str
    operations: int
    took_s: float
    outcome: RunOutcome


class Night:
    """The runs of one revision and one number of operations; those of others in the same file stay there."""

    def __init__(self, folder: Path, revision: str, operations: int) -> None:
        self.path = folder / NAME
        self._revision, self._operations = revision, operations
        self.played = [one for one in _read(self.path) if (one.revision, one.operations) == self._of]

    @property
    def _of(self) -> tuple[str, int]:
        return self._revision, self._operations

    @property
    def took_s(self) -> float:
        """Return the seconds of all runs together."""
        return sum(one.took_s for one in self.played)

    def play(self, hours: float, first: int, run: Callable[[int], RunOutcome]) -> Iterator[RunOutcome]:
        """Run seeds from `first` on that were not run, until all runs together took so long."""
        known = {one.outcome.seed for one in self.played}
        seed = first
        while self.took_s < 3600 * hours:
            if seed not in known:
                began_s = time.monotonic()
                outcome = run(seed)
                self._add(Played(*self._of, round(time.monotonic() - began_s, 6), outcome))
                yield outcome
            seed += 1

    def _add(self, played: Played) -> None:
        self.played.append(played)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps(asdict(played)))  # the line before may have been cut off

    def summary(self) -> dict[str, object]:
        """Return operations, faults, and what was broken, by kind."""
        total: Counter[str] = Counter()
        for one in self.played:
            total.update(one.outcome.counts)
        outcomes = [one.outcome for one in self.played]
        seeds = [outcome.seed for outcome in outcomes]
        return {
            "revision": self._revision,
            "seeds": f"{min(seeds)} to {max(seeds)}" if seeds else "none",
            "runs": len(outcomes),
            "operations": len(outcomes) * self._operations,
            "faults": total["faults"],
            **{kind: total[kind] for kind in KINDS},
            "failed": [outcome.seed for outcome in outcomes if outcome.violations],
            "hours": round(self.took_s / 3600, 2),
            "cpu_s": round(sum(outcome.cpu_s for outcome in outcomes)),
            "virtual_s": round(sum(outcome.virtual_s for outcome in outcomes)),
        }


def _read(path: Path) -> Iterator[Played]:
    """Yield what is whole in the file: a line that was cut off with its process is run again."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            given = json.loads(line)
            outcome = given["outcome"]
            outcome["violations"] = tuple(outcome["violations"])
            yield Played(given["revision"], given["operations"], given["took_s"], RunOutcome(**outcome))
        except (ValueError, KeyError, TypeError):
            continue
