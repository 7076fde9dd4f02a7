"""Which calls of an engine's executor and core count as a change of its weights."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from engines.vllm.weight_changes import listen


class Ear:
    """Notes what it is told, and what the core had done by then."""

    def __init__(self, core: Core) -> None:
        self.core, self.heard = core, list[tuple[str, int]]()

    def weights_changed(self, reason: str) -> None:
        self.heard.append((reason, len(self.core.done)))

    def adapter_changed(self, name: str) -> None:
        self.heard.append((f"adapter {name}", len(self.core.done)))


class Core:
    """As vLLM's `EngineCore` and its `Executor`."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def collective_rpc(self, method: Any, timeout: float | None = None, args: tuple[Any, ...] = ()) -> str:
        self.done.append(method)
        return "done"

    def add_lora(self, lora_request: Any) -> bool:
        self.done.append(lora_request)
        return True

    def set_weight_version(self, weight_version: str) -> None:
        self.done.append(weight_version)


@pytest.fixture
def core() -> Core:
    """Of a class of its own, which `listen` changes."""

    class OneCore(Core):
        pass

    return OneCore()


def change(model: object) -> None:
    """What a user gives to apply_model."""


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("reload_weights", "reload_weights"),
        ("update_weights", "update_weights"),
        ("load_weights", "load_weights"),
        ("apply_model", "apply_model"),
        ("update_config", "update_config"),
        ("finish_weight_update", "finish_weight_update"),
        ("reset_encoder_cache", "reset_encoder_cache"),
        ("a method of a worker extension", "a method of a worker extension"),
        (change, "change"),
    ],
)
def test_what_may_change_weights_is_told_before_it_runs(core: Core, method: Any, said: str) -> None:
    ear = Ear(core)
    listen(ear, [type(core)], [type(core)])
    assert core.collective_rpc(method) == "done"
    assert core.collective_rpc(method=method) == "done"
    assert ear.heard == [(said, 0), (said, 1)]


@pytest.mark.parametrize("method", ["execute_model", "check_health", "list_loras", "profile"])
def test_what_leaves_weights_alone_is_not_told(core: Core, method: str) -> None:
    ear = Ear(core)
    listen(ear, [type(core)], [type(core)])
    core.collective_rpc(method)
    assert not ear.heard


def test_weights_that_are_given_to_the_model_itself_are_told(core: Core) -> None:
    """Training in the engine's process loads weights without a call of the executor."""

    class Model:
        def load_weights(self, weights: list[Any]) -> int:
            return len(weights)

    ear = Ear(core)
    listen(ear, models=[Model])
    assert Model().load_weights([1, 2]) == 2
    assert ear.heard == [("load_weights", 0)]


def test_a_new_version_of_the_weights_is_told(core: Core) -> None:
    """Whoever changed them in shared memory may say so by nothing else."""
    ear = Ear(core)
    listen(ear, [type(core)])
    core.set_weight_version("step 7")
    assert ear.heard == [("set_weight_version", 0)]


def test_an_adapter_that_is_loaded_in_place_is_told(core: Core) -> None:
    ear = Ear(core)
    listen(ear, [type(core)], [type(core)])
    core.add_lora(SimpleNamespace(lora_name="new", load_inplace=False))
    core.add_lora(lora_request=SimpleNamespace(lora_name="sql", load_inplace=True))
    assert ear.heard == [("adapter sql", 1)]


def test_a_second_engine_of_the_process_does_not_make_calls_tell_twice(core: Core) -> None:
    first, second = Ear(core), Ear(core)
    listen(first, [type(core)], [type(core)])
    listen(second, [type(core)], [type(core)])
    core.collective_rpc("reload_weights")
    assert first.heard == second.heard == [("reload_weights", 0)]
