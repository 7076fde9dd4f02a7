"""The scripts of p4lang's tutorials and of p4-utils run as they are, with our compiler and switch in place of
p4c and BMv2, and all hosts reach one another.

TUTORIALS=/path/to/p4lang/tutorials P4_LEARNING=/path/to/nsg-ethz/p4-learning SCRIPTS_PYTHON=/path/to/python \
    pytest -m slow tests/tutorials/test_their_scripts.py

The interpreter lies outside /tmp and has what the scripts import: mininet, psutil, and p4runtime with
p4.tmp for the tutorials; for p4-learning p4utils, and what BMv2 generates for Python with Thrift (bm_runtime,
sswitch_runtime, bmpy_utils).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = Path(os.environ.get("TUTORIALS", "nowhere"))
P4_LEARNING = Path(os.environ.get("P4_LEARNING", "nowhere"))
PYTHON = os.environ.get("SCRIPTS_PYTHON", "")
TIMEOUT_S = 280
# They end processes and remove interfaces and files in /tmp by their names: so they see none but their own.
BOX = ("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c")
INSIDE = Path("/mnt")  # where they see their files
pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="SCRIPTS_PYTHON does not name an interpreter"),
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the programs that the scripts call in `bin`."""
    (tmp_path / "bin").mkdir()
    ours = f'PYTHONPATH={ROOT} exec {sys.executable} -m v1model{{}} "$@"'
    commands = {
        **dict.fromkeys(("weir-p4c", "p4c"), ours.format(".p4c")),
        **dict.fromkeys(("weir-switch-grpc", "simple_switch"), ours.format(" switch")),
        "simple_switch_CLI": ours.format(" cli"),
        "python3": f'exec {PYTHON} "$@"',
    }
    if shutil.which("sudo") is None:
        commands["sudo"] = 'exec env "$@"'
    for name, command in commands.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{command}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def pings(folder: Path, inside: str, command: str) -> str:
    """What the network's command line says of `pingall`. The command runs in `inside` of the folder."""
    setup = f"mount --bind {folder} {INSIDE} && mount -t tmpfs tmpfs /tmp && ip link set lo up"
    done = subprocess.run(
        [*BOX, f"{setup} && cd {INSIDE / inside} && {command}"],
        env={
            **os.environ,
            "PATH": f"{INSIDE / 'bin'}:{os.environ['PATH']}",
            "WEIR_CACHE": str(INSIDE / "cache"),
        },
        input="pingall\nexit\n",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.skipif(not TUTORIALS.is_dir(), reason="TUTORIALS does not name p4lang's tutorials")
def test_make_run_of_a_tutorial(folder: Path) -> None:
    exercise = folder / "exercises" / "basic"
    shutil.copytree(TUTORIALS / "utils", folder / "utils")
    shutil.copytree(TUTORIALS / "exercises" / "basic", exercise)
    shutil.copy(exercise / "solution" / "basic.p4", exercise)
    said = pings(folder, "exercises/basic", "make run P4C=weir-p4c BMV2_SWITCH_EXE=weir-switch-grpc")
    assert "0% dropped (12/12 received)" in said


@pytest.mark.skipif(not P4_LEARNING.is_dir(), reason="P4_LEARNING does not name nsg-ethz's examples")
def test_a_network_of_p4_utils(folder: Path) -> None:
    shutil.copytree(P4_LEARNING / "examples" / "ip_forwarding", folder / "ip_forwarding")
    said = pings(folder, "ip_forwarding", "python3 network.py")
    assert "0% dropped (12/12 received)" in said
