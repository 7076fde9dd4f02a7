"""The seed of the random packets: DIFFERENTIAL_SEED, or always the same."""

from __future__ import annotations

import os

import pytest

DEFAULT_SEED = "1"


@pytest.fixture
def seed() -> str:
    """Printed, so that a failure tells how to have it again."""
    value = os.environ.get("DIFFERENTIAL_SEED", DEFAULT_SEED)
    print(f"DIFFERENTIAL_SEED={value}")
    return value
