"""The logs of many processes become one, in the order of time, while they are written."""

import json
import os
import shutil
from pathlib import Path

import pytest

from experiments.logs import Logs
from weir.logs import Record


def line(time: float, level: str, message: str) -> str:
    return Record(time, level, "node1", "test", message).to_json() + "\n"


def test_logs_are_gathered_in_order_and_to_their_end(tmp_path: Path) -> None:
    directory, seen = tmp_path / "network", []
    (directory / "1-pool").mkdir(parents=True)
    logs = Logs(tmp_path / "results" / "log.jsonl", lambda record: seen.append(record.message))
    with logs.follow(directory):
        (directory / "1-pool" / "node1.log").write_text(line(2.0, "info", "b") + line(3.0, "warning", "c"))
        (directory / "s1.log").write_text(line(1.0, "info", "a") + "half a line")
        (directory / "node1.json").write_text("no log")
    kept = [json.loads(text) for text in logs.path.read_text().splitlines()]
    assert [record["message"] for record in kept] == seen == ["a", "b", "c"]
    assert dict(logs.counts) == {"info": 2, "warning": 1}


def test_what_is_added_later_is_read_once(tmp_path: Path) -> None:
    logs, log = Logs(tmp_path / "log.jsonl"), tmp_path / "network" / "node1.log"
    log.parent.mkdir()
    for number in range(3):
        with logs.follow(log.parent), log.open("a") as file:
            file.write(line(float(number), "info", f"{number}"))
        assert logs.counts["info"] == number + 1


def test_the_logs_of_an_earlier_network_stay_where_that_is_wanted(tmp_path: Path) -> None:
    for name, append in (("old", False), ("first", False), ("second", True)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "s1.log").write_text(line(1.0, "info", name))
        with Logs(tmp_path / "log.jsonl", append=append).follow(tmp_path / name):
            pass
    kept = [json.loads(text)["message"] for text in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert kept == ["first", "second"]


def test_folders_and_logs_that_vanish_while_they_are_looked_for_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "network"
    for name in ("gone", "later"):
        (directory / name).mkdir(parents=True)
        (directory / name / "s1.log").write_text(line(1.0, "info", name))
    scandir = os.scandir

    def vanishing(path: str | int) -> object:
        if not isinstance(path, int) and Path(path).name == "gone":
            shutil.rmtree(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    logs = Logs(tmp_path / "log.jsonl")
    with logs.follow(directory):
        pass
    assert [json.loads(text)["message"] for text in logs.path.read_text().splitlines()] == ["later"]


def test_a_log_that_is_begun_anew_is_read_anew(tmp_path: Path) -> None:
    logs, log = Logs(tmp_path / "log.jsonl"), tmp_path / "network" / "store1.log"
    log.parent.mkdir()
    for message in ("before the process was killed", "after"):
        log.write_text(line(1.0, "info", message))
        with logs.follow(log.parent):
            pass
    assert logs.counts["info"] == 2


def test_a_directory_that_goes_away_stops_nothing(tmp_path: Path) -> None:
    logs = Logs(tmp_path / "log.jsonl")
    with logs.follow(tmp_path / "never there"):
        pass
    assert logs.path.read_text() == ""
