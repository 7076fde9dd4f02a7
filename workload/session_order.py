"""Order within sessions: which requests wait for which answers if only some requests are run."""

from __future__ import annotations

from collections.abc import Container, Sequence

from workload.trace import Request


def awaited(requests: Sequence[Request]) -> set[int]:
    """Return the numbers of those of the requests that others of them wait for."""
    numbers = {request.place.number for request in requests if request.place is not None}
    return {
        number
        for request in requests
        if request.place is not None
        for number in request.place.after
        if number in numbers
    }


def waits_for(request: Request, played: Container[int]) -> tuple[int, ...]:
    """Return the numbers of the requests in `played` that the request waits for.

    If there are none, it comes at its own time.
    """
    if request.place is None:
        return ()
    return tuple(number for number in request.place.after if number in played)
