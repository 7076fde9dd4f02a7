"""Options: from the command line, else from the environment; what can't be is named."""

from __future__ import annotations

import pytest

from engines.conformance import cases  # noqa: F401 # registers them
from engines.conformance.__main__ import main
from engines.conformance.case import CASES, chosen
from engines.conformance.options import DEFAULT_CONNECTORS, OptionError, parse


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CASES", "CONNECTORS", "SEED", "RESULTS", "FOLDER", "MINUTES", "CONNECTOR_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def test_by_default_all_cases_run_with_four_connectors_and_the_example() -> None:
    options = parse([])
    assert options.connectors == DEFAULT_CONNECTORS
    assert chosen(options.cases) == list(CASES.values())


def test_make_gives_them_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_CONNECTORS", "lmcache,weir")
    monkeypatch.setenv("WEIR_CASES", "dtype,adapter")
    options = parse([])
    assert options.connectors == ("lmcache", "weir")
    assert [case.name for case in chosen(options.cases)] == ["adapter", "dtype"]  # in the order of the list
    assert parse(["--connector", "mooncake"]).connectors == ("mooncake",)


def test_another_connector_is_given_by_its_configuration() -> None:
    options = parse(["--connector-config", '{"kv_connector": "Mine", "kv_role": "kv_both"}'])
    assert options.connectors == ("given",)
    assert options.given == {"kv_connector": "Mine", "kv_role": "kv_both"}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--connector", "lmcach"], "there is no connector 'lmcach'"),
        (["--case", "all"], "there is no case 'all'"),
        (["--connector-config", "{"], "is not JSON"),
        (["--connector-config", "[]"], "with kv_connector"),
    ],
)
def test_what_can_not_be_is_named(arguments: list[str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        parse(arguments)


def test_bad_options_are_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--case", "all"]) == 2
    assert "there is no case 'all'" in capsys.readouterr().out


def test_without_vllm_it_says_where_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("libcachesim", reason="the engines' environment has vLLM")
    assert main([]) == 2
    assert "vLLM is not installed" in capsys.readouterr().out


def test_the_list_names_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "vllm-project/vllm#42694" in capsys.readouterr().out
