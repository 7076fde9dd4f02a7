"""Calls that strangers send over P4Runtime's connection."""

from __future__ import annotations

from v1model.thrift.binary import CALL, I32, STRING, field, message, struct_of
from v1model.thrift.dispatcher import Dispatcher


def test_a_call_that_ends_too_early_is_none() -> None:
    """It raised an error that nobody expected, of which the log had 1.3 KB each time."""
    call = message("bm_mt_get_entry", CALL, 0, struct_of(field(1, I32, 0), field(2, STRING, b"acl")))
    assert Dispatcher.only_reads(call)
    assert not any(Dispatcher.only_reads(call[:length]) for length in range(len(call)))
