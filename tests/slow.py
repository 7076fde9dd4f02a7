"""Parameters of which `make test` takes a few and `make test-slow` all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def rest_slow(quick: Collection[object], everything: Iterable[object]) -> list[Any]:
    """Return all parameters; those that are not in `quick` have the marker slow."""
    return [one if one in quick else pytest.param(one, marks=pytest.mark.slow) for one in everything]
