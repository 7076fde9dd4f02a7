"""Which code a model's configuration names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def remote_code(given: Any) -> Iterator[str]:
    """Yield what a configuration says of code to run, also that of an encoder or another part of the model.

    Code of another model than the configuration's has "--" in it.
    """
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name == "auto_map" and value:
                yield str(value)
            yield from remote_code(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from remote_code(value)
