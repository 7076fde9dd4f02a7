"""What make hands on, with a set-up that is a stub: the real Makefile, its check and its scripts."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from emulator.result import ROOT

PYTHON = """\
#!/bin/sh
echo "ran $*"
env | grep -E "^(WEIR_|GPU=)" | sort
"""
SETUP = """\
mkdir -p .venv/bin
cp python.stub .venv/bin/python
echo "set up"
touch .venv/.ready
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with what make reads; its Python prints what it is told."""
    for name in ("Makefile", "requirements.lock", "requirements-shell.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("scripts", "hostlib/native", "v1model"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=lambda folder, _: _ignored(Path(folder)))
    (tmp_path / "commands").mkdir()
    shutil.copy(ROOT / "commands" / "variables.tsv", tmp_path / "commands")
    (tmp_path / "python.stub").write_text(PYTHON)
    (tmp_path / "python.stub").chmod(0o755)
    (tmp_path / "scripts" / "setup.sh").write_text(SETUP)
    return tmp_path


def _ignored(folder: Path) -> list[str]:
    """All but the files of the folder itself."""
    return [path.name for path in folder.iterdir() if path.is_dir()]


def make(clone: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and output of make."""
    inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    done = subprocess.run(
        ["make", *arguments], cwd=clone, env=inherited | environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run", "POLCY=lru"], "POLCY: make run has no such variable; did you mean POLICY?"),
        (["run", "policy=lru"], "did you mean POLICY?"),
        (["run", "--", "--policy=lru"], "--policy: make run has no such variable; did you mean POLICY?"),
        (["run", "POLICY=", "lru"], "write POLICY=lru, without a blank"),
        (["run", "HOSTS=many"], "HOSTS: must be a whole number, not 'many'"),
        (["blocks", "SAMPLES=1"], "SAMPLES: must be from 4 to 1000, not 1"),
        (["-j4", "study", "MINUTS=3"], "MINUTS: make study has no such variable; did you mean MINUTES?"),
    ],
)
def test_nothing_is_set_up_for_what_is_refused(clone: Path, arguments: list[str], complaint: str) -> None:
    code, said = make(clone, *arguments)
    assert code == 2
    assert complaint in said
    assert "set up" not in said


def test_variables_of_make_reach_the_program_and_those_of_the_environment_do_not(clone: Path) -> None:
    code, said = make(clone, "run", "POLICY=lru", "TRACE=/", GPU="0", WEIR_SEED="7", WEIR_POLICY="lfu")
    assert code == 0, said
    assert "ran -m experiments run\n" in said
    told = said.split("ran -m experiments run\n")[1]
    assert told.splitlines() == ["GPU=0", "WEIR_POLICY=lru", "WEIR_SEED=7", "WEIR_TRACE=/"]
    assert "note: GPU of the environment is not read" in said


def test_commands_that_install_or_compile_more_check_all_that_they_are_told_first(clone: Path) -> None:
    _, said = make(clone, "study", "QUICK=1")
    ran = [line for line in said.splitlines() if line.startswith("ran ") and "native" not in line]
    programs = ["experiments.check study", "experiments.simulate.compile", "experiments study"]
    assert ran == [f"ran -m {program}" for program in programs]
