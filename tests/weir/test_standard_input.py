"""Commands on standard input, and who can give none."""

import subprocess
import sys

PROGRAM = """
import threading
from weir.standard_input import follow_commands

ended = threading.Event()
print("waits", flush=True)
follow_commands(lambda line: print(line, flush=True) or line != "stop", ended.set)
ended.wait()
print("ended")
"""


def started(standard_input: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=standard_input, stdout=subprocess.PIPE, text=True
    )


def test_lines_are_handed_on_until_one_is_the_last() -> None:
    with started(subprocess.PIPE) as process:
        out, _ = process.communicate("report\nstop\nmore\n", timeout=60)
    assert out.splitlines() == ["waits", "report", "stop", "ended"]


def test_the_end_of_standard_input_ends_it() -> None:
    with started(subprocess.PIPE) as process:
        out, _ = process.communicate("", timeout=60)
    assert out.splitlines()[-1] == "ended"


def test_standard_input_from_the_null_device_says_nothing() -> None:
    with started(subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.terminate()
        out, _ = process.communicate(timeout=60)
    assert "ended" not in out
