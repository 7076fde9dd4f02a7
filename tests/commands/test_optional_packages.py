"""What only experiments use is absent where they are not: said where it is used, and by no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from commands.command import OPTIONAL_PACKAGES, Screen, run_command
from tests.slow import rest_slow

ROOT = Path(__file__).parents[2]
ABSENT = "import sys\nfor name in {packages}: sys.modules[name] = None\n"


def without_packages(code: str) -> subprocess.CompletedProcess[str]:
    """Run code where none of the packages can be imported."""
    code = ABSENT.format(packages=OPTIONAL_PACKAGES) + code
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_main_commands_are_imported_without_them() -> None:
    done = without_packages(
        "import experiments.run.__main__, experiments.run.topo, experiments.incast.__main__\n"
        "import experiments.faults.__main__, controller.__main__, hostlib.node.worker"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "module",
    rest_slow(["experiments.run"], ["experiments.run", "experiments.run.topo", "experiments.incast"]),
)
def test_without_mininet_a_command_says_what_to_install(module: str) -> None:
    """Or that it needs root, which comes first."""
    code = (
        "import runpy, sys\n"
        "import importlib.util as util; found = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'mininet' else found(name, *more)\n"
        "sys.modules['mininet'] = None\n"
        f"sys.argv = ['{module}']; runpy.run_module('{module}', run_name='__main__', alter_sys=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "has no Mininet: apt-get install mininet" in done.stderr or "need root" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_policy_of_libcachesim_says_what_it_needs() -> None:
    code = (
        "from controller.policies import PolicyError, make_policy\n"
        "make_policy('lru', 100), make_policy('reuse', 100)\n"
        "try: make_policy('arc', 100)\n"
        "except PolicyError as error: print(error)\n"
    )
    said = without_packages(code).stdout
    assert "the policy arc needs the Python package libcachesim" in said
    assert "make setup-all" in said


def test_a_codec_says_what_it_needs_and_the_others_work() -> None:
    code = (
        "import numpy as np\n"
        "from kvcodec.codecs import encode\n"
        "from kvcodec.errors import CodecError\n"
        "from kvcodec.layout import Layout\n"
        "layout = Layout('m', 1, 1, 8)\n"
        "kv = np.zeros(layout.shape(16), np.float32)\n"
        "for name in ('plain', 'fp8', 'kivi', 'cachegen', 'zstd'):\n"
        "    try: print(name, len(encode(kv, layout, name)) > 0)\n"
        "    except CodecError as error: print(name, error)\n"
    )
    said = without_packages(code)
    lines = dict(line.split(" ", 1) for line in said.stdout.splitlines())
    assert (lines["plain"], lines["fp8"], lines["kivi"]) == ("True", "True", "True"), said.stderr
    assert "needs the Python package constriction" in lines["cachegen"]
    assert "needs the Python package zstandard" in lines["zstd"]


def test_a_command_that_needs_one_says_how_to_install_it(capsys: pytest.CaptureFixture[str]) -> None:
    def work(screen: Screen, options: None) -> int:
        raise ModuleNotFoundError("No module named 'plotly'", name="plotly")

    assert run_command([], lambda given: None, work) == 2
    assert (
        "needs the Python package plotly, which is not installed: make setup-all" in capsys.readouterr().err
    )


def test_another_missing_module_is_a_bug_and_keeps_its_traceback() -> None:
    def work(screen: Screen, options: None) -> int:
        raise ModuleNotFoundError("No module named 'oops'", name="oops")

    with pytest.raises(ModuleNotFoundError):
        run_command([], lambda given: None, work)
