"""Mutations are what they say, and a test that would notice one does."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from emulator.result import ROOT
from experiments.mutate import __main__ as program
from experiments.mutate.operators import mutations
from experiments.mutate.promises import MODULES, files_of_tests
from tests.slow import rest_slow

SOURCE = '''"""Says 1 == 2."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from x import y

LIMIT: int = 3
MOST = 4
KNOWN: set[int] = field(default_factory=set, init=False)

def grown(count: int, known: set[int]) -> int:
    """Count + 1."""
    log.info("%d", count + 1)
    if count in known and count >= LIMIT or not known:  # ä
        known.add(count)
        return count + 1
    count -= count * 2
    stats.grown += 1
    self.stats.reasons["grown"] = 1
    self.stats.added += count * 2
    known.add(count, last=True)
    return now_s < self.until_s()
'''


def test_each_changes_one_thing_and_what_only_says_something_is_left_alone() -> None:
    found = [one.apply(SOURCE).splitlines()[one.line - 1].strip() for one in mutations(SOURCE)]
    assert sorted(found) == sorted(
        [
            "if False or not known:  # ä",
            "if True and count >= LIMIT or not known:  # ä",
            "if count not in known and count >= LIMIT or not known:  # ä",
            "if count in known and True or not known:  # ä",
            "if count in known and count > LIMIT or not known:  # ä",
            "if count in known and count >= LIMIT or (known):  # ä",
            "if count in known and count >= LIMIT or False:  # ä",
            "pass",
            "return count - 1",
            "return count + 2",
            "count += count * 2",
            "count -= count + 2",
            "count -= count * 3",
            "known.add(count, last=False)",
            "pass",
            "return now_s >= self.until_s()",
        ]
    )


@pytest.mark.parametrize("module", rest_slow(["hostlib/client/lookup.py"], MODULES))
def test_mutations_of_what_keeps_the_promises_are_programs_and_its_tests_are_there(module: str) -> None:
    source = (ROOT / module).read_text()
    found = mutations(source)
    assert len(found) > 1
    for one in found[:: max(1, len(found) // 20)]:
        changed = one.apply(source)
        assert changed != source
        ast.parse(changed)
    assert all((ROOT / test).exists() for test in files_of_tests(module))


def test_a_sample_follows_from_its_seed() -> None:
    modules = list(MODULES)
    assert program.sample(modules[:4], 20, 1) == program.sample(modules[:4], 20, 1)
    assert program.sample(modules[:4], 20, 1) != program.sample(modules[:4], 20, 2)


@pytest.mark.slow
def test_what_tests_notice_is_told_from_what_they_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hostlib").mkdir()
    (tmp_path / "tests").mkdir()
    module, test = tmp_path / "hostlib" / "grown.py", tmp_path / "tests" / "test_grown.py"
    module.write_text("def grown(count):\n    return count + 1 if count < 5 else 5\n")
    test.write_text("from hostlib.grown import grown\ndef test_it():\n    assert grown(3) == 4\n")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    monkeypatch.setattr(program, "files_of_tests", lambda module: ("tests/test_grown.py",))
    source = module.read_text()
    tried = [program.attempt(tmp_path, "hostlib/grown.py", one, 60) for one in mutations(source)]
    assert module.read_text() == source
    noticed = {one.after for one in tried if one.noticed}
    assert noticed == {"return count - 1 if count < 5 else 5", "return count + 2 if count < 5 else 5"}
    assert {one.after for one in tried} - noticed == {
        "return count + 1 if count <= 5 else 5",
        "return count + 1 if count < 6 else 5",
        "return count + 1 if count < 5 else 6",
    }
    assert all("test_it" in one.by for one in tried if one.noticed)
