"""Runs for tests that look at what was measured."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run(results: Path, arguments: tuple[str, ...], servers: Path | None) -> Mapping[str, Any]:
    """Return what a run in one mode measured."""
    where = () if servers is None else ("--servers", str(servers))
    command = [sys.executable, "-m", "experiments.run", *arguments, *where, "--results", str(results)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (measured,) = json.loads((results / "summary.json").read_text())["runs"].values()
    found: Mapping[str, Any] = measured
    return found
