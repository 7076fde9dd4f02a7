"""results/kv-conformance: summary.json with the outcomes, measured.json with what was measured."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engines.conformance.outcome import LEFT_OUT, Outcome

ABOUT = ("engine", "revision", "seed")
"""Fields that have to be the same for a run to add to what another one wrote."""


class Summary:
    """The outcomes of all connectors so far, on disk after each case."""

    def __init__(self, folder: Path, engine: str, revision: str, seed: int) -> None:
        """Go on with what an earlier run of the same engine, revision and seed left in the folder."""
        self._folder = folder
        self._about: dict[str, Any] = {"engine": engine, "revision": revision, "seed": seed}
        self._outcomes: dict[str, dict[str, Outcome]] = {}
        self._versions: dict[str, str] = {}
        self._load()

    @classmethod
    def written(cls, folder: Path) -> Summary:
        """Return what a run left in a folder, whichever it was. Raises OSError if there is nothing."""
        there = json.loads((folder / "measured.json").read_text(encoding="utf-8"))
        return cls(folder, *(there.get(name) for name in ABOUT))

    def add(self, connector: str, version: str, case: str, outcome: Outcome) -> None:
        """Take one outcome, in place of an earlier one, and write."""
        self._versions[connector] = version
        self._outcomes.setdefault(connector, {})[case] = outcome
        self._write()

    def of(self, connector: str) -> dict[str, Outcome]:
        """Return the outcomes of a connector by case."""
        return self._outcomes.get(connector, {})

    @property
    def connectors(self) -> list[str]:
        """Return those of which there are outcomes."""
        return list(self._outcomes)

    def _load(self) -> None:
        path = self._folder / "measured.json"
        try:
            there = json.loads(path.read_text(encoding="utf-8"))
            if {name: there[name] for name in ABOUT} != self._about:
                return
            for connector, said in there["connectors"].items():
                self._versions[connector] = said["version"]
                self._outcomes[connector] = {name: Outcome(**one) for name, one in said["cases"].items()}
        except (OSError, ValueError, KeyError, TypeError):
            return  # nothing there, or of another version of the suite

    def _write(self) -> None:
        outcomes = {
            connector: {
                "version": self._versions[connector],
                "engine": self._about["engine"],
                "cases": {name: one.result for name, one in cases.items() if one.result != LEFT_OUT},
            }
            for connector, cases in self._outcomes.items()
        }
        measured = {
            connector: {
                "version": self._versions[connector],
                "cases": {name: asdict(one) for name, one in cases.items()},
            }
            for connector, cases in self._outcomes.items()
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, connectors in (("summary", outcomes), ("measured", measured)):
            part = self._folder / f"{name}.part"
            part.write_text(json.dumps({**self._about, "connectors": connectors}, indent=1) + "\n")
            part.replace(self._folder / f"{name}.json")
