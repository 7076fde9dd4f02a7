"""Parameters of which `make test` takes a few and `make test-slow` all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings


def rest_slow(quick: Collection[object], everything: Iterable[object]) -> list[Any]:
    """Return all parameters, those not in `quick` with the marker slow; a tuple is several values."""
    return [
        one if one in quick else pytest.param(*_values(one), marks=pytest.mark.slow) for one in everything
    ]


def examples(quick: int) -> settings:
    """Return the settings of a property test whose examples take long: `quick` of them in `make test` instead
    of 20, and ten times as many in `make test-slow`."""
    current = settings.default
    assert current is not None
    return settings(max_examples=quick * current.max_examples // 20)


def _values(one: object) -> tuple[object, ...]:
    return one if isinstance(one, tuple) else (one,)
