"""What is seen of the machine while a run is played."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from emulator.machine import SAMPLE_PERIOD_S, CpuWatch, family_of
from v1model.precedence import FORWARDING


def test_a_busy_machine_is_seen_from_the_first_sample_on() -> None:
    with CpuWatch() as watch:
        until_s = time.monotonic() + 1.5 * SAMPLE_PERIOD_S  # one sample
        while time.monotonic() < until_s:
            pass
    assert watch.use.mean > 0.05


def test_a_watch_ends_with_what_it_watches_however_that_ends() -> None:
    before = set(threading.enumerate())
    with suppress(ValueError), CpuWatch():
        raise ValueError
    assert set(threading.enumerate()) <= before


@contextmanager
def program(code: str, cpu: int) -> Iterator[subprocess.Popen[bytes]]:
    """A child on one CPU."""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    os.sched_setaffinity(child.pid, {cpu})
    try:
        child.stdout.readline()
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def saturated(pid: int) -> float:
    with CpuWatch([pid]) as watch:
        time.sleep(2.5 * SAMPLE_PERIOD_S)
    return watch.use.switch_saturated


def test_a_switch_that_others_keep_from_running_is_at_its_end_too() -> None:
    cpu = min(os.sched_getaffinity(0))
    busy = "print(flush=True)\nwhile True: pass"
    with program(busy, cpu) as switch, program(busy, cpu):  # each has half of the CPU
        assert saturated(switch.pid) > 0.0  # how much of it depends on what else the machine does


def test_a_switch_that_waits_for_packets_is_not_at_its_end() -> None:
    cpu = min(os.sched_getaffinity(0))
    with program("import time\nprint(flush=True)\ntime.sleep(60)", cpu) as switch:
        assert saturated(switch.pid) == 0.0


def test_where_one_thread_forwards_the_others_do_not_count() -> None:
    cpu = min(os.sched_getaffinity(0))
    named = f"open('/proc/thread-self/comm', 'w').write('{FORWARDING}')"
    sleeper = f"def sleeper():\n    {named}\n    print(flush=True)\n    time.sleep(60)\n"
    code = f"import threading, time\n{sleeper}threading.Thread(target=sleeper).start()\nwhile True: pass"
    with program(code, cpu) as switch:
        assert saturated(switch.pid) == 0.0
    with program(f"{named}\nprint(flush=True)\nwhile True: pass", cpu) as switch:
        assert saturated(switch.pid) > 0.0  # how much of it depends on what else the machine does


def test_what_a_switch_has_started_belongs_to_it() -> None:
    code = "import subprocess\nchild = subprocess.Popen(['sleep', '60'])\nprint(child.pid, flush=True)\n"
    code += "child.wait()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        try:
            assert parent.stdout is not None
            child = int(parent.stdout.readline())
            assert sorted(family_of(parent.pid)) == sorted([parent.pid, child])
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
    assert family_of(parent.pid) == [parent.pid]
