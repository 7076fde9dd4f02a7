"""Options: environment and command line, and what is said about values that don't exist."""

import pytest

from commands.errors import OptionError
from emulator.options import RunOptions, parse_options


def parse(*arguments: str) -> RunOptions:
    return parse_options(arguments, "run", "")


def test_defaults_describe_the_demo() -> None:
    options = parse()
    assert (options.engine, options.topology) == ("embedded", "star")
    assert options.trace is None


def test_make_variables_arrive_through_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_HOSTS", "4")
    monkeypatch.setenv("WEIR_POLICY", "lru")
    options = parse()
    assert (options.hosts, options.policy) == (4, "lru")


def test_the_command_line_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_HOSTS", "4")
    assert parse("--hosts", "5").hosts == 5


def test_an_empty_variable_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_TRACE", "")
    assert parse().trace is None


def test_nodes_that_lend_take_no_evicted_blocks_unless_someone_says_so() -> None:
    assert (parse().lends, parse().eviction) == (False, "value")
    assert (parse("--stores", "0").lends, parse("--stores", "0").eviction) == (True, "drop")
    assert parse("--stores", "0", "--eviction", "reclaim").eviction == "reclaim"


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("ENGINE", "tofino", r"ENGINE: there is no 'tofino': choose one of embedded, bmv2"),
        ("POLICY", "best", r"POLICY: there is no 'best': choose one of .*lru"),
        ("TOPO", "ring", r"TOPO: there is no 'ring': choose one of star"),
        ("SCHEDULER", "x", r"SCHEDULER: there is no 'x': choose one of random"),
        ("TIERS", "x", r"TIERS: there is no 'x': choose one of exclusive, inclusive, by-value"),
        ("HOSTS", "0", r"HOSTS: must be from 1 to 256, not 0"),
        ("STORES", "-1", r"STORES: must be from 0 to 64, not -1"),
        ("HOSTS", "many", r"HOSTS: must be a whole number, not 'many'"),
        ("SCALE", "nan", r"SCALE: must be from 1 to 1000000000, or auto, not nan"),
        ("REQUESTS", "1e9", r"REQUESTS: must be a whole number"),
        ("BLEND", "maybe", r"BLEND: must be yes or no \(1 or 0\), not 'maybe'"),
    ],
)
def test_bad_values_are_answered_with_what_there_is(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(f"WEIR_{variable}", value)
    with pytest.raises(OptionError, match=message):
        parse()
