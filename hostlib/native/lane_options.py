"""Bounds of what is in flight towards one home."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """Windows in fragments, times in seconds."""

    initial_window: int = 4
    """First requests of 16 nodes at the same moment fit a queue of 64 packets."""
    opened_window: int = 32
    """Up to this, each answer adds one fragment, so a round trip as many again, until something is lost or
    the backlog is long."""
    min_window: int = 4
    max_window: int = 128
    target_backlog_ms: int = 20
    """More than that waiting at the home shrinks the window."""
    merged_backlog_ms: int = 80
    """Up to this, a reply that several nodes share lets one fragment more than the window be in flight."""
    initial_timeout_s: float = 1.0
    min_timeout_s: float = 0.2
    max_timeout_s: float = 2.0
    deadline_s: float = 10.0
    """Seconds from a fragment's first transmission until it is given up. A home that is silent altogether is
    given up sooner (`hostlib.client.health`)."""
