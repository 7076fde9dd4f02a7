"""Who is asked, who is suspected, and when who is suspected is asked again."""

from __future__ import annotations

from hostlib.client.health import Health, HealthOptions
from hostlib.protocol.members import Member, Members, State

OPTIONS = HealthOptions(silence_s=0.3, doubt_s=0.1, probe_s=0.25, max_probe_s=2.0)
KEY = bytes(range(16))
ADDRESSES = [f"10.0.0.{n}" for n in range(1, 5)]


def with_states(replicas: int, **states: State) -> tuple[Members, list[str]]:
    """A list, and the key's homes in order; `n0=DOWN` is the state of the first of these."""
    plain = Members.of(ADDRESSES, replicas)
    order = [member.address for member in plain.order(KEY)]
    by_address = {order[int(name[1:])]: state for name, state in states.items()}
    nodes = tuple(Member(m.number, m.address, by_address.get(m.address, m.state)) for m in plain.nodes)
    return Members(7, replicas, nodes), order


def nothing_waits(home: str) -> float:
    return 0.0


def suspect(health: Health, home: str) -> None:
    assert home in health.judge({home: 0.0}, nothing_waits, 1000.0)[1]


def test_the_first_r_that_are_up_are_read() -> None:
    members, order = with_states(2)
    assert Health(members, OPTIONS).reads(KEY) == (order[:2], False)
    members, order = with_states(2, n0=State.DOWN)
    assert Health(members, OPTIONS).reads(KEY) == (order[1:3], False)


def test_where_all_that_were_given_a_block_may_be_down_nobody_can_say_that_there_is_none() -> None:
    members, order = with_states(2, n0=State.DOWN, n1=State.DOWN)
    health = Health(members, OPTIONS)
    assert health.reads(KEY) == (order[2:] + order[:2], False)  # the list may be wrong about them
    suspect(health, order[0])
    assert health.reads(KEY) == (order[2:] + order[1:2], True)


def test_one_that_is_joining_is_read_last() -> None:
    members, order = with_states(2, n0=State.JOINING)
    assert Health(members, OPTIONS).reads(KEY) == ([*order[1:3], order[0]], False)


def test_while_all_its_homes_are_joining_any_other_may_have_been_given_a_block_in_their_place() -> None:
    members, order = with_states(1, n0=State.JOINING, n3=State.DOWN)
    health = Health(members, OPTIONS)
    assert health.reads(KEY) == ([order[1], order[0], order[2], order[3]], False)
    suspect(health, order[3])
    assert health.reads(KEY) == ([order[1], order[0], order[2]], True)
    assert [one.address for one in members.down_homes(KEY)] == [order[3]]
    members, order = with_states(2, n0=State.JOINING, n1=State.JOINING)
    assert Health(members, OPTIONS).reads(KEY) == (order[2:] + order[:2], False)


def test_one_that_is_suspected_is_left_out_and_said_so() -> None:
    members, order = with_states(2)
    health = Health(members, OPTIONS)
    suspect(health, order[0])
    assert health.reads(KEY) == ([order[1]], True)
    health.heard(order[0], 1000.1)
    assert health.reads(KEY) == (order[:2], False)


def test_a_silent_home_is_asked_for_a_sign_of_life_and_then_suspected() -> None:
    members, order = with_states(1)
    health, home = Health(members, OPTIONS), order[0]
    since = {home: 10.0}
    assert health.judge(since, nothing_waits, 10.05) == ([], [])
    assert health.judge(since, nothing_waits, 10.11) == ([home], [])
    assert health.judge(since, nothing_waits, 10.12) == ([], [])
    assert health.judge(since, nothing_waits, 10.17) == ([home], [])
    assert health.judge(since, nothing_waits, 10.31) == ([], [home])
    assert health.judge(since, nothing_waits, 10.40) == ([], [])


def test_a_home_that_says_anything_is_not_silent() -> None:
    members, order = with_states(1)
    health, home = Health(members, OPTIONS), order[0]
    health.heard(home, 10.25)
    assert health.judge({home: 10.0}, nothing_waits, 10.34) == ([], [])


def test_what_waits_at_a_home_delays_its_answers() -> None:
    members, order = with_states(1)
    health = Health(members, OPTIONS)
    _, dead = health.judge({order[0]: 10.0}, lambda home: 0.01, 10.5)
    assert dead == []


def test_a_suspected_home_is_probed_less_and_less_often() -> None:
    members, order = with_states(1)
    health = Health(members, OPTIONS)
    assert health.next_probe_s() is None
    suspect(health, order[0])
    times = []
    for _ in range(6):
        due_s = health.next_probe_s()
        assert due_s is not None
        assert health.probes(due_s - 0.01) == []
        assert health.probes(due_s) == [order[0]]
        times.append(due_s - 1000.0)
    assert times == [0.25, 0.75, 1.75, 3.75, 5.75, 7.75]


def test_who_is_up_again_by_a_new_list_is_no_suspect_any_more() -> None:
    members, order = with_states(1, n0=State.JOINING)
    health = Health(members, OPTIONS)
    suspect(health, order[0])
    suspect(health, order[1])
    health.members = with_states(1)[0]
    assert health.suspects == [order[1]]


def test_who_is_only_joining_by_a_new_list_is_suspected_on() -> None:
    members, order = with_states(1, n0=State.DOWN)
    health = Health(members, OPTIONS)
    suspect(health, order[0])
    health.members = with_states(1, n0=State.JOINING)[0]
    assert health.suspects == [order[0]]


def test_who_is_not_in_a_new_list_is_forgotten_and_strangers_are_never_remembered() -> None:
    members, order = with_states(1)
    health = Health(members, OPTIONS)
    suspect(health, order[0])
    health.members = Members(8, 1, tuple(m for m in members.nodes if m.address != order[0]))
    assert health.suspects == []
    for number in range(1000):
        health.heard(f"192.0.2.{number}", 1.0)
    assert len(health._heard_s) == 0


def test_everyone_is_asked_but_who_is_suspected_and_that_one_is_left_out_is_said() -> None:
    members, order = with_states(2, n1=State.DOWN)
    health = Health(members, OPTIONS)
    assert health.everyone(KEY) == (order, False)
    suspect(health, order[2])
    assert health.everyone(KEY) == ([order[0], order[1], order[3]], True)
