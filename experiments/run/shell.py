"""make shell: p4runtime-shell on a running switch (`make run` or `make topo` in another terminal).

Variables: ADDRESS (default: the newest running switch), DEVICE_ID (1), ELECTION_ID (1: reads beside the
controller, which stays primary; higher than the controller's takes over).

p4runtime-shell has an environment of its own, .venv-shell (requirements-shell.in says why).
"""

from __future__ import annotations

import os
import sys

from emulator.result import ROOT
from topologies.remains import running

SOCKETS = "*.sock"


def find_address() -> str | None:
    """Where the first switch of the newest running network serves P4Runtime; None if nothing runs."""
    for directory in running():
        for socket in sorted(directory.glob(SOCKETS)):
            return f"unix:{socket}"
    return None


def main() -> int:
    """Replaces this process by p4runtime-shell; exit code 2 when no switch runs."""
    address = os.environ.get("ADDRESS") or find_address()
    if address is None:
        print("error: no switch is running: start `make topo` in another terminal, or give ADDRESS=host:port")
        return 2
    device_id = os.environ.get("DEVICE_ID", "1")
    election_id = f"0,{os.environ.get('ELECTION_ID', '1')}"
    print(f"p4runtime-shell on {address}, device {device_id}, election id {election_id}")
    python = str(ROOT / ".venv-shell" / "bin" / "python")
    command = [python, "-m", "p4runtime_sh", "--grpc-addr", address]
    return os.execv(python, [*command, "--device-id", device_id, "--election-id", election_id])


if __name__ == "__main__":
    sys.exit(main())
