"""Checks whether this machine can build networks, before anything is started.

Each refusal is one sentence that says what is missing and how to grant it. Mininet itself waits forever if it
may not make a namespace.
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
"""Folders of Mininet, tc and ethtool, which `su` leaves out of PATH."""
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
"""Programs that networks are made with, and their Debian packages."""
MININET_VERSION = "2.3"
"""Version in Debian 12 and 13 and in Ubuntu 24.04."""
OTHER_FILES = 128
FILES_PER_VERTEX = 12
"""Number of files that this process opens for each host or switch: pipes of shell and processes, logs."""
LEAST_FREE_BYTES = 64 << 20
"""Free bytes needed on the working folder's disk, for logs, captures and builds of the P4 program."""
_IN_NAMESPACE = ("unshare", "--net", "--")
_PAIR = "ip link add weir0 type veth peer name weir1"


def check_machine() -> None:
    """Complete PATH; raise TopologyError with one line if networks can't be built here."""
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
    """Add missing folders of administrators' programs to PATH."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    missing = [folder for folder in SBIN if folder not in folders]
    os.environ["PATH"] = os.pathsep.join([*folders, *missing])


def check_open_files(vertices: int) -> None:
    """Raise the limit of open files for so many hosts and switches; raises TopologyError if it can't be."""
    needed = OTHER_FILES + FILES_PER_VERTEX * vertices
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


def try_in_namespace(commands: Iterable[str]) -> str:
    """Return the output of the first command that fails in a new network namespace; "" if none fails.

    The namespace has an interface weir0, whose other end is weir1. It is invisible outside, where the
    machine's network manager would configure it.
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
    """Raise TopologyError unless Python finds Debian's Mininet.

    Another one may come first: pip's, or an old build from source.
    """
    found = find_spec("mininet")
    if found is None or found.origin is None:
        raise TopologyError(
            f"{sys.executable} has no Mininet: apt-get install mininet, and use the environment of make "
            "setup or another that sees the system's packages (python3 -m venv --system-site-packages)"
        )
    folder = Path(found.origin).parent
    try:
        text = (folder / "net.py").read_text(errors="replace")
    except OSError:
        text = ""
    version = re.search(r'^VERSION = "([^"]+)"', text, re.MULTILINE)
    if version is None or not version[1].startswith(MININET_VERSION):
        release = f"version {version[1]}" if version else "not a Mininet that Weir knows"
        raise TopologyError(
            f"{folder} is {release}, and Weir needs {MININET_VERSION}, which is Debian's package mininet. "
            "Move the other away, if that is installed"
        )


def _check_namespaces() -> None:
    output = try_in_namespace(())
    if not output:
        return
    if re.search("unshare", output):
        raise TopologyError(
            f"network namespaces can't be made here ({output}). In a container, grant CAP_SYS_ADMIN and "
            "CAP_NET_ADMIN: docker run --privileged, or --cap-add SYS_ADMIN --cap-add NET_ADMIN "
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
        )
    raise TopologyError(
        f"a pair of veth interfaces can't be made here ({output}). In a container, grant CAP_NET_ADMIN; on a "
        "machine, load the kernel's module veth (modprobe veth)"
    )


def _check_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise TopologyError(
            f"{folder} has {free / 1e6:.0f} MB left, and a network's logs and builds go there: make room, or "
            "set TMPDIR to a folder on another disk"
        )
