"""An agent makes its server ready for the run that asks it."""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from cluster.session import Session
from emulator.result import ROOT
from hostlib.protocol.value_size import SIZES, VARIABLE
from tests.cluster.servers import missing

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]


def test_an_agent_compiles_the_core_of_the_runs_size_of_values(tmp_path: Path) -> None:
    """Set-up makes that of the default size alone, and the run may choose another after it."""
    environment = tmp_path / "environment"
    make = [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(environment)]
    subprocess.run(make, check=True)
    settings = [f"PYTHONPATH={ROOT}:{sysconfig.get_paths()['purelib']}", f"{VARIABLE}={SIZES[-1]}"]
    command = ["env", *settings, str(environment / "bin" / "python"), "-m", "cluster.agent"]
    with tempfile.TemporaryFile() as words, Session("b", command, words) as agent:
        assert agent.ask("hello")["cores"] > 0
    assert len(list((environment / "lib" / "weir").glob("weir_native-*.so"))) == 1
