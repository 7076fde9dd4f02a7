"""The connectors that the suite knows, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engines.conformance.connectors.base import Connector
from engines.conformance.connectors.given import Given
from engines.conformance.connectors.lmcache import LMCache
from engines.conformance.connectors.mooncake import Mooncake
from engines.conformance.connectors.vllm import Example, Offloading
from engines.conformance.connectors.weir import Weir, WeirInBackground

CONNECTORS: dict[str, Callable[[Path], Connector]] = {
    one.name: one for one in (Weir, WeirInBackground, LMCache, Mooncake, Offloading, Example)
}
"""Each is made with a folder for its files."""

__all__ = ["CONNECTORS", "Connector", "Given"]
