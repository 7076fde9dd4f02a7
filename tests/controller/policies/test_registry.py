import pytest

from controller.policies import POLICY_NAMES, PolicyError, make_policy


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_every_name_makes_its_policy(name: str) -> None:
    policy = make_policy(name, 30)
    assert policy.name == name
    assert policy.capacity_blocks == 30
    assert len(policy) == 0


def test_unknown_name_lists_those_that_exist() -> None:
    with pytest.raises(PolicyError, match=f"no policy 'x': choose one of {', '.join(POLICY_NAMES)}"):
        make_policy("x", 10)


@pytest.mark.parametrize(("name", "capacity"), [("lru", 0), ("reuse", -1), ("s3fifo", 7)])
def test_pool_too_small(name: str, capacity: int) -> None:
    with pytest.raises(PolicyError, match="at least"):
        make_policy(name, capacity)
