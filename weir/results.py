"""What experiments left, as numpy tables: `weir.results.load("results/run")`.

Works on the folder of any experiment: `summary` is its summary.json. `make run` leaves details beside it, and
`plays` then has the play that stands for each mode.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Play", "Results", "ResultsError", "load"]


class ResultsError(Exception):
    """A folder without results, or with some that can't be read; the message says which file and why."""


@dataclass(frozen=True)
class Play:
    """One play of `make run`, in full."""

    result: Mapping[str, Any]
    """Its figures, as in summary.json."""
    requests: NDArray[np.void]
    """A row a request: node, arrival_s, fetch_s, queue_s, prefill_s, ttft_s, end_s (NaN for what it did not
    come to); what the fetch waited for, which adds up to it: wait_queued_s, wait_probing_s, wait_merged_s,
    wait_pool_s, wait_home_s; and blocks by source: gpu, dram, pool, remote, recomputed."""
    timeline: NDArray[np.void]
    """A row each half second, counters since the start: t_s, completed, resident, hits, admitted, evicted,
    digests, and for each link `LINK to` and `LINK from`, bytes to the switch and from it."""
    get_ms: NDArray[np.float64]
    """Block requested to block checked, in order of size."""


@dataclass(frozen=True)
class Results:
    """What an experiment wrote."""

    summary: Mapping[str, Any]
    plays: Mapping[str, Play]
    """By mode; empty for experiments that leave no details."""


def load(folder: str | Path) -> Results:
    """The results in a folder; raises ResultsError."""
    path = Path(folder)
    summary = _read(path / "summary.json")
    details = path / "details.json"
    runs = _read(details)["runs"] if details.exists() else {}
    try:
        return Results(summary, {name: _play(run) for name, run in runs.items()})
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(f"{details}: not written by this version of make run ({error!r})") from None


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
"""First words of what a fetch waited for (hostlib.model.waits): homes have an address behind it."""
_COUNTERS = ("completed", "resident", "hits", "admitted", "evicted", "digests")


def _play(run: Mapping[str, Any]) -> Play:
    requests = _table(
        [
            ("node", "U32"),
            *((name, "f8") for name in _TIMES),
            *((f"wait_{what}_s", "f8") for what in _WAITS),
            *((name, "i8") for name in _SOURCES),
        ],
        (
            (
                record["node"],
                *(np.nan if record[name] is None else record[name] for name in _TIMES),
                *(_waited_s(record["waits_s"], what) for what in _WAITS),
                *(record["sources"][name] for name in _SOURCES),
            )
            for record in run["requests"]
        ),
    )
    links = sorted({link for sample in run["timeline"] for link in sample["link_bytes"]})
    ways = [(f"{link} {way}", "i8") for link in links for way in ("to", "from")]
    timeline = _table(
        [("t_s", "f8"), *((name, "i8") for name in _COUNTERS), *ways],
        (
            (
                sample["t_s"],
                *(sample[name] for name in _COUNTERS),
                *(count for link in links for count in sample["link_bytes"].get(link, (0, 0))),
            )
            for sample in run["timeline"]
        ),
    )
    return Play(run["result"], requests, timeline, np.array(run["get_ms"], dtype=np.float64))


def _waited_s(waits_s: Mapping[str, float], what: str) -> float:
    return sum(waited_s for name, waited_s in waits_s.items() if name.partition(" ")[0] == what)


def _table(columns: list[tuple[str, str]], rows: Iterable[tuple[Any, ...]]) -> NDArray[np.void]:
    return np.array(list(rows), dtype=columns)
