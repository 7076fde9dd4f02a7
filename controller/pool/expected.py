"""Blocks that nodes say they will put (hostlib/protocol/expected.py), as reports to the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.block_id import block_id
from controller.operations import expected
from controller.pool.fair_pace import FairPace
from hostlib.protocol.errors import MalformedError
from hostlib.protocol.expected import read_expected

if TYPE_CHECKING:
    from collections.abc import Callable
    from ipaddress import IPv4Address

    from controller.operations import Answer, Expected
    from controller.pool.known_blocks import KnownBlocks


class Expectations:
    """Messages of nodes on blocks that they compute and will put, heard at a bounded rate."""

    def __init__(self, known: KnownBlocks, home: Callable[[bytes], IPv4Address], most_per_s: int) -> None:
        """`home(key)` is where a block will be kept; `most_per_s` blocks are heard of all nodes."""
        self._known, self._home = known, home
        self._pace = FairPace(most_per_s)

    def heard(self, answer: Answer, now_s: float) -> list[Expected]:
        """Return what a node computes and will put, each as a block that was asked for in vain; nothing of a
        message that is no such list."""
        try:
            blocks = read_expected(answer.message.value)
        except MalformedError:
            return []
        tenant = answer.message.tenant
        heard: list[Expected] = []
        for block in blocks[: self._pace.heard(answer.source, len(blocks), now_s)]:
            known = self._known.get(block_id(tenant, block.key))
            heard.append(expected(block, tenant, known.misses if known else 0, self._home(block.key)))
        return heard
