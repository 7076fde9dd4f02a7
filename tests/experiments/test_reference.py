"""The reference page, the table of variables and the check that make runs agree with the declarations."""

import os
import subprocess
from pathlib import Path

import pytest

from commands.declarations import Each, Key
from commands.table import TABLE
from emulator.result import ROOT
from experiments import traffic, versions
from experiments.keys import ANY, WITH_KEYS, keys_by_command, keys_of_command
from experiments.reference import generated_files
from workload import trace

MAKEFILE = (ROOT / "Makefile").read_text()


def check(goals: str, given: dict[str, str] | None = None, **environment: str) -> tuple[int, str]:
    """Exit code and output of the check, as make runs it."""
    given = given or {}
    empty = next((name for name, value in given.items() if not value), "")
    values = {f"WEIR_{name}": value for name, value in given.items()}
    done = subprocess.run(
        ["awk", "-f", "scripts/variables.awk", str(TABLE), "Makefile"],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "GOALS": goals, "GIVEN": " ".join(given), "EMPTY": empty}
        | values | environment,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_generated_files_are_those_of_the_declarations() -> None:
    assert [str(path) for path, text in generated_files().items() if path.read_text() != text] == [], (
        "run: make reference"
    )


def test_a_new_version_is_copied_to_all_that_state_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "version", lambda: "9.8.7")
    texts = {path.relative_to(ROOT): text for path, text in versions.generated_files().items()}
    assert len(texts) == len(versions.FOLDERS) + 2
    assert all("9.8.7" in text for text in texts.values())
    assert '"weir-switch==9.8.7"' in texts[Path("pyproject.toml")]
    assert '"weir-client==9.8.7"' in texts[Path("engines/pyproject.toml")]
    assert "cff-version: 1.2.0\n" in texts[Path("CITATION.cff")]


def test_every_field_of_a_trace_is_described() -> None:
    assert set(traffic.FIELDS) == set().union(
        *(one.required | one.optional for one in (trace.MOONCAKE, trace.BAILIAN))
    )


def test_every_target_that_runs_a_program_has_its_keys_declared() -> None:
    phony = MAKEFILE.split(".PHONY:")[1].splitlines()[0].split()
    assert {command.split()[0] for command in WITH_KEYS} <= set(phony)


@pytest.mark.parametrize("command", WITH_KEYS)
def test_every_key_has_a_help_of_its_own(command: str) -> None:
    for key in keys_of_command(command):
        assert key.help.endswith("."), key.name
    variables = [key.variable for key in keys_of_command(command)]
    assert len(variables) == len(set(variables))


@pytest.mark.parametrize(
    ("goals", "given", "complaint"),
    [
        ("run", {"POLCY": "lru"}, "POLCY: make run has no such variable; did you mean POLICY?"),
        ("run", {"policy": "lru"}, "policy: make run has no such variable; did you mean POLICY?"),
        ("run", {"--policy": "lru"}, "--policy: make run has no such variable; did you mean POLICY?"),
        ("run lru", {"POLICY": ""}, "POLICY= has no value: write POLICY=lru, without a blank"),
        ("run --polcy", {}, "--polcy: write variables as NAME=value, without dashes; did you mean POLICY?"),
        ("run", {"BURSTS": "3"}, "BURSTS: make run has no such variable; it is one of make incast"),
        ("bench", {"WHAT": "tables", "ENGINES": "echo"}, "ENGINES: make bench has no such variable"),
        ("lint", {"X": "1"}, "X: make lint has no such variable"),
        ("run", {"POLICY": "lur"}, "POLICY: there is no 'lur': did you mean lru? choose one of fifo"),
        ("run", {"TRACE": "nowhere.jsonl"}, "TRACE: there is no file nowhere.jsonl"),
        ("run", {"MODES": "pool,none"}, "MODES: there is no 'none': choose one of no_pool"),
    ],
)
def test_make_is_told_what_it_does_not_take_before_anything_begins(
    goals: str, given: dict[str, str], complaint: str
) -> None:
    code, said = check(goals, given)
    assert (code, complaint in said) == (2, True), said


def test_the_environment_counts_with_its_prefix_alone() -> None:
    code, said = check("run", GPU="0", WEIR_POLICY="lru")
    assert (code, said) == (
        0,
        "note: GPU of the environment is not read: say make run GPU=..., or WEIR_GPU\n",
    )
    assert check("run", WEIR_POLICY="lur")[0] == 2
    code, said = check("run", WEIR_POLCY="lru")
    assert code == 2
    assert "WEIR_POLCY in the environment: there is no such variable; did you mean WEIR_POLICY?" in said


TEXTS = (
    "", "0", "1", "-1", "7", "1.5", "1e3", "1e99", "nan", "inf", "x", "auto", "adaptive", "yes", "No",
    "maybe", "lru", "1,2", "0x10", " 3 ", "1_000", "+5", ".5", "5.",
)  # fmt: skip


@pytest.mark.parametrize("command", WITH_KEYS)
def test_the_check_says_of_numbers_and_names_what_the_program_says(command: str) -> None:
    """A run of the check has all variables of a command, and one text; a command gets every second text."""
    unchecked = ("path", "file", "text", "name_or_file")
    keys = [key for key in keys_by_command()[command] if key.kind.name not in unchecked]
    keys = [key for key in keys if not key.marked(Each)]  # counted by the program alone
    what = {"WHAT": command.split()[1]} if " " in command else {}
    for text in TEXTS[list(WITH_KEYS).index(command) % 2 :: 2]:
        _, said = check(command.split()[0], {key.variable: text for key in keys} | what)
        refused = {line.removeprefix("error: ").split(":")[0] for line in said.splitlines()}
        for key in keys:
            assert (key.variable in refused) == (not accepts(key, text)), (key.variable, text)


def accepts(key: Key, text: str) -> bool:
    """Whether the program takes it; an empty text says nothing."""
    if not text.strip():
        return True
    try:
        key.from_text(text)
    except ValueError:
        return False
    return True


def test_every_command_has_the_common_keys() -> None:
    assert {"QUIET", "VERBOSE", "LOG", "PURE"} <= {key.variable for key in keys_by_command()[ANY]}
