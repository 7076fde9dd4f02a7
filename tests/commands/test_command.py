"""What all commands do alike: how much they say, how they refuse bad input, how they end."""

import os
import signal
from collections.abc import Sequence

import pytest
from rich.table import Table

from commands.command import Screen, run_command
from commands.errors import OptionError
from commands.verbosity import QUIET, VERBOSE, verbosity


def parse(arguments: Sequence[str]) -> Sequence[str]:
    return arguments


@pytest.mark.parametrize(
    ("arguments", "level"),
    [
        ((), 0),
        (("-v",), VERBOSE),
        (("-vv",), VERBOSE + 1),
        (("-vvvv",), VERBOSE + 1),
        (("-q",), QUIET),
        (("--policy", "lru", "--quiet", "--seed=3"), QUIET),
        (("--verbose", "--requests", "5"), VERBOSE),
    ],
)
def test_how_much_is_said_is_asked_for_as_everywhere(arguments: tuple[str, ...], level: int) -> None:
    assert verbosity(arguments) == level


def test_make_gives_it_as_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_VERBOSE", "2")
    assert verbosity(()) == 2
    monkeypatch.setenv("WEIR_QUIET", "1")
    assert verbosity(()) == QUIET
    assert verbosity(("-v",)) == VERBOSE  # the command line comes first


def test_a_level_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WEIR_VERBOSE", "7")
    assert run_command((), parse, lambda screen, _: 0) == 2
    assert capsys.readouterr().err == "error: VERBOSE: must be from 0 to 2, not 7\n"


def test_the_exit_code_is_that_of_the_work() -> None:
    assert run_command((), parse, lambda screen, _: 1) == 1


def test_bad_input_is_one_message_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def work(screen: Screen, given: Sequence[str]) -> int:
        raise OptionError("HOSTS must be from 1 to 256, not 0 [sic]")

    assert run_command((), parse, work) == 2
    said = capsys.readouterr()
    assert said.err == "error: HOSTS must be from 1 to 256, not 0 [sic]\n"
    assert not said.out


def test_a_file_that_can_not_be_written_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def work(screen: Screen, given: Sequence[str]) -> int:
        with open("/proc/none/summary.json", "w"):  # noqa: PTH123
            return 0

    assert run_command((), parse, work) == 2
    assert capsys.readouterr().err == "error: /proc/none/summary.json: No such file or directory\n"


def test_a_bug_keeps_its_traceback() -> None:
    def work(screen: Screen, given: Sequence[str]) -> int:
        exit_codes: dict[str, int] = {}
        return exit_codes["missing"]

    with pytest.raises(KeyError):
        run_command((), parse, work)


def test_the_help_has_both_flags(capsys: pytest.CaptureFixture[str]) -> None:
    from emulator.options import parse_options

    with pytest.raises(SystemExit):
        run_command(("--help",), lambda given: parse_options(given, "weir", ""), lambda *_: 0)
    said = capsys.readouterr().out
    assert "--verbose" in said
    assert "--quiet" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_130(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def work(screen: Screen, given: Sequence[str]) -> int:
        os.kill(os.getpid(), number)
        signal.pause()
        return 0

    try:
        assert run_command((), parse, work) == 130
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert "interrupted" in capsys.readouterr().out


def test_quiet_leaves_results_and_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(QUIET)
    with screen.status("compiling") as show, screen.progress() as progress:
        show("playing")
        progress.advance(progress.add_task("playing", total=1))
        screen.say("where results are")
    screen.warn("the machine was busy")
    screen.show("the result")
    assert capsys.readouterr().out.splitlines() == ["warning: the machine was busy", "the result"]


def test_a_file_has_a_line_of_progress_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    screen = Screen()
    monkeypatch.setattr(screen.console, "get_time", lambda: now_s)
    with screen.progress() as progress:
        task = progress.add_task("playing", total=3000)
        for step_s, done in ((9, 1), (2, 1000), (9, 1), (2, 1)):
            now_s += step_s
            progress.update(task, description=f"play {done}", advance=done)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["play 1000: 1,001 of 3,000, 11 s", "play 1: 1,003 of 3,000, 22 s"]


def test_details_are_for_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().detail("a detail")
    assert not capsys.readouterr().out
    Screen(VERBOSE).detail("a detail")
    assert capsys.readouterr().out == "a detail\n"


@pytest.mark.parametrize(("terminal", "can"), [("xterm", True), ("dumb", False)])
def test_a_terminal_that_can_only_go_on_gets_no_view(
    terminal: str, can: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes what is not one for a terminal then
    monkeypatch.setenv("TERM", terminal)
    assert Screen().can_live is can


def test_a_table_that_goes_to_a_file_is_not_cut_to_the_width_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table(*(f"a column with number {number}" for number in range(7)))
    table.add_row(*(f"the cell of column {number}" for number in range(7)))
    monkeypatch.delenv("COLUMNS", raising=False)
    Screen().show(table)
    assert "the cell of column 6" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "60")
    Screen().show(table)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60
