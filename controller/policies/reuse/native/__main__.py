"""python -m controller.policies.reuse.native: compile the core where that is possible, and say so where
not."""

from __future__ import annotations

import sys

from controller.policies.reuse.native import make
from hostlib.native.build import BuildError

if __name__ == "__main__":
    try:
        make()
    except BuildError as error:
        print(f"the policy reuse runs in Python alone, more slowly: {error}", file=sys.stderr)
