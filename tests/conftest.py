"""What holds for all tests."""

import contextlib
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# Tests start hundreds of Python processes. Where the environment forbids bytecode, as in many containers, all
# of them would compile all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Tests run the simulator's Python files, which they may replace parts of; test_compiled.py compares the two.
os.environ.setdefault("WEIR_COMPILED", "0")
# Commands that choose a size of values would start this process again.
os.environ.setdefault("WEIR_VALUE_BYTES", "512")
# Scapy asks the kernel for all routes when it is imported; what it builds here is never sent by it. The
# engines' environment has no Scapy.
with contextlib.suppress(ImportError):
    from scapy.config import conf

    conf.route_autoload = conf.route6_autoload = False
# Examples have no deadline and may be made slowly: on a busy machine any of them may be interrupted for long.
# Fixtures of a function are asked for by tests that make what they need for each example themselves.
UNCHECKED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("quick", max_examples=20, deadline=None, suppress_health_check=UNCHECKED)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test on a real network is run once more when it fails; the summary names it as RERUN.

    Its packets share two cores with whatever else runs, and a burst of other work that outlasts a protocol's
    timeout is the machine's doing. A defect fails twice. The engines' environment has no plugin for that.
    """
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.flaky(reruns=1))
