"""P4Info: the control plane's view of a program, with the ids that p4c gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.p4info.builder import Builder

if TYPE_CHECKING:
    from v1model import ir
    from v1model.protos.p4.config.v1 import p4info_pb2


def p4info(program: ir.Program) -> p4info_pb2.P4Info:
    """Return the P4Info of a program, equal to p4c's."""
    return Builder(program).build()
