"""A build of the simulator is in its place only once it said what Python says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.simulate import compile as making
from experiments.simulate.compile import BuildError, build
from simulator import compiled

SCENARIO = '["default", ' + "1.5, " * 5000 + "2]"


class Place:
    """Where builds lie, with compilers that make a file of text."""

    def __init__(self, folder: Path) -> None:
        self.built = folder / "weir" / f"{compiled.GROUP}-1"
        self.compiled = 0

    def compile(self, scratch: Path) -> Path:
        """Takes no time."""
        self.compiled += 1
        made = scratch / "made"
        made.mkdir()
        (made / "code").write_text("mine")
        return made

    def left(self) -> list[Path]:
        """All that lies there."""
        return sorted(self.built.parent.iterdir())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    monkeypatch.setattr(making, "folder", lambda: place.built)
    monkeypatch.setattr(making, "_check", lambda: None)
    monkeypatch.setattr(making, "_compile", place.compile)
    return place


@pytest.fixture
def playing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Have the scenarios end so: played by Python, and by the build. The builds that were asked."""

    def play(
        in_c: tuple[int, str, str] | BaseException, in_python: tuple[int, str, str] | None = None
    ) -> list[str]:
        asked: list[str] = []

        def run(command: list[str], env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
            if env["WEIR_COMPILED"] == "0":
                return subprocess.CompletedProcess(command, *(in_python or (0, f"Python\n{SCENARIO}\n", "")))
            asked.append(env[compiled.FROM])
            if isinstance(in_c, BaseException):
                raise in_c
            return subprocess.CompletedProcess(command, *in_c)

        monkeypatch.setattr(subprocess, "run", run)
        return asked

    return play


SAME = (0, f"compiled\n{SCENARIO}\n", "")


def test_a_build_is_compared_before_it_is_in_its_place(
    place: Place, playing: Callable[..., list[str]]
) -> None:
    asked = playing(SAME)
    assert build() == place.built
    assert (place.built / "code").read_text() == "mine"
    assert place.left() == [place.built]
    assert len(asked) == 1
    assert not asked[0].startswith(str(place.built))


def test_one_that_is_there_is_not_made_again(place: Place, playing: Callable[..., list[str]]) -> None:
    asked = playing(SAME)
    assert build() == build()
    assert (place.compiled, len(asked)) == (1, 1)


def test_an_interrupted_comparison_leaves_nothing(place: Place, playing: Callable[..., list[str]]) -> None:
    playing(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        build()
    assert place.left() == []


@pytest.mark.parametrize(
    ("in_c", "why"),
    [
        ((0, f"compiled\n{SCENARIO.replace('2]', '3]')}\n", ""), "does not say what Python says: .*default"),
        ((0, "compiled\n", ""), "does not say what Python says: 1 lines"),
        ((0, f"Python\n{SCENARIO}\n", ""), "was not used"),
        (
            (1, "", "Traceback:\n  line\nImportError: no symbol\n"),
            "it can't be loaded: ImportError: no symbol$",
        ),
        ((1, SCENARIO, "Traceback:\nTypeError: float object expected\n"), "it fails: TypeError: float"),
        ((-11, "compiled\n", ""), "it fails: exit status -11"),
    ],
)
def test_a_failed_comparison_leaves_nothing_and_says_why_in_short(
    place: Place, playing: Callable[..., list[str]], in_c: tuple[int, str, str], why: str
) -> None:
    playing(in_c)
    with pytest.raises(BuildError, match=why) as failed:
        build()
    assert len(str(failed.value)) < 200
    assert place.left() == []


def test_scenarios_that_fail_in_python_are_not_the_builds_fault(
    place: Place, playing: Callable[..., list[str]]
) -> None:
    playing(SAME, (1, "", "Traceback:\nValueError: no such shape\n"))
    with pytest.raises(BuildError, match="Python alone fails: ValueError: no such shape"):
        build()
    assert place.left() == []


def test_of_two_builders_at_once_the_first_one_stays(
    place: Place, playing: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    playing(SAME)
    compare = making._compare

    def and_meanwhile_another(made: Path) -> None:
        compare(made)
        place.built.mkdir()
        (place.built / "code").write_text("another's")

    monkeypatch.setattr(making, "_compare", and_meanwhile_another)
    assert build() == place.built
    assert (place.built / "code").read_text() == "another's"
    assert place.left() == [place.built]


def test_sources_that_change_meanwhile_are_not_those_of_the_build(
    place: Place, playing: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    playing(SAME)
    folders = iter([place.built, place.built.with_name("other")])
    monkeypatch.setattr(making, "folder", lambda: next(folders))
    with pytest.raises(BuildError, match="changed meanwhile"):
        build()
    assert place.left() == []


def test_what_nobody_used_for_a_month_goes(place: Place, playing: Callable[..., list[str]]) -> None:
    playing(SAME)
    young, *old = (
        place.built.with_name(name) for name in (f"{compiled.GROUP}-2", f"{compiled.GROUP}-3", ".new-killed")
    )
    core = place.built.with_name("weir_native-1.so")
    for path in (young, *old, core):
        path.mkdir(parents=True)
    for path in (*old, core):
        os.utime(path, (0, 0))
    build()
    assert place.left() == sorted([place.built, young, core])


def test_what_the_c_compiler_says_is_shown_where_it_fails_only(capfd: pytest.CaptureFixture[str]) -> None:
    says = "import sys; print('said by cc', file=sys.stderr); sys.exit(int(sys.argv[1]))"
    cc = [sys.executable, "-S", "-c", says]
    with making._step("from C"):
        subprocess.run([*cc, "0"], check=True)
    assert capfd.readouterr().err == "  from C: 0 s\n"
    with pytest.raises(BuildError, match="said by cc"), making._step("from C"):
        subprocess.run([*cc, "1"], check=True)
    assert capfd.readouterr() == ("", "")


def test_a_build_that_is_asked_for_and_can_not_be_loaded_is_an_error(tmp_path: Path) -> None:
    (tmp_path / f"{compiled.LIBRARY}{compiled.SUFFIX}").write_text("no code")
    environment = {**os.environ, "WEIR_COMPILED": "1", "WEIR_PURE": "0", compiled.FROM: str(tmp_path)}
    command = [sys.executable, "-c", "import experiments"]
    done = subprocess.run(
        command, env=environment, cwd=compiled.ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1].startswith("ImportError")
