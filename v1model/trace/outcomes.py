"""All outcomes of a packet for the choices of groups: what each member would have done.

A group of an action selector chooses a member by a hash, so one trace shows one of several ways. `outcomes`
follows all of them, each in a copy of the process, so that the switch itself never sees the packet.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from v1model.dataplane import DataPlaneError, Group
from v1model.trace.events import TraceEvent, TraceFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from v1model.dataplane import Output
    from v1model.switch import Switch

MAX_OUTCOMES = 256  # of a packet

_Chosen = dict[tuple[str, int], int]  # the member of each group of an action profile


class Choice(NamedTuple):
    """Group of an action profile, and the member that it is to choose."""

    profile: str
    group: int
    member: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a packet: `choices` in the order in which it met the groups, `events` of all its copies."""

    choices: tuple[Choice, ...]
    events: list[TraceEvent]
    outputs: list[Output]


def outcomes(switch: Switch, port: int, data: bytes, timestamp_us: int | None = None) -> Iterator[Outcome]:
    """Yield each outcome of a packet into `port`, only one if no group chooses.

    The switch's program must be compiled with `tracing`, and the switch must serve no interfaces. A group
    chooses the same member for all copies of the packet and in all tables that share it. Raises
    DataPlaneError: RESOURCE_EXHAUSTED after MAX_OUTCOMES.
    """
    if switch.is_forwarding:
        raise DataPlaneError("FAILED_PRECONDITION", "outcomes are for a switch that serves no interfaces")
    profiles = {table.name: table.implementation for table in switch.program.tables if table.implementation}
    waiting: list[_Chosen] = [{}]
    found = 0
    while waiting:
        chosen = waiting.pop()
        events, outputs = _in_a_copy(switch, chosen, port, data, timestamp_us)
        met = _first_not_chosen(events, profiles, chosen)
        if met is not None and (members := _members(switch, *met)):
            waiting += [{**chosen, met: member} for member in reversed(members)]
            continue
        if (found := found + 1) > MAX_OUTCOMES:
            message = f"the packet has more than {MAX_OUTCOMES} outcomes: these are the first"
            raise DataPlaneError("RESOURCE_EXHAUSTED", message)
        yield Outcome(tuple(Choice(*group, member) for group, member in chosen.items()), events, outputs)


def _first_not_chosen(
    events: list[TraceEvent], profiles: dict[str, str], chosen: _Chosen
) -> tuple[str, int] | None:
    """Return the first group that chose by its hash, or None."""
    for event in events:
        group = event.values.get("group")
        if event.kind == "table" and isinstance(group, int) and (profiles[event.name], group) not in chosen:
            return profiles[event.name], group
    return None


def _members(switch: Switch, profile: str, group_id: int) -> list[int]:
    return [
        member
        for group in switch.groups(profile)
        if group.group_id == group_id
        for member, _ in group.members
    ]


def _in_a_copy(
    switch: Switch, chosen: _Chosen, port: int, data: bytes, timestamp_us: int | None
) -> tuple[list[TraceEvent], list[Output]]:
    """Send the packet in a forked process, where each group has only its chosen member."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        status = 1
        try:
            answer = pickle.dumps(_inject(switch, chosen, port, data, timestamp_us))
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(answer)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise DataPlaneError("INTERNAL", f"the copy of the process that ran the packet ended with {status}")
    events, outputs = pickle.loads(answer)
    return events, outputs


def _inject(
    switch: Switch, chosen: _Chosen, port: int, data: bytes, timestamp_us: int | None
) -> tuple[list[TraceEvent], list[Output]]:
    for (profile, group_id), member in chosen.items():
        group = next(group for group in switch.groups(profile) if group.group_id == group_id)
        watched = tuple(pair for pair in group.watched if pair[0] == member)
        switch.modify_group(profile, Group(group_id, ((member, 1),), group.max_size, watched))
    switch.take_trace()
    switch.trace(TraceFilter())
    outputs = switch.inject(port, data, timestamp_us)
    return switch.take_trace(), outputs
