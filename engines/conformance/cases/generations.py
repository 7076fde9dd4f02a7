"""New weights in a running engine, as in reinforcement learning: KV of the old ones must not be found."""

from __future__ import annotations

from collections.abc import Callable

from engines.conformance.bench import Bench
from engines.conformance.case import Measured, case
from engines.conformance.engine import Engine
from engines.conformance.outcome import Failed, Refused

NEW_WEIGHTS = 5


def _after_new_weights(bench: Bench, clear: Callable[[Engine], bool]) -> Measured:
    request = bench.prompt()
    with bench.engine() as trained:
        before = bench.compute(trained, request).replies[0]
        bench.find(trained, request)
        trained.ask("change_weights", seed=NEW_WEIGHTS)
        if not clear(trained):
            raise Refused("the connector answers False: it can't be cleared")
        return bench.check_isolated(trained, request, before, "new weights in a running engine")


@case("new-weights-reset", "reset_prefix_cache(reset_connector=True) for new weights clears, or says False.",
      "vllm-project/vllm#42694", "vllm-project/vllm#42695", "LMCache/LMCache#4993")  # fmt: skip
def new_weights_reset(bench: Bench) -> Measured:
    return _after_new_weights(bench, lambda engine: bool(engine.ask("forget", connector=True)))


@case(
    "new-weights-pause",
    "After new weights, pausing with clear_cache clears, or fails.",
    "vllm-project/vllm#42694",
)
def new_weights_pause(bench: Bench) -> Measured:
    def clear(engine: Engine) -> bool:
        try:
            engine.ask("pause_and_resume")
        except Failed as failure:
            raise Refused(f"pausing says: {failure}") from None
        return True

    return _after_new_weights(bench, clear)


@case("reset-then-stores", "After reset_prefix_cache(reset_connector=True) an engine stores and finds again.",
      "vllm-project/vllm#42695")  # fmt: skip
def reset_then_stores(bench: Bench) -> Measured:
    request = bench.prompt()
    with bench.engine() as engine:
        if not engine.ask("forget", connector=True):
            raise Refused("the connector answers False: it can't be cleared")
        bench.compute(engine, request)
        answers = bench.find(engine, request)
        return bench.check_same(answers, engine.recompute([request]), "a prompt after a reset")
