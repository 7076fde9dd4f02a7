from ipaddress import IPv4Address

from controller.policies.eviction_action import EvictionAction
from controller.pool.residual_value import ResidualValue
from workload.cost import CostModel

COST = CostModel()
NEAR, FAR = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")


def test_each_home_has_its_link() -> None:
    """A block that takes 3 ms to send, and 49 to compute, is worth that; not where it takes 67 ms."""
    residual = ResidualValue(COST, 200e9, links_bit_s={FAR: 10e9})
    assert (residual.link_bit_s(NEAR), residual.link_bit_s(FAR)) == (200e9, 10e9)
    actions = [residual.eviction_action(1.0, 0, home, 0.0, held_elsewhere=False) for home in (NEAR, FAR)]
    assert actions == [EvictionAction.DEMOTE, EvictionAction.STUB]


def test_what_waits_at_a_home_is_in_the_networks_time() -> None:
    residual = ResidualValue(COST, 200e9, speed=4.0)
    residual.home_load(NEAR, 0.02, 1.0)
    assert not residual.is_idle(NEAR, 1.0)
    assert residual.eviction_action(1.0, 0, NEAR, 1.0, held_elsewhere=False) is EvictionAction.STUB
    assert residual.is_idle(NEAR, 1.03)
    assert residual.eviction_action(1.0, 0, NEAR, 1.03, held_elsewhere=False) is EvictionAction.DEMOTE
