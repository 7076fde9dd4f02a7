"""vLLM's calls in whatever order: nothing wrong is ever stored, and every request ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.engines.vllm.engine_model import EngineModel
from tests.engines.vllm.engine_runner import MOMENTS
from tests.engines.vllm.pool_in_hand import SPACE, PoolInHand

MODES = st.fixed_dictionaries(
    {
        "background": st.booleans(),
        "depth": st.sampled_from([1, 2]),
        "order": st.sampled_from(["v1", "v1 with drafts", "v2"]),
        "draft_tokens": st.sampled_from([0, 0, 3]),
        "blocks": st.sampled_from([9, 14, 40]),
        "budget": st.sampled_from([5, 8, 40]),
    }
)


class Engines(RuleBasedStateMachine):
    """Two engines on one pool: what one stores, right or wrong, the other loads."""

    @initialize(modes=st.tuples(MODES, MODES), ranks=st.sampled_from([1, 2]))
    def start(self, modes: tuple[dict[str, Any], dict[str, Any]], ranks: int) -> None:
        self.pool = PoolInHand(replace(SPACE, tensor_parallel=ranks))
        self.engines = [EngineModel(self.pool, **mode) for mode in modes]
        self.engines[1].names = self.engines[0].names
        self.may_wait_for_ever: set[int] = set()
        """Engines that schedule steps ahead, beside another connector whose loads fail in a step: vLLM itself
        never schedules a request again that shares what failed with another one."""
        self.number = 0

    @rule(
        engine=st.sampled_from([0, 1]),
        prompt=st.lists(st.sampled_from([0, 1]), min_size=1, max_size=24),
        shared=st.integers(0, 20),
        answer=st.integers(1, 8),
        peer=st.sampled_from([0, 0, 0, 2, 4]),
    )
    def add(self, engine: int, prompt: list[int], shared: int, answer: int, peer: int) -> None:
        self.number += 1
        name = f"r{self.number}"
        tokens = ([0, 1, 2, 2, 1] * 4)[:shared] + prompt
        if len(tokens) + answer + 8 > 4 * len(self.engines[engine].cache.all):
            tokens = tokens[-12:]
        if peer:
            self.engines[engine].scheduler.peer_offers[name] = peer
        self.engines[engine].add(name, tokens[:24], answer)

    @rule(engine=st.sampled_from([0, 1]), steps=st.integers(1, 6))
    def step(self, engine: int, steps: int) -> None:
        for _ in range(steps):
            self.engines[engine].step()

    @rule(engine=st.sampled_from([0, 1]), choice=st.integers(0, 100))
    def abort(self, engine: int, choice: int) -> None:
        names = self.engines[engine].unfinished()
        if names:
            self.engines[engine].abort(names[choice % len(names)])

    @rule(engine=st.sampled_from([0, 1]), running=st.booleans())
    def reset(self, engine: int, running: bool) -> None:
        self.engines[engine].reset(running=running)

    @rule(engine=st.sampled_from([0, 1]))
    def new_weights(self, engine: int) -> None:
        self.engines[engine].change_weights()

    @rule(engine=st.sampled_from([0, 1]), clears=st.booleans())
    def load_weights(self, engine: int, clears: bool) -> None:
        one = self.engines[engine]
        one.load_weights()
        if clears:  # reset_prefix_cache(reset_running_requests=True)
            one.scheduler.preempt_all()
            one.cache.reset()

    @rule(engine=st.sampled_from([0, 1]))
    def sleep(self, engine: int) -> None:
        one = self.engines[engine]
        if not any(request.state == "loading" for request in one.scheduler.requests.values()):
            one.sleep()

    @rule(engine=st.sampled_from([0, 1]), moment=st.sampled_from(MOMENTS))
    def fail(self, engine: int, moment: str) -> None:
        self.engines[engine].fail(moment)

    @rule(engine=st.sampled_from([0, 1]), accepted=st.integers(0, 3))
    def accept(self, engine: int, accepted: int) -> None:
        self.engines[engine].scheduler.accepts = lambda drafts: accepted

    @rule(engine=st.sampled_from([0, 1]), fails=st.booleans(), lies=st.booleans())
    def peer(self, engine: int, fails: bool, lies: bool) -> None:
        self.engines[engine].runner.peer_fails, self.engines[engine].runner.peer_lies = fails, lies
        if fails and self.engines[engine].scheduler.is_async:
            self.may_wait_for_ever.add(engine)

    @rule(choice=st.integers(0, 1000), breaks=st.booleans())
    def lose(self, choice: int, breaks: bool) -> None:
        keys = sorted(self.pool.objects)
        if keys:
            key = keys[choice % len(keys)]
            if breaks:
                self.pool.broken.add(key)
            else:
                del self.pool.objects[key]

    @rule(has_room=st.booleans(), at_once=st.booleans(), answers=st.sampled_from([True, True, False]))
    def pool_changes(self, has_room: bool, at_once: bool, answers: bool) -> None:
        self.pool.has_room, self.pool.answers_at_once, self.pool.is_answering = has_room, at_once, answers

    @rule()
    def happen(self) -> None:
        self.pool.happen()

    @rule(engine=st.sampled_from([0, 1]), fails=st.booleans())
    def memory(self, engine: int, fails: bool) -> None:
        self.engines[engine].memories[0].fails = fails

    @invariant()
    def all_is_right(self) -> None:
        if hasattr(self, "engines"):
            for key, content in self.pool.objects.items():
                assert self.engines[0].names[key] == content

    def teardown(self) -> None:
        if hasattr(self, "engines"):
            for number, engine in enumerate(self.engines):
                for name in engine.unfinished() if number in self.may_wait_for_ever else ():
                    engine.abort(name)
                engine.run()
            self.all_is_right()


@pytest.mark.parametrize(
    "examples", [20, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
def test_nothing_wrong_is_stored_and_every_request_ends(examples: int) -> None:
    run_state_machine_as_test(
        Engines,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            derandomize=True,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
