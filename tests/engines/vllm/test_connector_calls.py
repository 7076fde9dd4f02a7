"""What scheduler's and worker's side do together in an engine that makes vLLM's calls."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

import pytest

from engines.vllm.errors import AdapterChangedError
from tests.engines.vllm.engine_model import EngineModel
from tests.engines.vllm.engine_runner import MOMENTS
from tests.engines.vllm.one_prompt import PROMPT, block_key, check, object_key
from tests.engines.vllm.pool_in_hand import SPACE, PoolInHand

ORDERS = ("v1", "v1 with drafts", "v2")


def another(engine: EngineModel, **mode: object) -> EngineModel:
    """An engine of another process on the same pool."""
    other = EngineModel(engine.pool, **mode)  # type: ignore[arg-type]
    other.names = engine.names
    return other


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_prompt_is_stored_once_and_comes_back(order: str, background: bool, depth: int) -> None:
    first = EngineModel(PoolInHand(), order=order, background=background, depth=depth)
    first.add("a", PROMPT)
    first.run()
    check(first)
    assert len(first.pool.objects) == 2 * 5  # the answer makes a fifth block whole
    second = another(first, order=order, background=background, depth=depth)
    second.add("b", PROMPT)
    second.run()
    check(second)
    assert first.pool.offered_blocks == 5 + 1  # the fifth is not of the prompt, so that nobody asked for it


def test_a_request_whose_images_have_no_name_yet_waits_for_it_and_holds_up_nobody() -> None:
    engine = EngineModel(PoolInHand())
    hashing: list[Future[dict[int, bytes]]] = []
    engine.keys.on_media = hashing.append
    pictured = engine.add("pictured", PROMPT)
    engine.keys.on_media = lambda media: media.set_result({})
    plain = engine.add("plain", PROMPT[::-1])
    for _ in range(20):
        engine.step()
    assert plain.is_over
    assert not pictured.num_computed_tokens
    hashing[0].set_result({})
    engine.run()
    assert pictured.is_over
    check(engine)
    assert object_key(engine, 0, index=0) in engine.pool.objects


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("depth", [1, 2])
def test_nothing_is_stored_of_a_step_whose_load_failed_in_another_connector(order: str, depth: int) -> None:
    engine = EngineModel(PoolInHand(), order=order, depth=depth)
    engine.runner.peer_fails = True
    engine.scheduler.peer_offers["a"] = 3
    engine.add("a", PROMPT)
    for _ in range(depth):
        engine.step()
    assert not engine.pool.objects
    engine.run()  # vLLM computes the blocks again, and then they are stored if its runner does that right
    check(engine)
    assert len(engine.pool.objects) == (0 if order == "v2" else 2 * 5)


def test_nothing_is_stored_of_what_waited_while_the_engine_slept() -> None:
    """Sleeping gives the KV memory back. What a step with a load computed waits for the next one."""
    first = EngineModel(PoolInHand())
    first.add("a", PROMPT, max_tokens=1)
    first.run()
    stored = dict(first.pool.objects)
    second = another(first)
    second.add("b", [*PROMPT, 2, 2, 2, 2, 2], max_tokens=1)
    while second.scheduler.requests:
        second.step()
    second.sleep()
    second.add("c", PROMPT[::-1])
    second.run()
    check(second)
    assert stored.items() <= first.pool.objects.items()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("ranks", [1, 2])
def test_nothing_is_stored_of_a_step_that_failed(order: str, depth: int, ranks: int) -> None:
    """vLLM's V1 runner lets a connector store even then, and vLLM's own cache has the step's blocks."""
    engine = EngineModel(PoolInHand(replace(SPACE, tensor_parallel=ranks)), order=order, depth=depth)
    engine.add("a", PROMPT)
    engine.fail()
    engine.pool.happen()
    assert not engine.pool.objects
    engine.add("b", PROMPT)
    engine.run()
    assert not engine.pool.objects
    engine.cache.reset()
    engine.add("c", PROMPT)
    engine.run()
    check(engine)
    assert len(engine.pool.objects) == 2 * 5 * ranks


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("aborts", [False, True])
def test_a_load_in_the_background_ends_also_if_a_step_fails_meanwhile(
    order: str, depth: int, moment: str, steps: int, aborts: bool
) -> None:
    """vLLM keeps the blocks of a request that loads, also of an aborted one, until it hears that it is over:
    what is said of that in a step that raises an error is lost."""
    first = EngineModel(PoolInHand())
    first.add("a", PROMPT)
    first.run()
    engine = another(first, background=True, order=order, depth=depth)
    engine.pool.answers_at_once = False
    engine.add("b", PROMPT)
    while not any(one.state == "loading" for one in engine.scheduler.requests.values()):
        engine.step()
        engine.pool.happen()
    engine.add("c", PROMPT[::-1])
    for _ in range(steps):
        engine.fail(moment, aborts=False)
        engine.pool.happen()
    engine.abort("c")
    if aborts:
        engine.abort("b")
    engine.run()
    assert engine.cache.is_unused
    assert not engine.scheduler.misled & {"b"}
    check(engine)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("aborts", [False, True])
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_failed_to_load_in_a_step_that_raised_an_error_is_neither_used_nor_stored(
    background: bool, aborts: bool, moment: str
) -> None:
    """vLLM does not hear which blocks failed, so that its own cache gives them to others."""
    first = EngineModel(PoolInHand())
    first.add("a", PROMPT)
    first.run()
    engine = another(first, background=background, budget=6)
    first.pool.broken.add(object_key(first, 1, index=1))
    stored = dict(first.pool.objects)
    engine.add("b", [*PROMPT, *PROMPT])
    engine.fail(moment, aborts=aborts)
    engine.add("c", [*PROMPT, *PROMPT])
    engine.run()
    if moment == "after":  # else vLLM computes on what was never computed
        assert not engine.scheduler.misled
    check(engine)
    assert stored.items() <= first.pool.objects.items()


@pytest.mark.parametrize("order", ORDERS)
def test_an_error_that_was_there_before_a_step_is_none_of_it(order: str) -> None:
    engine = EngineModel(PoolInHand(), order=order)
    engine.add("a", PROMPT)
    try:
        raise ValueError
    except ValueError:
        engine.run()
    assert len(engine.pool.objects) == 2 * 5


def test_what_is_cached_of_an_adapter_is_not_stored_under_the_name_of_another_one_at_its_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """vLLM's own cache knows an adapter by name and path, and may hold KV of the one before."""
    engine = EngineModel(PoolInHand())
    plain = engine.keys.of

    def serve(name: str) -> None:
        engine.add(name, PROMPT, adapter="sql")
        engine.run()

    monkeypatch.setattr(engine.keys, "of", lambda request, media: None)  # while its files are hashed
    serve("a")

    def say_once(request: object, media: object) -> object:
        monkeypatch.setattr(engine.keys, "of", plain)
        raise AdapterChangedError("the files have changed")

    monkeypatch.setattr(engine.keys, "of", say_once)
    serve("b")
    serve("c")
    assert not engine.pool.objects
    engine.cache.reset()
    serve("d")
    assert len(engine.pool.objects) == 2 * 5
    check(engine)


def test_nothing_is_stored_on_any_rank_if_one_rank_could_not_load_a_block() -> None:
    first = EngineModel(PoolInHand(replace(SPACE, tensor_parallel=2)))
    first.add("a", PROMPT)
    first.run()
    first.pool.broken.add(object_key(first, 1, index=0, rank=1))
    stored = dict(first.pool.objects)
    second = another(first)
    second.add("b", [*PROMPT, 2, 2, 2, 2, 2])
    second.step()
    assert first.pool.objects == stored
    second.run()
    check(second)
    assert len(first.pool.objects) > len(stored)


@pytest.mark.parametrize("background", [False, True])
def test_a_block_that_fails_to_load_is_not_offered_to_the_same_request_again(background: bool) -> None:
    first = EngineModel(PoolInHand())
    first.add("a", PROMPT)
    first.run()
    pool = first.pool
    pool.broken.add(object_key(first, 0, index=0))
    second = another(first, background=background)
    request = second.add("b", PROMPT)
    for _ in range(20):
        second.step()
    assert request.num_tokens > len(
        PROMPT
    )  # it goes on, although a look-up finds the block whenever it is asked
    assert pool.failed == [block_key(first, 0)]
    second.run()
    check(second)


@pytest.mark.parametrize("order", ORDERS[:2])
@pytest.mark.parametrize("budget", [12, 40])
@pytest.mark.parametrize("steps", range(1, 5))
def test_a_request_does_not_go_on_with_what_another_one_was_to_compute_again(
    order: str, budget: int, steps: int
) -> None:
    """Two requests share blocks that failed to load; vLLM lets the first compute them."""
    first = EngineModel(PoolInHand())
    first.add("a", PROMPT)
    first.run()
    first.pool.broken |= set(first.pool.objects)
    second = another(first, order=order, budget=budget)
    second.add("owner", [*PROMPT, 1, 2])
    second.add("other", [*PROMPT[:16], 2, 2, 2, 2, 2])
    for _ in range(steps):
        second.step()
        second.pool.happen()
    second.abort("owner")
    second.run()
    assert not second.scheduler.misled
    check(second)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("budget", [12, 40])
@pytest.mark.parametrize("steps", range(1, 5))
def test_nor_with_what_another_connector_could_not_load(background: bool, budget: int, steps: int) -> None:
    engine = EngineModel(PoolInHand(), background=background, budget=budget)
    engine.runner.peer_fails = True
    engine.scheduler.peer_offers["owner"] = 4
    engine.add("owner", [*PROMPT, 1, 2])
    engine.add("other", [*PROMPT[:16], 2, 2, 2, 2, 2])
    for _ in range(steps):
        engine.step()
    engine.abort("owner")
    engine.run()
    assert not engine.scheduler.misled
    check(engine)


@pytest.mark.parametrize("depth", [1, 2])
def test_requests_that_load_at_once_and_have_little_room_all_end(depth: int) -> None:
    first = EngineModel(PoolInHand())
    first.add("a", PROMPT)
    first.run()
    second = another(first, background=True, blocks=9, budget=5, depth=depth)
    requests = [second.add(f"b{number}", [*PROMPT[:12], number]) for number in range(8)]
    second.run()
    assert all(request.is_over for request in requests)
    check(second)


def test_a_block_that_failed_to_load_is_stored_again_once_it_is_computed() -> None:
    first = EngineModel(PoolInHand())
    first.add("a", PROMPT)
    first.run()
    pool = first.pool
    del pool.objects[object_key(first, 2, index=0)]
    second = another(first)
    second.add("b", PROMPT)
    second.run()
    check(second)
    assert object_key(first, 2, index=0) in pool.objects


def test_a_conversation_offers_only_its_new_blocks() -> None:
    engine = EngineModel(PoolInHand(), blocks=60)
    talk = list(PROMPT)
    for turn in range(5):
        request = engine.add(f"turn{turn}", talk)
        engine.run()
        talk = [*request.tokens, 1, 2, 0, turn % 3, 1, 1]
    check(engine)
    assert engine.pool.offered_blocks == len(engine.pool.objects) // 2


def test_requests_behind_one_system_prompt_offer_it_once() -> None:
    engine = EngineModel(PoolInHand(), blocks=60)
    for number in range(6):
        engine.add(f"r{number}", [*PROMPT[:16], number % 3, number // 3, 1, 1, 0])
        engine.run()
    check(engine)
    assert engine.pool.offered_blocks == len(engine.pool.objects) // 2


def test_what_the_engine_has_and_the_pool_has_not_is_offered() -> None:
    engine = EngineModel(PoolInHand())
    engine.pool.is_answering = False
    engine.add("a", PROMPT)
    engine.run()
    assert not engine.pool.objects
    engine.pool.is_answering = True
    engine.add("b", PROMPT)  # its beginning is in the engine's own cache
    engine.run()
    check(engine)
    assert len(engine.pool.objects) == 2 * 5


def test_blocks_that_have_no_room_are_stored_when_there_is_room() -> None:
    engine = EngineModel(PoolInHand(), blocks=40)
    engine.pool.has_room = False
    engine.add("a", PROMPT)
    while engine.is_busy:
        engine.step()
    assert not engine.pool.objects  # the request is over, and nothing was copied
    engine.pool.happen()
    check(engine)
    assert len(engine.pool.objects) == 2 * 5


def test_a_block_that_the_engine_gives_away_is_not_read_any_more() -> None:
    engine = EngineModel(PoolInHand(), blocks=7)
    engine.pool.has_room = False
    engine.add("a", PROMPT)
    while engine.is_busy:
        engine.step()
    engine.add("b", [2] * 19)  # takes the blocks of the first
    engine.step()
    engine.step()
    engine.pool.happen()
    check(engine)
    engine.run()


@pytest.mark.parametrize(
    ("params", "seconds"),
    [({"retain_s": 600}, 600), ({"retain_s": 1 << 20}, 65_535), ({"retain_s": -1}, 0), ({"retain_s": "x"}, 0),
     ({"retain_s": True}, 0), ("no object", 0), (None, 0)],
)  # fmt: skip
def test_a_request_has_its_blocks_retained(params: object, seconds: int) -> None:
    engine = EngineModel(PoolInHand())
    request = engine.add("a", PROMPT)
    request.kv_transfer_params = params
    engine.run()
    keys = [block_key(engine, number) for number in range(4)]
    assert [(held[:4], asked) for held, asked in engine.pool.retained] == (
        [(keys, seconds)] if seconds else []
    )


@pytest.mark.parametrize(("loads", "stores"), [(True, False), (False, True)])
def test_a_consumer_does_not_store_and_a_producer_does_not_load(loads: bool, stores: bool) -> None:
    pool = PoolInHand()
    if not stores:
        full = EngineModel(pool)
        full.add("a", PROMPT)
        full.run()
    before, offered = dict(pool.objects), pool.offered_blocks
    engine = EngineModel(pool, loads=loads, stores=stores)
    engine.names.update(before)
    engine.add("b", PROMPT)
    engine.add("c", PROMPT)
    engine.run()
    assert (pool.questions > 0) == loads
    assert (pool.offered_blocks > offered) == stores


class TestNewWeights:
    def test_a_reset_begins_a_generation_that_finds_nothing_from_before(self) -> None:
        engine = EngineModel(PoolInHand())
        engine.add("a", PROMPT)
        engine.run()
        before = set(engine.pool.objects)
        engine.runner.weights += 1
        assert engine.reset(running=False)
        engine.add("b", PROMPT)
        engine.run()
        check(engine)
        assert len(engine.pool.objects) == 2 * len(before)
        engine.reset(running=False)

    def test_requests_that_run_across_a_reset_are_not_stored(self) -> None:
        engine = EngineModel(PoolInHand(), budget=8)
        engine.add("a", PROMPT)
        engine.step()
        stored = set(engine.pool.objects)
        assert not engine.reset(running=False)  # the request holds blocks
        engine.run()
        assert set(engine.pool.objects) == stored
        assert engine.reset(running=False)  # nothing is left of before
        engine.add("b", PROMPT)
        engine.run()
        check(engine)
        assert len(engine.pool.objects) > len(stored)

    def test_a_reset_that_preempts_all_requests_lets_them_be_stored_anew(self) -> None:
        engine = EngineModel(PoolInHand(), budget=8)
        engine.add("a", PROMPT)
        engine.step()
        engine.runner.weights += 1
        assert engine.reset(running=True)
        engine.run()
        check(engine)
        assert len(engine.pool.objects) == 2 * 2 + 2 * 5

    def test_weights_that_change_without_a_word_are_noticed(self) -> None:
        engine = EngineModel(PoolInHand(), budget=8)
        engine.add("a", PROMPT)
        engine.step()
        stored = set(engine.pool.objects)
        engine.change_weights()
        engine.run()
        engine.add("b", PROMPT)  # what the engine's own cache has is of the weights before
        engine.run()
        assert set(engine.pool.objects) == stored
        assert engine.reset(running=False)
        engine.add("c", PROMPT)
        engine.run()
        check(engine)
        assert len(engine.pool.objects) > len(stored)

    @pytest.mark.parametrize("background", [False, True])
    @pytest.mark.parametrize("ranks", [1, 2])
    def test_weights_that_a_worker_gets_without_the_schedulers_knowledge_are_noticed(
        self, background: bool, ranks: int
    ) -> None:
        """Training in the worker's process does so, and clears vLLM's own cache, but not the connector's."""
        engine = EngineModel(PoolInHand(replace(SPACE, tensor_parallel=ranks)), background=background)
        engine.add("a", PROMPT)
        engine.run()
        stored = dict(engine.pool.objects)
        engine.load_weights()
        engine.cache.reset()
        engine.add("b", PROMPT)
        engine.add("c", PROMPT[::-1])
        engine.run()
        assert engine.pool.objects == stored
        check(engine)
        engine.cache.reset()
        engine.add("d", PROMPT)
        engine.run()
        check(engine)
        assert len(engine.pool.objects) == 2 * len(stored)

    @pytest.mark.parametrize("change", ["weights", "adapter"])
    @pytest.mark.parametrize("has_arrived", [False, True])
    def test_what_is_on_its_way_while_weights_change_is_computed(
        self, change: str, has_arrived: bool
    ) -> None:
        """Otherwise a request that has not begun would be computed on KV of the former weights."""
        first = EngineModel(PoolInHand())
        first.add("a", PROMPT)
        first.run()
        second, pool = another(first, background=True), first.pool
        pool.answers_at_once = False
        second.add("b", PROMPT, adapter="sql" if change == "adapter" else None)
        second.step()  # it is looked for
        pool.happen()
        second.step()  # and is on its way
        if has_arrived:
            pool.happen()
        if change == "adapter":
            second.side.adapter_changed("sql")
        else:
            second.change_weights()
        second.run()
        assert pool.failed == [block_key(first, number) for number in range(4)]

    def test_an_engine_that_holds_nothing_goes_on_at_once(self) -> None:
        engine = EngineModel(PoolInHand())
        engine.change_weights()
        engine.add("a", PROMPT)
        engine.run()
        check(engine)
        assert len(engine.pool.objects) == 2 * 5


class TestFailures:
    def test_a_copy_that_fails_ends_nothing_and_stores_nothing_wrong(self) -> None:
        engine = EngineModel(PoolInHand())
        engine.memories[0].fails = True
        engine.add("a", PROMPT)
        engine.run()
        assert not engine.pool.objects

    def test_a_block_of_which_one_object_holds_no_numbers_is_not_stored(self) -> None:
        engine = EngineModel(PoolInHand(), budget=40)
        engine.pool.has_room = False
        request = engine.add("a", PROMPT)
        engine.step()
        engine.memories[0].spoiled = {(request.blocks[2].block_id, 1)}
        engine.run()
        check(engine)
        of_prompt = [object_key(engine, number, index) for number in range(4) for index in (0, 1)]
        assert [key in engine.pool.objects for key in of_prompt] == [True] * 4 + [False] * 4

    def test_a_block_that_can_not_be_put_into_the_engine_is_computed(self) -> None:
        first = EngineModel(PoolInHand())
        first.add("a", PROMPT)
        first.run()
        second = another(first)
        second.memories[0].fails = True
        second.add("b", [*PROMPT, 0, 0, 0, 0])
        second.run()
        check(second)

    def test_a_client_that_says_nothing_stalls_the_engine_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first = EngineModel(PoolInHand())
        first.add("a", PROMPT)
        first.run()
        second = another(first)
        second.workers[0]._patience_s = 0.05
        monkeypatch.setattr(
            first.pool, "begin_load", lambda items, on_moved: first.pool._later(list, at_once=False)
        )
        monkeypatch.setattr(first.pool, "happen", lambda: None)
        second.add("b", PROMPT)
        second.run()
        second.workers[0]._patience_s = 60.0
        second.add("c", [2, *PROMPT])
        second.run()
        check(second)

    def test_a_look_up_that_is_never_answered_ends(self) -> None:
        engine = EngineModel(PoolInHand())
        engine.pool.answers_at_once = False
        engine.side._lookups._patience_s = 0.0
        request = engine.add("a", PROMPT)
        while engine.is_busy:
            engine.step()
        assert request.num_tokens > len(PROMPT)

    def test_a_model_whose_layers_do_not_wait_computes_what_may_have_come_too_late(self) -> None:
        first = EngineModel(PoolInHand())
        first.add("a", PROMPT)
        first.run()
        second = another(first)
        second.runner.layers = ()
        second.add("b", [*PROMPT, 0, 0, 0, 0])
        second.step()
        assert second.queue[0].invalid if second.queue else second.side._damage
        second.run()
        check(second)
        second.add("c", [*PROMPT, 1, 1, 1, 1])  # from now on loads are there before the forward pass
        second.run()
        check(second)
