"""A session with a real agent, here and without SSH: answers, refusals, and what a lost agent means."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.errors import ServerError, ServerLostError
from cluster.messages import PYTHON
from cluster.session import Session

FAILING = "import sys; sys.exit('no fuel')"
WAIT_S = 30.0
AGENT = (sys.executable, "-m", "cluster.agent")


@contextmanager
def session(*command: str) -> Iterator[Session]:
    with tempfile.TemporaryFile() as words, Session("b", command, words) as opened:
        yield opened


def test_an_agent_answers_and_refuses() -> None:
    with session(*AGENT) as agent:
        clock = agent.clock("monotonic")
        assert abs(clock.ahead_s) <= clock.within_s + 1e-3
        said = agent.ask("run", command=[PYTHON, "-c", "print(6 * 7)"], timeout_s=30.0)
        assert said == "42\n"
        for request, given, words in (
            ("reboot", {}, "server b: no such request: 'reboot'"),
            ("link_drops", {}, "server b: no network is open"),
            (
                "run",
                {"command": [PYTHON, "-c", "import sys; sys.exit('no fuel')"], "timeout_s": 30.0},
                "no fuel",
            ),
            ("clock", {"more": 1}, "unexpected keyword argument 'more'"),
        ):
            with pytest.raises(ServerError, match=words):
                agent.ask(request, **given)
        assert agent.ask("clock")["wall"] > 0  # it goes on


def test_what_an_agent_that_ended_said_last_is_in_the_error() -> None:
    with session("sh", "-c", "echo out of paper >&2; exit 7") as agent:
        with pytest.raises(ServerLostError, match=r"server b was lost: .*exit code 7: out of paper"):
            agent.ask("clock")
        with pytest.raises(ServerLostError, match="server b was lost"):
            agent.ask("clock")


@pytest.mark.parametrize("line", ["hello", "[1]", "{}", '{"number": 1, "result"'])
def test_what_is_no_message_ends_the_session(line: str) -> None:
    with (
        session("sh", "-c", f"read request; echo '{line}'; sleep 60") as agent,
        pytest.raises(ServerLostError, match="it sent what is no message"),
    ):
        agent.ask("clock")


def test_an_agent_ends_with_its_connection() -> None:
    with session(*AGENT) as agent:
        pid = agent_pid(agent)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_agent_that_hears_nothing_says_so_and_ends() -> None:
    """So it does when the run stands still, as on a machine that sleeps."""
    impatient = "from cluster import agent; agent.SILENCE_S = 1.0; raise SystemExit(agent.main())"
    command = [sys.executable, "-c", impatient]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        try:
            assert process.wait(WAIT_S) == 0
        finally:
            process.kill()
        assert process.stderr.read() == "the run said nothing for 1 s\n"


def test_an_agent_that_is_killed_is_lost() -> None:
    with session(*AGENT) as agent:
        os.kill(agent_pid(agent), signal.SIGKILL)
        with pytest.raises(ServerLostError, match="server b was lost"):
            agent.ask("clock")


def agent_pid(agent: Session) -> int:
    """The process id of the agent, which is the parent of what it runs."""
    command = [PYTHON, "-c", "import os; print(os.getppid())"]
    return int(agent.ask("run", command=command, timeout_s=30.0))
