from collections.abc import Callable
from itertools import islice, pairwise
from random import Random

import pytest

from workload.drafts import Sessions
from workload.generate import generate, in_order
from workload.services import KINDS, MAX_PROMPT_TOKENS, SERVICES, services, tokens_of


def test_a_seed_gives_one_mix_and_another_seed_another() -> None:
    first = generate(SERVICES.name, 1, 300)
    assert first == generate(SERVICES.name, 1, 300)
    lengths = [
        sum(request.input_tokens for request in generate(SERVICES.name, seed, 300).requests) / 300
        for seed in range(1, 9)
    ]
    assert max(lengths) > 3 * min(lengths), "mixes are as different as the ranges that they are drawn from"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", range(4))
def test_sessions_of_a_service_come_in_order_and_ask_in_order(
    kind: Callable[[Random, float, str], Sessions], seed: int
) -> None:
    sessions = list(islice(kind(Random(seed), 5.0, "service"), 40))
    assert all(before[0].arrival_s <= after[0].arrival_s for before, after in pairwise(sessions))
    for session in sessions:
        assert all(before.arrival_s <= after.arrival_s for before, after in pairwise(session))
        assert all(tokens > 0 for draft in session for _, tokens in draft.prompt)


@pytest.mark.parametrize("seed", range(6))
def test_a_mix_asks_as_often_as_it_is_told_to(seed: int) -> None:
    """In the long run: a batch brings many requests at once, a conversation's turns go on for an hour."""
    drafts = [draft for _, draft in islice(in_order(services(Random(seed), 5.0)), 6000)]
    assert all(before.arrival_s <= after.arrival_s for before, after in pairwise(drafts))
    assert 5.0 / 3 < len(drafts) / drafts[-1].arrival_s < 5.0 * 3
    assert max(tokens_of(draft.prompt) for draft in drafts) < 2 * MAX_PROMPT_TOKENS
