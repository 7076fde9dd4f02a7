"""Index updates: blocks leave a pool's index and others enter it, in one write.

A newcomer that finds no free slots takes over those of blocks that leave in the same write, under a
generation of its own. So a switch may carry out the updates in any order, and for a moment all entries may be
there: it serves each of them from slots of its own generation only. Two things are rare and take another
write: a removal that is refused, after which those that took over its slots are removed, too; and an install
for which the table had no room before the removal, which is tried once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.errors import SwitchError
from controller.operations import Adapter, Install, Remove, Replace, Result, TableOperation
from controller.pool.slots import SlotAllocator, Slots

_GONE: Final = (Result.OK, Result.NOT_FOUND)
_THERE: Final = (Result.OK, Result.ALREADY_EXISTS)


@dataclass(slots=True)
class UpdateOutcome:
    """Result of an update. The blocks in `left` and in `refused` have no slots any more."""

    left: list[bytes] = field(default_factory=list)
    stayed: list[bytes] = field(default_factory=list)
    """Their removal failed."""
    installed: list[Install] = field(default_factory=list)
    refused: list[bytes] = field(default_factory=list)
    no_slot: list[bytes] = field(default_factory=list)
    """Blocks for which nothing was written."""


@dataclass(slots=True)
class _Newcomer:
    install: Install
    reuses_slots_of: tuple[bytes, ...]
    """Blocks whose slots, or some of them, it takes over."""
    result: Result = Result.FAILED

    @property
    def slots(self) -> Slots:
        return Slots(self.install.base_slot, self.install.generation, self.install.fragments)


class IndexUpdate:
    """See the module. Raises SwitchError as its adapter does; then only reading back tells what is there."""

    def __init__(self, adapter: Adapter, slots: SlotAllocator) -> None:
        self._adapter, self._slots = adapter, slots

    def write(self, leaving: Mapping[bytes, Slots], coming: Mapping[bytes, int]) -> UpdateOutcome:
        """Remove blocks that own these slots, and install others of so many fragments."""
        outcome = UpdateOutcome()
        released: dict[bytes, Slots] = {}
        newcomers = self._place(leaving, coming, released, outcome)
        operations: list[TableOperation] = [Remove(key) for key in leaving]
        operations += [newcomer.install for newcomer in newcomers]
        if not operations:
            return outcome
        try:
            results = self._adapter.write(operations)
        except SwitchError:
            self._give_back(released, [newcomer for newcomer in newcomers if newcomer.reuses_slots_of])
            raise
        for newcomer, result in zip(newcomers, results[len(leaving) :], strict=True):
            newcomer.result = result
        self._settle_removals(leaving, results, released, outcome)
        self._settle_installs(newcomers, released, outcome)
        return outcome

    def _place(
        self,
        leaving: Mapping[bytes, Slots],
        coming: Mapping[bytes, int],
        released: dict[bytes, Slots],
        outcome: UpdateOutcome,
    ) -> list[_Newcomer]:
        """Give slots to those that come: free ones first, then those of blocks that leave, which are
        `released`."""
        leavers = iter(leaving.items())
        newcomers = []
        for key, fragments in coming.items():
            slots = self._slots.allocate(fragments)
            while slots is None and (leaver := next(leavers, None)) is not None:
                released[leaver[0]] = leaver[1]
                self._slots.free(leaver[1])
                slots = self._slots.allocate(fragments)
            if slots is None:
                outcome.no_slot.append(key)
            else:
                reuses_slots_of = tuple(name for name, owned in released.items() if owned.overlaps(slots))
                newcomers.append(_Newcomer(Install(key, *slots), reuses_slots_of))
        return newcomers

    def _settle_removals(
        self,
        leaving: Mapping[bytes, Slots],
        results: Sequence[Result],
        released: Mapping[bytes, Slots],
        outcome: UpdateOutcome,
    ) -> None:
        for key, result in zip(leaving, results, strict=False):
            if result not in _GONE:
                outcome.stayed.append(key)
                continue
            outcome.left.append(key)
            if key not in released:
                self._slots.free(leaving[key])

    def _settle_installs(
        self, newcomers: Sequence[_Newcomer], released: Mapping[bytes, Slots], outcome: UpdateOutcome
    ) -> None:
        stayed = set(outcome.stayed)
        valid = [newcomer for newcomer in newcomers if stayed.isdisjoint(newcomer.reuses_slots_of)]
        self._try_again(valid)
        for newcomer in valid:
            if newcomer.result is Result.OK:
                outcome.installed.append(newcomer.install)
            else:
                outcome.refused.append(newcomer.install.key)
                self._slots.free(newcomer.slots)
        blocked = [newcomer for newcomer in newcomers if not stayed.isdisjoint(newcomer.reuses_slots_of)]
        if there := [newcomer.install.key for newcomer in blocked if newcomer.result in _THERE]:
            self._adapter.write([Remove(key) for key in there])
        self._give_back({key: released[key] for key in outcome.stayed if key in released}, blocked)
        outcome.refused += [newcomer.install.key for newcomer in blocked]

    def _give_back(self, stayed: Mapping[bytes, Slots], newcomers: Iterable[_Newcomer]) -> None:
        """Give these newcomers nothing; blocks that were released to make room for them keep their slots."""
        for newcomer in newcomers:
            self._slots.free(newcomer.slots)
        for slots in stayed.values():
            self._slots.claim(slots)

    def _try_again(self, newcomers: Sequence[_Newcomer]) -> None:
        """Replace entries that were there already, and write those again that may have found no room."""
        again = [newcomer for newcomer in newcomers if _second_try(newcomer) is not None]
        if again:
            results = self._adapter.write([op for op in map(_second_try, again) if op is not None])
            for newcomer, result in zip(again, results, strict=True):
                newcomer.result = result


def _second_try(newcomer: _Newcomer) -> Install | None:
    install = newcomer.install
    if newcomer.result is Result.ALREADY_EXISTS:
        return Replace(install.key, install.base_slot, install.generation, install.fragments)
    if newcomer.result is not Result.OK and newcomer.reuses_slots_of:
        return install
    return None
