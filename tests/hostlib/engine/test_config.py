"""The pool's settings, as an engine's configuration carries them."""

from __future__ import annotations

import pytest

from hostlib.engine import PoolConfig
from hostlib.protocol.errors import ConfigError

GIVEN = {"address": "10.0.0.1", "homes": ["10.0.0.3", "10.0.0.4"]}


def test_a_list_and_a_line_of_homes_mean_the_same() -> None:
    assert PoolConfig.from_mapping(GIVEN) == PoolConfig.from_mapping({**GIVEN, "homes": "10.0.0.3, 10.0.0.4"})


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"adress": "10.0.0.1"}, "no pool setting 'adress' exists; did you mean 'address'"),
        ({"retries": 1}, "no pool setting 'retries' exists; did you mean 'retry_s'"),
        ({"loding": "background"}, "no pool setting 'loding' exists; did you mean 'loading'"),
        ({"zzz": 1}, "no pool setting 'zzz' exists; there are address, homes, .*waiting_bytes, loading"),
        ({"homes": []}, "names no storage node"),
        ({"homes": 5}, "'homes' is a list of addresses, not 5"),
        ({"homes": [5]}, "5 is no IPv4 address"),
        ({"homes": ["10.0.0.3", "10.0.0.3"]}, "name one address twice"),
        ({"homes": ["10.0.0.3", "10.0.0.1"]}, "name one address twice"),
        ({"homes": [f"10.0.1.{number}" for number in range(100)]}, "100 storage nodes; 84 can be"),
        ({"replicas": True}, "'replicas' is from 1 to 3"),
        ({"replicas": 3}, "'replicas' is 3, but 'homes' names 2"),
        ({"tenant": True}, "'tenant' is from 0 to 65535"),
        ({"silence_s": float("inf")}, "'silence_s' must be a number above 0"),
        ({"silence_s": float("nan")}, "'silence_s' must be a number above 0"),
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
        PoolConfig.from_mapping({**GIVEN, **wrong}, others=["loading"])


@pytest.mark.parametrize("missing", ["address", "homes"])
def test_what_is_missing_is_named(missing: str) -> None:
    with pytest.raises(ConfigError, match=f"'{missing}' is missing"):
        PoolConfig.from_mapping({name: value for name, value in GIVEN.items() if name != missing})
