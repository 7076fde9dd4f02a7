"""What docs/deploy.md starts, and how a test ends what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

NAMESPACES = ("weir-node1", "weir-node2", "weir-store1", "weir-switch")


def remove(folder: Path) -> None:
    """End the controller that was started in `folder`, and all in the page's namespaces, with these."""
    with suppress(OSError, ValueError):
        os.kill(int((folder / "deploy" / "controller.pid").read_text()), signal.SIGKILL)
    for name in NAMESPACES:
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
        for pid in pids.stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
