"""How options stand on the command line: with a value, as a name alone, or as a value alone."""

from dataclasses import dataclass

import pytest

from commands.options import FLAG, PLACE, Option, OptionError, parse_into, whole, yes_or_no


@dataclass(frozen=True)
class Chosen:
    what: str
    loud: bool
    times: int


OPTIONS = (
    Option("WHAT", str, None, "what is said", form=PLACE),
    Option("LOUD", yes_or_no, False, "louder", form=FLAG),
    Option("TIMES", whole(1, 9), 1, "how often"),
)


def parsed(*arguments: str) -> Chosen:
    return parse_into(Chosen, OPTIONS, arguments, "say", "Says it.")


def test_a_name_alone_says_yes_wherever_it_stands() -> None:
    assert parsed("hello") == Chosen("hello", loud=False, times=1)
    assert parsed("--loud", "hello") == parsed("hello", "--loud") == Chosen("hello", loud=True, times=1)
    assert parsed("--times", "3", "hello").times == 3


def test_variables_count_where_the_command_line_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUD", "yes")
    monkeypatch.setenv("TIMES", "4")
    assert parsed("hello") == Chosen("hello", loud=True, times=4)
    assert parsed("hello", "--times", "2").times == 2
    monkeypatch.setenv("LOUD", "very")
    with pytest.raises(OptionError, match="LOUD: must be yes or no"):
        parsed("hello")


def test_what_has_to_be_there_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed()
    assert "the following arguments are required: WHAT" in capsys.readouterr().err
