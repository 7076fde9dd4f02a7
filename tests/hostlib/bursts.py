"""Bursts of datagrams that are not as they should be, and a compiled core that counts what it took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from hostlib.native import Core


def spoil(burst: list[bytes], at: int, how: int, chance: random.Random, lengths: Sequence[int]) -> None:
    """Have the datagram there come twice, out of order, damaged, or senseless with one of these lengths."""
    match how:
        case 0:
            burst.insert(chance.randrange(len(burst)), burst[at])
        case 1:
            chance.shuffle(burst)
        case 2 if burst[at]:
            damaged = bytearray(burst[at])
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            burst[at] = bytes(damaged)
        case _:
            burst[at] = chance.randbytes(chance.choice(lengths))


class Counting:
    """A core; `taken` is how many datagrams one of its functions took in runs."""

    def __init__(self, compiled: Core, function: str) -> None:
        self._compiled, self._function = compiled, function
        self.taken = 0

    def __getattr__(self, name: str) -> Any:
        return self._run if name == self._function else getattr(self._compiled, name)

    def _run(self, *arguments: Any) -> Any:
        run = getattr(self._compiled, self._function)(*arguments)
        self.taken += run[0] if run else 0
        return run
