"""One format for what all processes log, and a reader that takes whatever else they say."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from weir.logs import LAST_LINES, LEVELS, Record, last_lines, read_line


def logged(program: str, level: str = "info") -> tuple[int, list[Record]]:
    """What a process says that logs as all do."""
    done = subprocess.run(
        [sys.executable, "-c", f"import logging; from weir import logs; logs.begin('node1'); {program}"],
        stderr=subprocess.PIPE, text=True, check=False, env={"WEIR_LOG": level, "PYTHONPATH": "."},
    )  # fmt: skip
    return done.returncode, [read_line(line, "?", 0.0) for line in done.stderr.splitlines()]


def test_a_record_has_time_level_process_logger_and_message() -> None:
    code, (record,) = logged("logging.getLogger('hostlib.x').info('block %d is lost', 7)")
    assert code == 0
    assert (record.level, record.process, record.logger) == ("info", "node1", "hostlib.x")
    assert record.message == "block 7 is lost"
    assert record.time > 1.7e9
    assert record.to_text().endswith("info     node1: block 7 is lost")


def test_less_than_the_level_is_not_logged() -> None:
    program = "logging.info('a'); logging.warning('b')"
    assert [record.message for record in logged(program)[1]] == ["a", "b"]
    assert [record.message for record in logged(program, "warning")[1]] == ["b"]
    assert [record.message for record in logged(program, "no such level")[1]] == ["b"]


def test_a_crash_is_a_record_with_its_traceback() -> None:
    code, (record,) = logged("{}['missing']")
    assert code == 1
    assert (record.level, record.message) == ("critical", "KeyError: 'missing'")
    assert "Traceback" in record.exception
    code, (record,) = logged("import threading as t; w = t.Thread(target=lambda: 1 / 0); w.start(); w.join()")
    assert (code, record.message) == (0, "ZeroDivisionError: division by zero")


def test_a_crash_of_the_interpreter_says_where_it_was() -> None:
    code, records = logged("import os; os.abort()")
    assert code == -signal.SIGABRT
    assert (records[0].level, records[0].message) == ("critical", "Fatal Python error: Aborted")


def test_what_is_no_json_is_a_message() -> None:
    record = read_line("error: the port is taken\n", "store1", 5.0)
    assert record == Record(5.0, "error", "store1", "", "error: the port is taken")
    assert read_line("weir-switch: warning: x", "s1", 5.0).level == "warning"
    assert read_line("listening on 1.2.3.4", "s1", 5.0).level == "info"


def test_a_process_that_does_not_know_its_name_gets_that_of_its_file() -> None:
    line = json.dumps({"time": 1.0, "level": "info", "logger": "v1model", "message": "m"})
    assert read_line(line, "s1", 5.0) == Record(1.0, "info", "s1", "v1model", "m")


records = st.builds(
    Record, st.floats(0, 4e9), st.sampled_from(LEVELS), st.text(min_size=1), st.text(min_size=1),
    st.text(), st.text(),
)  # fmt: skip


@given(records)
def test_what_is_written_is_read(record: Record) -> None:
    line = record.to_json()
    assert "\n" not in line
    assert read_line(line, "?", 0.0) == record or not record.message


@given(st.text())
def test_any_line_is_a_record(line: str) -> None:
    assert read_line(line, "s1", 1.0).severity > 0


def test_the_last_lines_are_few_and_for_people(tmp_path: Path) -> None:
    log = tmp_path / "store1.log"
    assert last_lines(log, "store1") == []
    kept = [Record(1.0, "info", "store1", "x", f"line {n}").to_json() for n in range(100)]
    log.write_text("\n".join([*kept, "Segmentation fault"]) + "\n")
    lines = last_lines(log, "store1")
    assert len(lines) == LAST_LINES
    assert lines[-1] == "Segmentation fault"
    assert lines[-2].endswith("info     store1: line 99")


def test_of_a_dump_the_first_lines_are_shown(tmp_path: Path) -> None:
    log = tmp_path / "s1.log"
    calls = [f'  File "x.py", line {n} in call' for n in range(100)]
    log.write_text("\n".join(["before", "Fatal Python error: Aborted", "", *calls]))
    lines = last_lines(log, "s1")
    assert lines == ["Fatal Python error: Aborted", *calls[: LAST_LINES - 1]]
