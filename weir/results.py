"""Results of experiments as numpy tables: `weir.results.load("results/run")`.

`load` reads the folder of any experiment: `summary` is its summary.json. `make run` also writes details; for
its folders, `plays` has the run that represents each mode.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Play", "Results", "ResultsError", "load"]


class ResultsWarning(UserWarning):
    """Warning that an earlier version recorded the run and did not write all that this version writes."""


class ResultsError(Exception):
    """Error for a folder without results, or with unreadable ones; the message says which file and why."""


@dataclass(frozen=True)
class Play:
    """One run of a mode in `make run`, in full."""

    result: Mapping[str, Any]
    """Figures of the run, as in summary.json."""
    requests: NDArray[np.void]
    """Table with a row for each request.

    Columns: node, arrival_s, fetch_s, queue_s, prefill_s, ttft_s and end_s (NaN for a step that the request
    did not reach); wait_queued_s, wait_probing_s, wait_merged_s, wait_pool_s and wait_home_s, which say what
    the fetch waited for and add up to its time; and numbers of blocks by source: gpu, dram, pool, remote,
    recomputed.
    """
    timeline: NDArray[np.void]
    """Table with a row for each half second. Counters count from the start.

    Columns: t_s, completed, resident, hits, admitted, evicted, digests, and for each link `LINK to` and `LINK
    from`: bytes to the switch and from it.
    """
    get_ms: NDArray[np.float64]
    """Milliseconds from a block's request until the block was checked, in ascending order."""
    missing: tuple[str, ...] = ()
    """Names of fields that the version that recorded the run did not write, such as `requests.waits_s`. Times
    that follow from them are NaN, counts are -1."""


@dataclass(frozen=True)
class Results:
    """Results of one experiment."""

    summary: Mapping[str, Any]
    plays: Mapping[str, Play]
    """Runs by mode; empty for experiments that write no details."""


def load(folder: str | Path) -> Results:
    """Return the results in a folder, written by this version or an earlier one; raises ResultsError.

    If an earlier version left fields out, `missing` of each run lists them, and a ResultsWarning names them.
    """
    path = Path(folder)
    summary = _read(path / "summary.json")
    details = path / "details.json"
    if not details.exists():
        return Results(summary, {})
    read = _read(details)
    if not isinstance(read.get("runs"), dict):
        raise ResultsError(f"{details}: it has no key 'runs'; no version of make run wrote it")
    try:
        plays = {name: _play(run) for name, run in read["runs"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ResultsError(f"{details}: no version of make run wrote it so ({error!r})") from None
    missing = sorted({name for play in plays.values() for name in play.missing})
    if missing:
        text = f"{details}: an earlier version wrote it, without {', '.join(missing)}"
        warnings.warn(text, ResultsWarning, stacklevel=2)
    return Results(summary, plays)


def _read(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror}; has the experiment been run?") from None
    except ValueError as error:
        raise ResultsError(f"{path}: not JSON ({error})") from None
    if not isinstance(read, dict):
        raise ResultsError(f"{path}: expected a JSON object, found {type(read).__name__}")
    return read


_TIMES = ("arrival_s", "fetch_s", "queue_s", "prefill_s", "ttft_s", "end_s")
_SOURCES = ("gpu", "dram", "pool", "remote", "recomputed")
_WAITS = ("queued", "probing", "merged", "pool", "home")
"""First words of the names of waits (hostlib.model.waits); for homes, an address follows."""
_ABSENT = -1
"""Placeholder for a count that the run did not write."""
_COUNTERS = ("completed", "resident", "hits", "admitted", "evicted", "digests")


def _play(run: Mapping[str, Any]) -> Play:
    requests, timeline = _Records(run, "requests"), _Records(run, "timeline")
    links = sorted({link for one in timeline.column("link_bytes", {}) for link in one})
    columns: list[tuple[str, str, Iterable[Any]]] = [
        ("node", "U32", requests.column("node", "")),
        *((name, "f8", map(_number, requests.column(name, None))) for name in _TIMES),
        *(
            (f"wait_{what}_s", "f8", [_waited_s(waits, what) for waits in requests.column("waits_s", None)])
            for what in _WAITS
        ),
        *(
            (name, "i8", [_ABSENT if one is None else one[name] for one in requests.column("sources", None)])
            for name in _SOURCES
        ),
    ]
    samples: list[tuple[str, str, Iterable[Any]]] = [
        ("t_s", "f8", map(_number, timeline.column("t_s", None))),
        *((name, "i8", timeline.column(name, _ABSENT)) for name in _COUNTERS),
        *(
            (f"{link} {way}", "i8", [one.get(link, (0, 0))[at] for one in timeline.column("link_bytes", {})])
            for link in links
            for at, way in enumerate(("to", "from"))
        ),
    ]
    absent = [name for name in ("result", "get_ms") if name not in run]
    return Play(
        run.get("result", {}),
        _table(columns),
        _table(samples),
        np.array(run.get("get_ms", []), dtype=np.float64),
        tuple(sorted({*absent, *requests.missing, *timeline.missing})),
    )


class _Records:
    """Records of one list of a run; `missing` names the keys that an earlier version did not write."""

    def __init__(self, run: Mapping[str, Any], name: str) -> None:
        self._name, self._records = name, run.get(name, [])
        self.missing = set() if name in run else {name}

    def column(self, key: str, otherwise: Any) -> list[Any]:
        """Return the value of `key` in each record, `otherwise` where a record lacks it."""
        if any(key not in record for record in self._records):
            self.missing.add(f"{self._name}.{key}")
        return [record.get(key, otherwise) for record in self._records]


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _waited_s(waits_s: Mapping[str, float] | None, what: str) -> float:
    if waits_s is None:
        return np.nan
    return sum(waited_s for name, waited_s in waits_s.items() if name.partition(" ")[0] == what)


def _table(columns: list[tuple[str, str, Iterable[Any]]]) -> NDArray[np.void]:
    rows = list(zip(*(values for _, _, values in columns), strict=True))
    return np.array(rows, dtype=[(name, kind) for name, kind, _ in columns])
