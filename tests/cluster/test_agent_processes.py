"""What processes of an agent say and how they end is sent on."""

import io
import subprocess
import time
from collections.abc import Iterator

import pytest

from cluster.agent_processes import AgentProcesses
from cluster.messages import Message, Outgoing, incoming, to_bytes

WAIT_S = 30.0


class Sent:
    """What went out so far."""

    def __init__(self) -> None:
        self._stream = io.BytesIO()
        self.outgoing = Outgoing(self._stream)

    def messages(self, number: int) -> list[Message]:
        return [one for one in incoming(io.BytesIO(self._stream.getvalue())) if one["process"] == number]

    def wait_ended(self, number: int) -> int:
        deadline_s = time.monotonic() + WAIT_S
        while not (codes := [int(one["code"]) for one in self.messages(number) if "code" in one]):
            assert time.monotonic() < deadline_s, f"nobody said that process {number} ended"
            time.sleep(0.01)
        return codes[0]


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
def processes(sent: Sent) -> Iterator[AgentProcesses]:
    made = AgentProcesses(sent.outgoing)
    yield made
    made.close()


def test_last_words_come_before_the_exit_code(sent: Sent, processes: AgentProcesses) -> None:
    command = ["sh", "-c", "echo out; echo err >&2; exit 3"]
    processes.add(1, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    assert sent.wait_ended(1) == 3
    *words, last = sent.messages(1)
    assert "code" in last
    assert {name: to_bytes(one[name]) for one in words for name in one if name != "process"} == {
        "out": b"out\n",
        "err": b"err\n",
    }


def test_a_process_whose_streams_somebody_closed_keeps_no_other_from_being_heard(
    sent: Sent, processes: AgentProcesses
) -> None:
    first = subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE)
    processes.add(1, first)
    assert first.stdout is not None
    first.stdout.close()
    first.kill()
    assert sent.wait_ended(1) < 0
    processes.add(2, subprocess.Popen(["echo", "here"], stdout=subprocess.PIPE))
    assert sent.wait_ended(2) == 0
    assert to_bytes(sent.messages(2)[0]["out"]) == b"here\n"
