"""What a command is told: names and values, where each of them counts, and what is said of the others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Len
from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Each, Existing, OneOf, Unit, Unnamed, Variable, Within, keys_of
from commands.errors import OptionError
from commands.options import Source, Values, build, help_of, nearest, read


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class Pool:
    """A table."""

    policy: Annotated[str, OneOf(("lru", "reuse", "fifo")), Variable("POLICY")] = "reuse"
    """Policy of the pool."""
    size_gb: Annotated[float, Within(0, 100)] = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class Chosen:
    """A command."""

    scenario: Annotated[Path | None, Unnamed()] = None
    """A file."""
    loud: bool = False
    """Say it louder."""
    times: Annotated[int, Within(1, 9), Unit("calls")] = 1
    """How often
    it is said."""
    scale: Annotated[float, Within(1, 1e9)] | Literal["auto"] = "auto"
    names: tuple[Annotated[str, OneOf(("a", "b"))], ...] = ("a",)
    rates: Annotated[tuple[Annotated[float, Within(0, 9)], ...] | None, Each(), Len(2, 2)] = None
    trace: Annotated[Path | None, Existing()] = None
    pool: Pool = Pool()


def parsed(*arguments: str, environment: Mapping[str, str] | None = None) -> Chosen:
    return read(Chosen, arguments, "say", "Says it.", environment=environment or {})


def test_keys_say_all_that_was_declared() -> None:
    keys = {key.variable: key for key in keys_of(Chosen)}
    times = keys["TIMES"]
    assert (times.name, times.flag, times.default, times.unit) == ("times", "--times", 1, "calls")
    assert help_of(times) == "How often it is said. [1 to 9] (default: 1)"
    assert (keys["POLICY"].path, keys["POLICY"].kind.words) == (("pool", "policy"), ("lru", "reuse", "fifo"))
    assert (keys["POOL_SIZE_GB"].unit, keys["SCALE"].kind.words, keys["NAMES"].kind.many) == (
        "GB",
        ("auto",),
        True,
    )


def test_a_name_alone_says_yes_and_values_find_their_tables() -> None:
    assert parsed("--loud").loud
    assert not parsed("--loud=no").loud
    assert parsed("--policy", "lru", "--pool-size-gb=3").pool == Pool(policy="lru", size_gb=3.0)
    assert parsed("file.toml", "--times", "3").scenario == Path("file.toml")


def test_variables_count_where_the_command_line_says_nothing() -> None:
    environment = {"WEIR_LOUD": "yes", "WEIR_TIMES": "4", "WEIR_POLICY": "", "TIMES": "9"}
    assert parsed(environment=environment) == Chosen(loud=True, times=4)
    assert parsed("--times", "2", environment=environment).times == 2


@pytest.mark.parametrize("arguments", [["a.toml"], ["--scenario", "a.toml"]], ids=["place", "name"])
def test_what_has_a_place_may_be_said_by_name(arguments: list[str]) -> None:
    said = parsed(*arguments, "--times", "2", environment={"WEIR_SCENARIO": "b.toml"})
    assert (said.scenario, said.times) == (Path("a.toml"), 2)


def test_lists_hold_each_once_but_where_there_is_one_for_each() -> None:
    assert parsed("--names", "b, a,b").names == ("b", "a")
    assert parsed("--rates", "1,1").rates == (1.0, 1.0)
    with pytest.raises(OptionError, match="RATES: must be 2 values, by commas, not 3"):
        parsed("--rates", "1,1,1")


def test_files_count_less_than_variables(tmp_path: Path) -> None:
    def of_file(path: Path) -> Values:
        return {("times",): 7, ("pool", "size_gb"): 5.0, ("pool", "policy"): "fifo"}

    said = read(
        Chosen,
        ["x.toml", "--pool-size-gb", "1"],
        "say",
        "",
        Source(of_file),
        environment={"WEIR_POLICY": "lru"},
    )
    assert (said.times, said.pool) == (7, Pool(policy="lru", size_gb=1.0))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--tims=3"], r"--tims=3: there is no such option; did you mean --times\?"),
        (["a.toml", "policy=lru"], r"policy=lru: there is no such option; did you mean --policy\?"),
        (["--pol=lru"], r"--pol=lru: there is no such option"),
        (["--times"], "--times: expected one argument"),
        (["--policy=lur"], r"POLICY: there is no 'lur': did you mean lru\? choose one of lru, reuse, fifo"),
        (["--times=x"], "TIMES: must be a whole number, not 'x'"),
        (["--times=10"], "TIMES: must be from 1 to 9, not 10"),
        (["--pool-size-gb=nan"], "POOL_SIZE_GB: must be from 0 to 100, not nan"),
        (["--scale=fast"], "SCALE: must be a number, or auto, not 'fast'"),
        (["--loud=very"], r"LOUD: must be yes or no \(1 or 0\), not 'very'"),
        (["--trace=nowhere.jsonl"], "TRACE: there is no file nowhere.jsonl"),
    ],
)
def test_what_is_not_declared_is_refused_by_name(arguments: list[str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        parsed(*arguments)


def test_a_variable_that_no_command_has_is_refused() -> None:
    with pytest.raises(OptionError, match=r"WEIR_TIMS in .* no such variable; did you mean WEIR_TIMES\?"):
        parsed(environment={"WEIR_TIMS": "3"})
    assert parsed(environment={"WEIR_BURSTS": "3", "WEIR_PURE": "1"}) == Chosen()  # of make incast, of all


def test_toml_has_its_own_types() -> None:
    keys = {key.variable: key for key in keys_of(Chosen)}
    assert keys["NAMES"].from_toml(["a", "b"]) == ("a", "b")
    assert keys["POOL_SIZE_GB"].from_toml(3) == 3.0
    for variable, value, complaint in (
        ("TIMES", "3", "a whole number, not '3'"),
        ("TIMES", True, "a whole number, not True"),
        ("LOUD", 1, "true or false, not 1"),
        ("SCALE", "fast", "a number, or auto, not 'fast'"),
    ):
        with pytest.raises(ValueError, match=complaint):
            keys[variable].from_toml(value)


def test_values_are_checked_however_they_come() -> None:
    assert build(Chosen, {("pool", "policy"): "lru"}).pool.policy == "lru"
    with pytest.raises(OptionError, match="from 1 to 9"):
        build(Chosen, {("times",): 10})


def test_names_that_are_far_from_all_have_no_nearest() -> None:
    assert nearest("--POLCY", ["POLICY", "SCALE"]) == "POLICY"
    assert nearest("nothing", ["POLICY", "SCALE"]) is None
