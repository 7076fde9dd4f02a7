"""The `weir` command of the client's distribution."""

import os
import subprocess
import sys


def test_a_size_of_values_that_there_is_not_is_refused_in_one_line() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "hostlib", "pool", "--help"],
        env={**os.environ, "WEIR_VALUE_BYTES": "17"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.returncode == 2
    assert said.stderr == (
        "weir: WEIR_VALUE_BYTES: '17' is no size of values: choose one of 512, 1408, 8192 (bytes)\n"
    )
