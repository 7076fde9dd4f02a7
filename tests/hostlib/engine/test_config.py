"""The pool's settings, as an engine's configuration carries them."""

from __future__ import annotations

import pytest

from hostlib.engine import PoolConfig
from hostlib.errors import ConfigError

GIVEN = {"address": "10.0.0.1", "homes": ["10.0.0.3", "10.0.0.4"]}


def test_a_list_and_a_line_of_homes_mean_the_same() -> None:
    assert PoolConfig.from_mapping(GIVEN) == PoolConfig.from_mapping({**GIVEN, "homes": "10.0.0.3, 10.0.0.4"})


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"adress": "10.0.0.1"}, "no pool setting 'adress' exists; did you mean 'address'"),
        ({"homes": []}, "names no storage node"),
        ({"homes": ["store1"]}, "store1"),
        ({"address": "10.0.0.256"}, "10.0.0.256"),
        ({"tenant": 65536}, "'tenant' is from 0 to 65535"),
        ({"tenant": "7"}, "'tenant' is from 0 to 65535"),
        ({"replicas": 4}, "'replicas' is from 1 to 3"),
        ({"controller": "yes"}, "yes"),
        ({"secret": "key"}, "'secret' is not hexadecimal"),
        ({"secret": "00" * 15}, "16 to 64 are needed"),
        ({"lookup_timeout_s": 0}, "'lookup_timeout_s' must be a number above 0"),
        ({"retry_s": True}, "'retry_s' must be a number above 0"),
        ({"waiting_bytes": "1 GB"}, "'waiting_bytes' must be a number above 0"),
    ],
)
def test_what_can_not_be_is_refused_by_name(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        PoolConfig.from_mapping({**GIVEN, **wrong})


@pytest.mark.parametrize("missing", ["address", "homes"])
def test_what_is_missing_is_named(missing: str) -> None:
    with pytest.raises(ConfigError, match=f"'{missing}' is missing"):
        PoolConfig.from_mapping({name: value for name, value in GIVEN.items() if name != missing})
