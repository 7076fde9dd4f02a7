"""python -m hostlib.native: compile the core where that is possible, and say so where it is not."""

from __future__ import annotations

import sys

from hostlib.native.build import BuildError, build

if __name__ == "__main__":
    try:
        build()
    except BuildError as error:
        print(f"the hosts run in Python alone, more slowly: {error}", file=sys.stderr)
