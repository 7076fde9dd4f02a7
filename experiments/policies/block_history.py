"""The history of one block: each time that it was asked for, came in or left, and why."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from controller.policies import Decision, Evict, Found, Hits, HomeLoad, Key, Lost, Miss, Policy
from controller.policies.explain import VALUED_ACCESSES, Account, name_of
from controller.policies.reuse.reuse import Reuse

SHOWN = 20
"""Number of turns that are printed, the last ones."""
LEGEND = (
    f"In brackets: what a block saves per slot and {VALUED_ACCESSES:,} accesses by what was learned until "
    "then, and whether it is wanted."
)


class BlockHistory(Policy):
    """A policy in front of `reuse` that passes every event on and notes what happens to one block."""

    name = "reuse"

    def __init__(self, policy: Reuse, key: Key) -> None:
        super().__init__(policy.capacity_blocks, policy.capacity_slots)
        self.capacity, self.pinned = policy.capacity, policy.pinned
        self.turns = 0
        self.last: deque[str] = deque(maxlen=SHOWN)
        """Last turns, in words."""
        self._policy, self._key = policy, key
        self._tenant: int | None = None
        """Tenant of the last miss for the block, if there was one."""
        self._hits = 0
        """Number of hits since the last turn of another kind."""
        self._hits_from_s = 0.0

    def __contains__(self, key: object) -> bool:
        return key in self._policy

    def __len__(self) -> int:
        return len(self._policy)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._policy)

    def miss(self, event: Miss) -> Sequence[Decision]:
        is_ours = event.key == self._key
        if is_ours:
            self._tenant = event.tenant
        decisions = self._policy.miss(event)
        concerned = self._follow(event, decisions)
        if is_ours and not concerned:
            self._note(event, "asked for, in the pool by then" if event.key in self else self._refused())
        return decisions

    def hits(self, event: Hits) -> None:
        self._policy.hits(event)
        if event.key == self._key:
            self._hit(event)

    def home_load(self, event: HomeLoad) -> None:
        self._policy.home_load(event)

    def lost(self, event: Lost) -> None:
        self._policy.lost(event)
        if event.key == self._key:
            self._note(event, "lost: the pool does not hold it after all")

    def found(self, event: Found) -> Sequence[Decision]:
        decisions = self._policy.found(event)
        if not self._follow(event, decisions) and event.key == self._key:
            self._note(event, f"found: the pool holds it after all{_instead(self._named(decisions))}")
        return decisions

    def account(self) -> Account:
        """Return why the block is in the pool or not, at this moment."""
        return self._policy.explain(self._key, self._tenant)

    def _follow(self, event: Miss | Found, decisions: Sequence[Decision]) -> bool:
        """Note what decisions mean for the block; return whether they concern it.

        An eviction makes room for the next admission, or for a block that was found.
        """
        leaving: list[Decision] = []
        concerned = False
        for decision in decisions:
            if isinstance(decision, Evict):
                leaving.append(decision)
                continue
            concerned |= self._entered(event, decision.key, leaving)
            leaving = []
        if any(decision.key == self._key for decision in leaving):
            found = isinstance(event, Found) and event.key != self._key
            cause = (
                f"for {self._brackets(event.key)}, which the pool holds after all" if found else "for nothing"
            )
            self._note(event, f"evicted {self._value()} {cause}")
            concerned = True
        return concerned

    def _entered(self, event: Miss | Found, admitted: Key, leaving: Sequence[Decision]) -> bool:
        if admitted == self._key:
            what = "asked for" if event.key == self._key else f"{name_of(event.key)} behind it was asked for"
            instead = _instead(self._named(leaving)) or ": there was room"
            self._note(event, f"{what}, admitted {self._value()}{instead}")
            return True
        if any(decision.key == self._key for decision in leaving):
            self._note(event, f"evicted {self._value()} for {self._brackets(admitted)}{self._by_tenant()}")
            return True
        return False

    def _refused(self) -> str:
        account = self.account()
        why = self._by_tenant()
        if account.parent is not None and not account.parent_held:
            why += "; the block before it is not wanted"
        if account.next_to_leave is not None:
            why += f"; next to leave is {self._brackets(account.next_to_leave)}"
        return f"asked for, refused {self._value()}{why}"

    def _by_tenant(self) -> str:
        of = self.account().tenancy
        if of is None:
            return ""
        return f"; its tenant {of.tenant} holds {of.held:,} {of.unit}, its share is {of.share:,}"

    def _named(self, leaving: Sequence[Decision]) -> list[str]:
        return [self._brackets(decision.key) for decision in leaving]

    def _brackets(self, key: Key) -> str:
        return f"{name_of(key)} {_value(self._policy.explain(key))}"

    def _value(self) -> str:
        return _value(self.account())

    def _hit(self, event: Hits) -> None:
        """Note hits; consecutive hits are one turn."""
        if self._hits:
            self.last.pop()
        else:
            self.turns += 1
            self._hits_from_s = event.now_s
        self._hits += event.times
        hits = "a hit" if self._hits == 1 else f"{self._hits:,} hits from {self._hits_from_s:.1f} s on"
        self.last.append(f"{event.now_s:10.1f} s  asked for: {hits}")

    def _note(self, event: Miss | Found | Lost, what: str) -> None:
        self._hits = 0
        self.turns += 1
        self.last.append(f"{event.now_s:10.1f} s  {what}")


def _value(account: Account) -> str:
    if not account.asked:
        return "(nothing is remembered of it)"
    return f"({1e3 * account.value_s:.3g} ms; {'wanted' if account.wanted else 'not wanted'})"


def _instead(names: Sequence[str]) -> str:
    return f" in place of {', '.join(names)}" if names else ""
