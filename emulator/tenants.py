"""Tenants of a run (TENANTS=N): the nodes belong to them in turn.

No tenant's nodes can name or read blocks that another's put, so each has its own copy of a shared prompt. A
pool gives each at most an equal share of its blocks.
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
    """A tenant as configurations have it."""

    number: int
    secret: str
    """Secret in hexadecimal, derived from the seed so that blocks have the same homes in a repeated run."""


def tenants_of(nodes: Sequence[str], count: int, seed: int) -> dict[str, Tenant]:
    """Return each node's tenant; none if there are no tenants."""
    tenants = [Tenant(1 + at, _secret(seed, 1 + at)) for at in range(count)]
    return {node: tenants[at % count] for at, node in enumerate(nodes)} if tenants else {}


def share_of(count: int) -> float:
    """Return the part of a pool that each of `count` tenants may hold."""
    return 1 / max(1, count)


def results_of(
    tenants: Mapping[str, Tenant],
    workers: Mapping[str, Mapping[str, Any]],
    controller: Mapping[str, Any],
) -> tuple[TenantResult, ...]:
    """Return the results of each tenant, from the measurements of its nodes and the controller."""
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
