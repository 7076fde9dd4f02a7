"""Tenants of a run (TENANTS=N): the nodes belong to them in turn.

What one tenant's nodes put, no other's can name or read, so each has its own copy of a prompt that both were
sent. A pool gives each at most an equal share of its blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from emulator.result import BlockSources, TenantResult, percentiles

SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Tenant:
    """One, as configurations say it."""

    number: int
    secret: str
    """In hexadecimal. Of the seed, so that a run can be repeated with the same homes of the same blocks."""


def tenants_of(nodes: Sequence[str], count: int, seed: int) -> dict[str, Tenant]:
    """Return each node's tenant; none if there are no tenants."""
    made = [Tenant(1 + at, _secret(seed, 1 + at)) for at in range(count)]
    return {node: made[at % count] for at, node in enumerate(nodes)} if made else {}


def share_of(count: int) -> float:
    """Part of a pool that each of so many tenants may hold."""
    return 1 / max(1, count)


def results_of(
    tenants: Mapping[str, Tenant],
    workers: Mapping[str, Mapping[str, Any]],
    controller: Mapping[str, Any],
) -> tuple[TenantResult, ...]:
    """Return what each tenant got, by what its nodes and the controller measured."""
    return tuple(
        _result(number, [workers[name] for name, one in tenants.items() if one.number == number], controller)
        for number in sorted({tenant.number for tenant in tenants.values()})
    )


def _result(number: int, workers: Sequence[Mapping[str, Any]], controller: Mapping[str, Any]) -> TenantResult:
    records = [record for worker in workers for record in worker["records"]]
    return TenantResult(
        number,
        len(workers),
        sum(worker["node"]["completed"] for worker in workers),
        BlockSources.added_up([worker["blocks"] for worker in workers]),
        percentiles([1000 * record["ttft_s"] for record in records if record["ttft_s"] is not None]),
        sum(switch["tenants"].get(str(number), 0) for switch in controller["switches"].values()),
    )


def _secret(seed: int, number: int) -> str:
    return blake2b(b"%d %d" % (seed, number), digest_size=SECRET_BYTES, person=b"weir run tenant").hexdigest()
