"""The benchmark's options."""

import pytest

from commands.errors import OptionError
from experiments.bench.switch.options import parse_options


def test_defaults_measure_everything() -> None:
    options = parse_options([])
    assert options.engines == ()
    assert options.workloads == ("hits", "misses", "merges", "puts", "l3")
    assert (options.rounds, options.seconds, options.record) == (3, 0.5, False)


def test_environment_and_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROUNDS": "5", "WORKLOADS": "l3,hits", "RECORD": "1", "SECONDS": ""}.items():
        monkeypatch.setenv(f"WEIR_{name}", value)
    options = parse_options(["--rounds", "2", "--engines", "embedded,echo"])
    assert options.rounds == 2
    assert options.workloads == ("hits", "l3")
    assert options.engines == ("echo", "embedded")
    assert options.record


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--engines", "tofino"], "ENGINES: there is no 'tofino': choose one of echo, embedded, bmv2"),
        (["--workloads", "pots"], "WORKLOADS: there is no 'pots'"),
        (["--rounds", "many"], "ROUNDS: must be a whole number, not 'many'"),
        (["--rounds", "0"], "ROUNDS: must be from 1 to 100, not 0"),
        (["--seconds", "nan"], "SECONDS: must be from 0.05 to 10, not nan"),
        (["--record", "perhaps"], "RECORD: must be yes or no"),
    ],
)
def test_bad_values_say_what_is_taken(arguments: list[str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        parse_options(arguments)


def test_help_helps(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--help"])
    assert "Each option is a variable, too" in capsys.readouterr().out
