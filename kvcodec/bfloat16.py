"""bfloat16 in numpy, which has no such type: the upper half of a float32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvcodec.layout import Floats


def to_bits(values: Floats) -> npt.NDArray[np.uint16]:
    """Return the bits of the nearest bfloat16 of each finite value, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bits(bits: npt.NDArray[np.uint16]) -> Floats:
    """Return the same numbers as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
