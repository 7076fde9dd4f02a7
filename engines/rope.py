"""Which rotary embeddings a model's configuration names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def rope_types(given: Any) -> Iterator[str]:
    """Yield every type of rotary embedding that a configuration names, at whatever depth."""
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name in ("rope_type", "type") and isinstance(value, str):
                yield value
            yield from rope_types(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from rope_types(value)
