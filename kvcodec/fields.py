"""Reader of a payload's fixed fields, one after the other and never past its end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvcodec.errors import StreamError


class Fields:
    """Payload that is being read; reading past its end raises StreamError."""

    def __init__(self, payload: bytes) -> None:
        self._rest = memoryview(payload)

    def array(self, dtype: str, shape: tuple[int, ...]) -> npt.NDArray[np.generic]:
        """Return the next numbers as a new array in the machine's byte order."""
        kind = np.dtype(dtype)
        taken = self.take(int(np.prod(shape, dtype=np.int64)) * kind.itemsize)
        return np.frombuffer(taken, kind).astype(kind.newbyteorder("=")).reshape(shape)

    def take(self, count: int) -> memoryview:
        """Return the next `count` bytes."""
        if count > len(self._rest):
            raise StreamError(f"the payload ends {count - len(self._rest)} bytes early")
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def rest(self) -> bytes:
        """Return all remaining bytes."""
        return bytes(self.take(len(self._rest)))

    def end(self) -> None:
        """Raise StreamError if anything is left."""
        if self._rest:
            raise StreamError(f"{len(self._rest)} bytes too many in the payload")


def scales(fields: Fields, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Return the next float32 numbers; raises StreamError unless all are finite and at least 0."""
    values = fields.array("<f4", shape).astype(np.float32)
    if not np.isfinite(values).all() or (values < 0).any():
        raise StreamError("a scale in the payload is no finite positive number")
    return values
