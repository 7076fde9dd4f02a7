"""Whether this machine lets us build networks, asked before anything is started.

Each refusal is one sentence that says what is missing and how to grant it. Mininet itself waits forever where
it may not make a namespace.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from topologies.errors import TopologyError

SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Left out of PATH by `su`; Mininet, tc and ethtool are there."""
PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "mnexec": "mininet",
    "ifconfig": "net-tools",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "setpriv": "util-linux",
}
"""Programs that a network is made with, and the Debian packages that have them."""
MININET_VERSION = "2.3"
"""What Debian 12 and 13 and Ubuntu 24.04 have."""
FILES_BESIDE = 128
FILES_PER_VERTEX = 12
"""Open files that this process has for each host or switch: pipes of its shell and processes, logs."""
LEAST_FREE_BYTES = 64 << 20
"""Of the disk that a network's working folder lies on: logs, captures and builds of the P4 program."""
_IN_NAMESPACE = ("unshare", "--net", "--")
_PAIR = "ip link add weir0 type veth peer name weir1"


def check_machine() -> None:
    """Raise TopologyError, in one line, where networks can't be built here; completes PATH first."""
    complete_path()
    if os.geteuid() != 0:
        raise TopologyError(
            "network namespaces need root: use sudo make ... (without root: make test runs all other tests, "
            "make policies replays traces, and the embedded switch works as a library)"
        )
    _check_programs()
    _check_mininet()
    _check_namespaces()
    _check_space(Path(tempfile.gettempdir()))


def complete_path() -> None:
    """Add the folders of administrators' programs to PATH where they are missing."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    missing = [folder for folder in SBIN if folder not in folders]
    os.environ["PATH"] = os.pathsep.join([*folders, *missing])


def check_open_files(vertices: int) -> None:
    """Raise the limit of open files to what so many hosts and switches take; TopologyError if it can't be."""
    needed = FILES_BESIDE + FILES_PER_VERTEX * vertices
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _covers(soft, needed):
        return
    try:
        most = hard if _covers(hard, needed) else needed
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))
    except (OSError, ValueError):
        raise TopologyError(
            f"{vertices} hosts and switches take up to {needed} open files, and this process may "
            f"have {max(soft, hard)}: raise the limit (ulimit -Hn {needed}), or use fewer HOSTS"
        ) from None


def _covers(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed


def tried_in_namespace(commands: Iterable[str]) -> str:
    """Return what the first refused command says, in a network namespace of its own; "" if none is.

    An interface weir0 is there, with weir1 as its other end. Nothing is seen outside of the namespace: what
    manages the machine's network would take an interface for its own.
    """
    script = "\n".join(["set -e", _PAIR, *commands])
    tried = subprocess.run([*_IN_NAMESPACE, "sh", "-c", script], capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return ""
    return " ".join((tried.stderr or tried.stdout).split()) or f"exit code {tried.returncode}"


def _check_programs() -> None:
    missing = sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None})
    if missing:
        raise TopologyError(
            f"programs that networks are made with are missing: apt-get install {' '.join(missing)}, or make "
            "setup as root"
        )


def _check_mininet() -> None:
    """Another Mininet may come before Debian's: one of pip's, or one that was built from source years ago."""
    found = find_spec("mininet")
    if found is None or found.origin is None:
        raise TopologyError(
            f"{sys.executable} has no Mininet: apt-get install mininet, and use the environment of make "
            "setup, or another that sees the system's packages (python3 -m venv --system-site-packages)"
        )
    folder = Path(found.origin).parent
    try:
        text = (folder / "net.py").read_text(errors="replace")
    except OSError:
        text = ""
    version = re.search(r'^VERSION = "([^"]+)"', text, re.MULTILINE)
    if version is None or not version[1].startswith(MININET_VERSION):
        said = f"version {version[1]}" if version else "not a Mininet that Weir knows"
        raise TopologyError(
            f"{folder} is {said}, and Weir needs {MININET_VERSION}, which is Debian's package mininet. "
            "Move the other away, if that is installed"
        )


def _check_namespaces() -> None:
    said = tried_in_namespace(())
    if not said:
        return
    if re.search("unshare", said):
        raise TopologyError(
            f"network namespaces can't be made here ({said}). In a container, grant CAP_SYS_ADMIN and "
            "CAP_NET_ADMIN: docker run --privileged, or --cap-add SYS_ADMIN --cap-add NET_ADMIN "
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
        )
    raise TopologyError(
        f"a pair of veth interfaces can't be made here ({said}). In a container, grant CAP_NET_ADMIN; on a "
        "machine, load the kernel's module veth (modprobe veth)"
    )


def _check_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise TopologyError(
            f"{folder} has {free / 1e6:.0f} MB left, and a network's logs and builds go there: make room, or "
            "set TMPDIR to a folder on another disk"
        )
