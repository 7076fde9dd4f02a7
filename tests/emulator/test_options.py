"""Options: environment and command line, and what is said about values that don't exist."""

from pathlib import Path

import pytest

from commands.errors import OptionError
from emulator.options import RunOptions, parse_options, read_run, without_effect


def parse(*arguments: str) -> RunOptions:
    return parse_options(arguments, "run", "")


def test_defaults_describe_the_demo() -> None:
    options = parse()
    assert (options.emulation.engine, options.network.topology) == ("embedded", "star")
    assert options.workload.trace is None


def test_make_variables_arrive_through_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_HOSTS", "4")
    monkeypatch.setenv("WEIR_POLICY", "lru")
    options = parse()
    assert (options.nodes.count, options.pool.policy) == (4, "lru")


def test_the_command_line_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_HOSTS", "4")
    assert parse("--hosts", "5").nodes.count == 5


def test_an_empty_variable_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_TRACE", "")
    assert parse().workload.trace is None


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
        ("STORES", "-1", r"STORES: must be from 0 to 256, not -1"),
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


def test_a_file_may_say_what_the_simulator_alone_needs(tmp_path: Path) -> None:
    file = tmp_path / "both.toml"
    file.write_text("[prices]\nnic = 3.0\n[nodes]\ncount = 3\n[emulation]\nruns = 2\n")
    options = parse("--scenario", str(file))
    assert (options.nodes.count, options.emulation.runs, options.gate) == (3, 2, False)
    assert without_effect(file) == ["prices.nic"]
    with pytest.raises(OptionError, match=r"--prices-nic=3: there is no such option"):
        parse("--prices-nic=3")


def test_memory_is_said_in_blocks_or_in_gb_and_what_is_said_later_counts(tmp_path: Path) -> None:
    file = tmp_path / "blocks.toml"
    file.write_text("[pool]\nblocks = 5\n")
    assert parse("--scenario", str(file)).pool_blocks == 5
    assert parse("--scenario", str(file), "--pool-gb", "1.68").pool_blocks == 20
    with pytest.raises(OptionError, match=r"pool\.blocks and pool\.size_gb say the same"):
        parse("--pool-gb=1", "--pool-blocks=1")


def test_a_topology_has_its_own_number_of_hosts_unless_somebody_says_another() -> None:
    assert (parse("--topo=fattree").nodes.count, parse("--topo=fattree").storage.count) == (16, 4)
    assert parse("--topo=fattree", "--hosts=12").nodes.count == 12
    assert (parse("--stores=0").storage.kind, parse("--stores=0").lends) == ("peers", True)


def test_servers_are_named_by_commas_or_by_a_file_and_only_make_run_takes_them() -> None:
    assert parse("--servers", "a, root@b,c.toml").emulation.servers == ("a", "root@b", "c.toml")
    assert parse().emulation.servers == ()
    with pytest.raises(OptionError, match="SERVERS: topo plays on this machine: leave it out"):
        read_run(RunOptions, ("--servers", "a"), "topo", "")
