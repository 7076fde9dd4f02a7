"""The cases; importing this package registers all of them, in the order of the table."""

from engines.conformance.cases import sharing  # isort: skip
from engines.conformance.cases import isolation, generations  # isort: skip
from engines.conformance.cases import requests  # isort: skip
from engines.conformance.cases import failures, bounds  # isort: skip

__all__ = ["bounds", "failures", "generations", "isolation", "requests", "sharing"]
