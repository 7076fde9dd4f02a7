"""Generated code and the runtime must compile without a warning."""

import os

os.environ.setdefault("WEIR_WERROR", "1")
