"""What waits for a controller is bounded in messages and bytes."""

from __future__ import annotations

import threading

from v1model.p4runtime.session import QUEUE_BYTES, QUEUE_MESSAGES, Session
from v1model.protos.p4.v1 import p4runtime_pb2


def packet(size: int) -> p4runtime_pb2.StreamMessageResponse:
    message = p4runtime_pb2.StreamMessageResponse()
    message.packet.payload = bytes(size)
    return message


def arbitration() -> p4runtime_pb2.StreamMessageResponse:
    message = p4runtime_pb2.StreamMessageResponse()
    message.arbitration.device_id = 1
    return message


def test_large_messages_fill_the_queue_soon() -> None:
    session = Session()
    for _ in range(100):
        session.send(packet(1 << 20))
    session.close()
    taken = list(session.messages())
    assert len(taken) == QUEUE_BYTES >> 20
    assert session.dropped == 100 - len(taken)


def test_small_messages_do_it_by_their_number() -> None:
    session = Session()
    for _ in range(QUEUE_MESSAGES + 5):
        session.send(packet(1))
    assert session.dropped == 5


def test_arbitration_is_never_dropped_but_ends_a_session_that_takes_none() -> None:
    session = Session()
    for _ in range(QUEUE_MESSAGES):
        session.send(packet(1))
    for _ in range(QUEUE_MESSAGES + 1):
        session.send(arbitration())
    assert session.dropped == 0
    assert len(list(session.messages())) == 2 * QUEUE_MESSAGES + 1  # and then it ends


def test_who_does_not_read_is_not_listened_to() -> None:
    session = Session()
    while not session.dropped:
        session.send(packet(1 << 20))
    listener = threading.Thread(target=session.wait_for_room)
    listener.start()
    listener.join(0.05)
    assert listener.is_alive()
    next(session.messages())
    listener.join(60)
    assert not listener.is_alive()


def test_a_session_that_ends_lets_its_listener_go() -> None:
    session = Session()
    while not session.dropped:
        session.send(packet(1 << 20))
    listener = threading.Thread(target=session.wait_for_room)
    listener.start()
    session.close()
    listener.join(60)
    assert not listener.is_alive()
