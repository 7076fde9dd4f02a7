"""The part of the page that shows what the policy did with the blocks asked for most often, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from experiments.page import Page
from experiments.run.page_plots import Runs
from experiments.run.words import title_of

_TENANT_DIGITS = 4
_SHOWN_DIGITS = 8
_HOME = re.compile(r"\bhome (\d+)")
TURNS = 4
_KNOWN_POLICIES = {
    "reuse": " This policy has several others manage a pool on paper, and does as one of them: the one that "
    "leads.",
}
"""Explanations that a reader needs to understand a policy's reasons."""


def hottest_blocks(page: Page, topology: Mapping[str, Any], policy: str, runs: Runs) -> None:
    """Add the section; nothing if no play had a pool that was asked for a block."""
    with_pool = {name: run["hottest"] for name, run in runs.items() if run.get("hottest")}
    if not with_pool:
        return
    homes = {int(IPv4Address(address)): name for name, address in topology.get("addresses", {}).items()}
    page.heading("The hottest blocks, and what the policy did with them")
    page.text(
        f"The blocks that were asked for most, and the reasons of the policy, {policy}, at the end of the "
        "play. Misses are those that the switch reported: not each is worth a report."
        + _KNOWN_POLICIES.get(policy, "")
    )
    for name, blocks in with_pool.items():
        reasons = {
            _named(block): [_in_names(line, block, homes) for line in block["why"]] for block in blocks
        }
        titles = [
            "block", "place in its chain", "hits", "misses reported", "when, s of the run", "at the end",
        ]  # fmt: skip
        rows = [
            [
                _named(block), block["depth"], block["hits"], block["reported"], _turns(block["turns"]),
                _place_of(block, reasons[_named(block)]),
            ]
            for block in blocks
        ]  # fmt: skip
        page.text(f"In the run {title_of(name)}:")
        page.table(f"hottest-{name}", titles, rows)
        if any(reasons.values()):
            page.details("All that the policy says of them", [" ".join(lines) for lines in reasons.values()])


def _named(block: Mapping[str, Any]) -> str:
    key: str = block["block"][_TENANT_DIGITS : _TENANT_DIGITS + _SHOWN_DIGITS]
    return key


def _place_of(block: Mapping[str, Any], reasons: Sequence[str]) -> str:
    """Return the policy's answer without the block's name, or else whether the block is in the pool."""
    where = "in the pool" if block["in_pool"] else "not in the pool"
    return reasons[0].removeprefix(f"{_named(block)} is ").rstrip(".") if reasons else where


def _turns(turns: Sequence[tuple[float, str]]) -> str:
    shown = [f"{turn} {t_s:.1f}" for t_s, turn in turns[-TURNS:]]
    return ", ".join([*(["…"] if len(turns) > TURNS else []), *shown]) or "never admitted"


def _in_names(line: str, block: Mapping[str, Any], homes: Mapping[int, str]) -> str:
    """Return the line with the block's short name and the names of homes.

    The policy knows tenant and key as one, and homes by their address as a number.
    """
    line = line.replace(block["block"], _named(block))
    return _HOME.sub(lambda found: homes.get(int(found[1]), found[0]), line)
