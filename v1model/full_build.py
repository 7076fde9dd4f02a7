"""Replacement of a switch's quick build by the full one as soon as that is made."""

from __future__ import annotations

import logging
from threading import Lock, Thread
from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError
from v1model.errors import CompileError
from v1model.sandbox import sandboxed_finish

if TYPE_CHECKING:
    from v1model.switch import Switch

logger = logging.getLogger(__name__)

_turn = Lock()  # one build at a time in a process


def make_full_build(switch: Switch) -> Thread | None:
    """Start a thread that makes the full build and lets the switch use it; None if it already does.

    The thread ends with the process, and leaves a switch alone that is closed meanwhile.
    """
    if switch.compiled.quick is None:
        return None
    thread = Thread(target=_finish, args=(switch,), name="v1model-full-build", daemon=True)
    thread.start()
    return thread


def _finish(switch: Switch) -> None:
    try:
        with _turn:
            if switch.is_closed:
                return
            compiled = sandboxed_finish(switch.compiled)
        switch.go_over(compiled)
    except DataPlaneError:
        logger.info("the switch was closed before its full build was there")
    except (CompileError, OSError) as error:
        logger.warning("the program stays as it was first built, and is slower: %s", error)
