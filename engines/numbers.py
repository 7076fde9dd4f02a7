"""KV that is no number, as a kernel or a GPU makes it that goes wrong once, and numbers that torch shortens.

KV that is no number spoils the engine's own cache for a while. From a pool, every engine would get it again
and again.
"""

from __future__ import annotations

import logging
from functools import cache

import torch

CHECKED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Types that torch can look at. KV in 8 bits comes as plain bytes."""

_log = logging.getLogger("weir")


def shortened_products() -> list[str]:
    """Return how torch shortens float32 numbers before it multiplies them, in this process; empty if not."""
    kinds = {"cuda": torch.backends.cuda, "cpu": torch.backends.mkldnn}
    precisions = {kind: getattr(one.matmul, "fp32_precision", "none") for kind, one in kinds.items()}
    return [f"{kind} {one}" for kind, one in precisions.items() if one not in ("none", "ieee")]


def holds_numbers(kv: torch.Tensor) -> bool:
    """Return whether there is neither NaN nor infinity among these; if there is, the log says so once."""
    if kv.dtype not in CHECKED or not kv.numel():
        return True
    bounds = torch.stack(torch.aminmax(kv.detach()))
    if bool(torch.isfinite(bounds).all()):
        return True
    _say()
    return False


@cache
def _say() -> None:
    _log.error("The engine computed KV that is NaN or infinite: it is not stored.")
