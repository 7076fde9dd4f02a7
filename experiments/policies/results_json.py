"""Results as JSON."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path


def write_json(path: Path, content: object) -> None:
    """Write a results file; infinity and NaN, as of an unknown interval, become null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_finite(content), indent=1, allow_nan=False) + "\n")


def _finite(value: object) -> object:
    match value:
        case dict():
            return {name: _finite(one) for name, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
        case float() if not isfinite(value):
            return None
    return value
