"""The ways between the controller and the storage nodes: probed there and back, with the longest frames.

A storage node that says HELLO may be one that nothing reaches: a link can fail in one direction, for long
frames, or for a part of them. So the controller sends numbered probes (MEMBERS messages), and a storage node
answers each at once with a HELLO that repeats the number. Both are as long as a VALUE. Once a second is
enough while all is well. When a probe is not answered, or a node says that it suspects a storage node, all
are probed ten times a second, so that they can be compared. Pure: time is a parameter.
"""

from __future__ import annotations

from collections import deque
from statistics import median, median_low
from typing import TYPE_CHECKING, Final

from hostlib.protocol.members import HEARTBEAT_S

if TYPE_CHECKING:
    from collections.abc import Iterable

CALM_S: Final = 1.0
"""Seconds between two probes of a storage node while all is well."""
ALARMED_S: Final = HEARTBEAT_S
"""Seconds between two probes while something may be wrong."""
ALARM_S: Final = 3.0
"""Seconds for which all are probed more often after something was noticed."""
ANSWER_S: Final = 0.3
"""A probe that was not answered by then is noticed."""
LOST_S: Final = 0.5
"""A probe that was not answered by then counts as lost where ways are compared: it may only be slow."""
UNREACHED: Final = 6
"""A storage node that answers none of so many probes is not reached."""
UNREACHED_IN_DOUBT: Final = 3
"""Number of unanswered probes that suffice if nodes suspect the storage node, too."""
WINDOW_S: Final = 2.5
"""Ways are compared by the probes of so long, at least by LEAST_PROBES of them."""
LEAST_PROBES: Final = 10
WORSE: Final = 0.25
"""A way that loses so much more of its probes than the median of the others is a bad one."""
WORSE_IN_DOUBT: Final = 0.15
AS_GOOD: Final = 0.1
"""A bad way is good again when it loses no more than so much more than the others."""
QUORUM: Final = 2
"""Nodes at so many ports have to suspect a storage node, or it is not in doubt."""
SUSPICION_S: Final = 3.0
"""Seconds for which a suspicion counts; nodes repeat it every second or two."""
MAX_DOUBTERS: Final = 1024
"""Nodes whose suspicions are remembered; a switch has fewer ports."""
RECENT_S: Final = 5.0
"""Seconds for which the delays of answers and of HELLOs are remembered."""
MOST_DELAYS: Final = 64
"""Number of delays that are remembered of each way."""
PATIENCE: Final = 3.0
"""Factor of the longest recent delay on other ways before which nothing counts as missing."""
MOST_PATIENCE_S: Final = 1.5
"""Below the time after which a PUT is given up."""
NOBODY_REACHED_S: Final = 5.0
"""Seconds of silence after which a storage node is not reached although no other is reached either. Then it
is probably the controller or its switch that can't send, and a list on which nobody is up helps nobody."""
_SEQUENCES: Final = 1 << 32


class Way:
    """Path to one storage node and back."""

    def __init__(self) -> None:
        self.is_silent = False
        """Whether the storage node says nothing by itself: then it is not probed."""
        self.is_bad = False
        """Whether it lost more than others, and is not yet as good as they are."""
        self._probes: deque[tuple[int, float]] = deque(maxlen=round(2 * WINDOW_S / ALARMED_S))
        """Numbers, and when they were sent."""
        self._answered: set[int] = set()
        self._heard_s = float("-inf")
        self._delays: deque[tuple[float, float]] = deque(maxlen=MOST_DELAYS)
        """When an answer or a HELLO came, and how late it was."""

    def heard(self, now_s: float) -> None:
        """Take note of a HELLO; one comes in HEARTBEAT_S, or more often."""
        late_s = now_s - self._heard_s - HEARTBEAT_S
        if 0 < late_s <= MOST_PATIENCE_S:  # who was away was not late
            self._delays.append((now_s, late_s))
        self._heard_s = now_s

    def delay_s(self, now_s: float) -> float | None:
        """Return the longest delay lately, or that of what is waited for now; None if that is too long to be
        one."""
        waited_s = [now_s - self._heard_s, *(now_s - sent_s for sent_s in self.unanswered())]
        if waited_s[0] > MOST_PATIENCE_S:
            return None
        known_s = [delay_s for at_s, delay_s in self._delays if now_s - at_s <= RECENT_S]
        return max(0.0, *(one - HEARTBEAT_S for one in waited_s), *known_s)

    @property
    def sent_s(self) -> float:
        """Return when it was probed last, in seconds; minus infinity before the first probe."""
        return self._probes[-1][1] if self._probes else float("-inf")

    def probed(self, number: int, now_s: float) -> None:
        """Note that a probe is sent."""
        self._probes.append((number, now_s))
        self._answered &= {number for number, _ in self._probes}

    def answered(self, number: int, now_s: float) -> None:
        """Take a HELLO that repeats this number; one that was not sent lately says nothing."""
        sent_s = dict(self._probes).get(number)
        if sent_s is not None and number not in self._answered:
            self._answered.add(number)
            self._delays.append((now_s, now_s - sent_s))

    def forget(self) -> None:
        """Forget what was sent and heard: probes may never have left, and answers may have been missed."""
        self._probes.clear()
        self._answered.clear()

    def unanswered(self) -> list[float]:
        """Return when the probes were sent that follow the last one that was answered, the newest first."""
        missed: list[float] = []
        for number, sent_s in reversed(self._probes):
            if number in self._answered:
                break
            missed.append(sent_s)
        return missed

    def is_reached(self, in_doubt: bool, patience_s: float, now_s: float) -> bool:
        """Return whether so few probes are unanswered, or since so short a time, that it may be reached."""
        least = UNREACHED_IN_DOUBT if in_doubt else UNREACHED
        missed = self.unanswered()
        return len(missed) < least or now_s - missed[-1] < max(least * ALARMED_S, patience_s)

    def share(self, now_s: float) -> float | None:
        """Return the share of the probes of WINDOW_S that were answered; None while they are too few to
        say."""
        sent = [one for one, sent_s in self._probes if LOST_S <= now_s - sent_s <= LOST_S + WINDOW_S]
        if len(sent) < LEAST_PROBES:
            return None
        return sum(one in self._answered for one in sent) / len(sent)


class Ways:
    """Paths to all storage nodes, by address."""

    def __init__(self, first: int) -> None:
        """Make the paths; `first` is the number of the first probe."""
        self._number = first % _SEQUENCES
        self._ways: dict[str, Way] = {}
        self._alarm_s = float("-inf")
        """Until when all are probed often."""

    def heard(self, address: str, answers: int, now_s: float) -> None:
        """Take a HELLO of a storage node, which says which probe it heard last."""
        way = self._ways.setdefault(address, Way())
        if way.is_silent:
            way.is_silent = False
            way.forget()
        way.heard(now_s)
        way.answered(answers, now_s)

    def patience_s(self, address: str, now_s: float) -> float:
        """Return how long to wait at least before one way is given up, by the delays on the others.

        On a machine that is short of CPU time all are slow, and none is broken for that. One that is slow on
        purpose delays nothing but where it is one of two.
        """
        others = (way.delay_s(now_s) for known, way in self._ways.items() if known != address)
        delays_s = [delay_s for delay_s in others if delay_s is not None]
        if not delays_s:
            return 0.0
        return min(MOST_PATIENCE_S, PATIENCE * median_low(delays_s))

    def silent(self, address: str) -> None:
        """Note that a storage node says HELLO no more."""
        if address in self._ways:
            self._ways[address].is_silent = True

    def forget(self, address: str) -> None:
        """Forget what was heard of a storage node, because the controller did not listen."""
        if address in self._ways:
            self._ways[address].forget()

    def alarm(self, now_s: float) -> None:
        """Look closely, because something may be wrong."""
        self._alarm_s = now_s + ALARM_S

    def due_s(self, addresses: Iterable[str]) -> float:
        """Return when the next of these is to be probed."""
        sent_s = [way.sent_s for way in self._probed(addresses).values()]
        if not sent_s:
            return float("inf")
        newest_s, oldest_s = max(sent_s), min(sent_s)
        return oldest_s + (ALARMED_S if newest_s < self._alarm_s else CALM_S)

    def probe(self, addresses: Iterable[str], now_s: float) -> dict[str, int]:
        """Return the storage nodes that are to be probed now, each with its probe's number: all when one is
        due."""
        ways = self._probed(addresses)
        if self.due_s(ways) > now_s:
            return {}
        numbers = {}
        for address, way in ways.items():
            self._number = self._number % (_SEQUENCES - 1) + 1  # 0 is no probe
            way.probed(self._number, now_s)
            numbers[address] = self._number
        return numbers

    def is_cut_off(self, address: str, in_doubt: bool, now_s: float) -> bool:
        """Return whether a storage node that is heard is not reached."""
        way = self._ways.get(address)
        if way is None:
            return False
        missed = way.unanswered()
        if in_doubt or (missed and now_s - missed[-1] >= ANSWER_S):
            self.alarm(now_s)
        others = [one for one in self._ways.values() if one is not way and not one.is_silent]
        if others and not any(one.is_reached(False, 0.0, now_s) for one in others):
            return not way.is_reached(in_doubt, NOBODY_REACHED_S, now_s)
        if way.is_reached(in_doubt, 0.0, now_s):
            return False
        return not way.is_reached(in_doubt, self.patience_s(address, now_s), now_s)

    def is_bad(self, address: str, in_doubt: bool, now_s: float) -> bool:
        """Return whether a way loses more than those to the others do; what all lose, none does."""
        way = self._ways.get(address)
        if way is None:
            return False
        if way.is_bad:
            self.alarm(now_s)
        share = way.share(now_s)
        others = [one.share(now_s) for one in self._ways.values() if one is not way and not one.is_silent]
        known = [one for one in others if one is not None]
        if share is not None and known:
            least = AS_GOOD if way.is_bad else WORSE_IN_DOUBT if in_doubt else WORSE
            way.is_bad = median(known) - share > least
        return way.is_bad

    def _probed(self, addresses: Iterable[str]) -> dict[str, Way]:
        known = {address: self._ways.get(address) for address in addresses}
        return {address: way for address, way in known.items() if way is not None and not way.is_silent}


class Doubts:
    """Storage nodes that nodes suspect. One node alone, whatever it says, puts none in doubt."""

    def __init__(self) -> None:
        self._suspected: dict[str, tuple[float, frozenset[int]]] = {}
        """By node: when it said so, and the numbers of the storage nodes."""

    def heard(self, node: str, suspects: frozenset[int], now_s: float) -> None:
        """Take note of whom a node suspects; the switch has checked that it is that node."""
        self._suspected.pop(node, None)
        if suspects:
            if len(self._suspected) >= MAX_DOUBTERS:
                del self._suspected[next(iter(self._suspected))]
            self._suspected[node] = now_s, suspects

    def about(self, number: int, now_s: float) -> bool:
        """Return whether nodes at QUORUM ports or more suspect it."""
        said = self._suspected.values()
        return sum(number in some and now_s - at_s <= SUSPICION_S for at_s, some in said) >= QUORUM
