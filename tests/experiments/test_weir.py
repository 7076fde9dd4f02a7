"""`weir`: one command for all programs, which make calls, too."""

from __future__ import annotations

import ast
import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from emulator.result import ROOT
from experiments import traces
from experiments.__main__ import main
from experiments.commands import GROUPS, PROGRAMS
from workload.generate import generate

MAKEFILE = (ROOT / "Makefile").read_text()


def test_help_lists_every_command_under_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    for name, command in PROGRAMS.items():
        group = said.split(f"{command.group}:\n")[1].split("\n\n")[0]
        assert re.search(rf"^  {name} +\w", group, re.MULTILINE), name
    assert {command.group for command in PROGRAMS.values()} == set(GROUPS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_command_has_a_program(name: str) -> None:
    spec = find_spec(PROGRAMS[name].program)
    assert spec is not None
    assert spec.origin is not None
    functions = [
        node for node in ast.parse(Path(spec.origin).read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    (main_,) = (node for node in functions if node.name == "main")
    assert len(main_.args.args) == 1


@pytest.mark.parametrize("name", [name for name, command in PROGRAMS.items() if command.keys])
def test_make_calls_the_same_command(name: str) -> None:
    recipe = MAKEFILE.split(f"\n{name}: ")[1].split("\n\n")[0]
    programs = (f"$(WEIR) {name}", f"-m experiments {name}", "-m engines.conformance")
    assert any(program in recipe for program in programs), recipe


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("polices", "weir: there is no command 'polices'; did you mean policies? (weir --help lists all)\n"),
        ("rnu", "weir: there is no command 'rnu'; did you mean run? (weir --help lists all)\n"),
        ("test-bmv2", "weir: there is no command 'test-bmv2' (weir --help lists all)\n"),
        ("--zzz", "weir: there is no command '--zzz' (weir --help lists all)\n"),
    ],
)
def test_an_unknown_command_is_refused_with_the_nearest(
    given: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([given]) == 2
    assert capsys.readouterr().err == complaint


def test_a_command_has_its_programs_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["simulate", "--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: weir simulate ")
    assert "--pool-blocks" in said


def test_what_needs_a_checkout_says_so_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("experiments.__main__.is_checkout", lambda: False)
    assert main(["shell"]) == 2
    assert (
        capsys.readouterr().err == "weir: shell works in a checkout of Weir's repository alone: make shell\n"
    )


def test_a_package_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr("experiments.__main__.import_module", fail)
    missing = "vllm.config"
    assert main(["kv-conformance"]) == 2
    assert capsys.readouterr().err == (
        "weir: kv-conformance needs the Python package vllm.config, which is not installed\n"
    )
    missing = "hostlib.oops"
    with pytest.raises(ModuleNotFoundError):
        main(["kv-conformance"])


def test_a_trace_is_generated_and_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "generate", "--requests=40", "--shape=rag"]) == 0
    path = tmp_path / "rag.jsonl"
    path.write_text(capsys.readouterr().out)
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 40
    assert main(["trace", "describe", str(path)]) == 0
    said = capsys.readouterr().out
    described = traces.describe(generate("rag", requests=40))
    assert described.requests == 40
    assert re.search(rf"blocks +│ +{described.blocks:,}", said)
    assert re.search(rf"repeated +│ +{described.repeated:.1%}", said)


def test_what_a_trace_holds() -> None:
    trace = generate("chat", requests=30)
    described = traces.describe(trace)
    chains = [set(request.blocks) for request in trace.requests]
    assert described.blocks == len(set.union(*chains))
    assert described.accesses == sum(map(len, chains))
    assert described.repeated == 1 - described.blocks / described.accesses


@pytest.mark.parametrize("given", [["describe"], ["describe", "nowhere.jsonl"], ["discribe", "x"]])
def test_trace_says_what_it_does_not_take(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", *given]) == 2
    assert capsys.readouterr().err.startswith("error: ")
