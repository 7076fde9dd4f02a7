"""gRPC does without its event engine, as long as it knows how to."""

from __future__ import annotations

import os
import subprocess
import sys

UNKNOWN = "Unknown experiment"
CHANNEL = "import grpc; grpc.insecure_channel('unix:/nowhere').close()"


def said(code: str, **settings: str) -> str:
    """What gRPC has to say of its settings."""
    before = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    environment = before | {"GRPC_VERBOSITY": "ERROR"} | settings
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    return done.stderr


def test_the_names_that_the_controller_gives_grpc_are_known_to_it() -> None:
    assert UNKNOWN in said(CHANNEL, GRPC_EXPERIMENTS="-no_such_thing")
    assert UNKNOWN not in said(f"import controller; {CHANNEL}")


def test_who_sets_experiments_has_those() -> None:
    assert UNKNOWN in said(f"import controller; {CHANNEL}", GRPC_EXPERIMENTS="-no_such_thing")
