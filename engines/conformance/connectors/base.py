"""Interface of a connector to the suite, and of what the suite does to its store."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engines.conformance.outcome import LeftOut

if TYPE_CHECKING:
    from engines.conformance.engine import Engine

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SEVERITY = re.compile(r"\b(WARNING|ERROR|CRITICAL)\b")


class Connector(ABC):
    """One connector, configured as its authors recommend, and the store that it needs."""

    name: ClassVar[str]
    stand_ins: ClassVar[tuple[str, ...]] = ()
    """Modules whose `install()` lets it run without a GPU, called in each engine before vLLM makes it."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages whose versions stand for the connector's."""
    speaks_as: ClassVar[str]
    """Regular expression of the log lines that are its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def version(self) -> str:
        """Return the versions of the packages that it is made of."""
        found = []
        for package in self.packages:
            try:
                found.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                found.append(f"{package} missing")
        return ", ".join(found)

    @abstractmethod
    def transfer(self) -> dict[str, Any]:
        """Return the KVTransferConfig of one more engine."""

    def environment(self) -> dict[str, str]:
        """Return the environment variables that its engines need."""
        return {}

    def start(self) -> None:  # noqa: B027 # not every connector has a store of its own
        """Start the store, empty."""

    def stop(self) -> None:  # noqa: B027
        """End the store."""

    def restart_empty(self) -> None:
        """Let the store die, with all that it holds, and come back at the same place."""
        raise LeftOut("its store can't be started anew")

    def silence(self) -> None:
        """Let the store answer nothing more, as a machine that hangs."""
        raise LeftOut("its store has no process that could fall silent")

    def resume(self) -> None:  # noqa: B027
        """End a silence."""

    def lose_half(self) -> int:
        """Remove about half of the objects that the store holds, each by chance. Returns how many."""
        raise LeftOut("single objects can't be taken out of its store")

    def offered_bytes(self, engine: Engine) -> int:
        """Return the bytes of KV that an engine offered the store so far, also those that it had already."""
        raise LeftOut("it does not count what it offers its store")

    def messages(self, log: str) -> list[str]:
        """Return the warnings and errors in an engine's log that are the connector's own."""
        own = re.compile(self.speaks_as)
        lines = _COLOUR.sub("", log).splitlines()
        return [line for line in lines if _SEVERITY.search(line) and own.search(line)]
