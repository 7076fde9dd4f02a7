"""Experiments: runs, replays and sweeps. The simulator runs compiled where `make compiled` has built it."""

import sys

from commands.interrupt import end_on_interrupt
from simulator.compiled import use

if sys.argv[:1] == ["-m"]:  # a command is being imported, which takes a while, and has started nothing yet
    end_on_interrupt()
use()
