"""A survey of programs: each outcome, classes of reasons, and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.experiments.summaries import assert_described
from tests.v1model.refused_program import program
from v1model.corpus import survey

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program of each outcome, one of them deeper; a file that is only included; another architecture."""
    main = program()
    cases = {
        "deep/compiled": main,
        "unsupported": program(types="header long_t { varbit<8> a; varbit<8> b; }"),
        "refused": program(apply="meta.low = nowhere;"),
        "unreadable": '#include "missing.p4"\n' + main,
        "part": "const bit<8> part = 1;\n",
        "psa": "#include <psa.p4>\nPSA_Switch(IP(), PRE(), EP(), BQE()) main;\n",
    }
    for name, text in cases.items():
        path = tmp_path / f"{name}.p4"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_the_instance_may_stand_in_an_included_file(tmp_path: Path) -> None:
    """What only holds the instance is no program of its own."""
    before, instance = program().split("V1Switch(")
    (tmp_path / "main.p4").write_text(before + '#include "shared/instance.p4"\n')
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "instance.p4").write_text("V1Switch(" + instance)
    (tmp_path / "shared" / "other.p4").write_text("const bit<8> other = 1;\n")
    (tmp_path / "again.p4").write_text('#include "main.p4"\n')
    names = [path.relative_to(tmp_path).as_posix() for path in survey.find_programs(tmp_path)]
    assert names == ["again.p4", "main.p4"]
    assert survey.compile_one(tmp_path / "main.p4") == (survey.COMPILED, "")


def test_each_outcome(folder: Path) -> None:
    outcomes = list(survey.survey(folder, jobs=2))
    assert {outcome.name: outcome.result for outcome in outcomes} == {
        "deep/compiled.p4": survey.COMPILED,
        "unsupported.p4": survey.UNSUPPORTED,
        "refused.p4": survey.REFUSED,
        "unreadable.p4": survey.UNREADABLE,
    }
    found = survey.summary(outcomes)
    assert (found["programs"], found[survey.COMPILED], found[survey.CRASHED]) == (4, 1, 0)
    assert found["reasons"] == {
        "refused: … is not declared": 1,
        "unreadable: missing.p4: No such file or directory": 1,
        "unsupported: header … has more than one varbit field": 1,
    }


def test_a_failing_c_compiler_is_an_outcome_of_its_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The preprocessor is `cc`; the generated code is compiled by CC."""
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", "false")
    (outcome,) = survey.survey(folder / "deep", jobs=1)
    assert outcome.result == survey.C_FAILED


def test_a_program_that_takes_too_long(folder: Path) -> None:
    (outcome,) = survey.survey(folder / "deep", jobs=1, timeout_s=0)
    assert (outcome.result, outcome.reason) == (survey.CRASHED, "timed out")


def test_the_command(folder: Path) -> None:
    summary = folder / "results" / "summary.json"
    command = [sys.executable, "-m", "v1model.corpus", str(folder), "--summary", str(summary)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 programs: 1 compiled, 1 unsupported, 1 refused, 1 unreadable" in done.stdout
    assert "refused.p4: " in done.stdout
    assert json.loads(summary.read_text())["compiled"] == 1
    assert_described("corpus", summary)


def test_a_folder_without_programs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "v1model.corpus", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1
    assert "no v1model program" in done.stderr
