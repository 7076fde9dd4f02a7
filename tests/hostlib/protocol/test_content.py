from __future__ import annotations

from hostlib.protocol import wire
from hostlib.protocol.block import Place
from hostlib.protocol.content import block_content, derivation, derived_write
from hostlib.protocol.seal import Seal
from tests.hostlib.sealed import SEAL, TENANT

KEY = bytes(range(16))


def test_content_depends_on_the_key_alone() -> None:
    assert block_content(KEY, 16384) == block_content(KEY, 16384) != block_content(KEY[::-1], 16384)
    assert len(block_content(KEY, 16384)) == 16384


def test_every_home_derives_the_same_write_of_a_block_sealed_by_its_tenant() -> None:
    one, other = (derivation(SEAL)(Place(TENANT, KEY), 1100) for _ in range(2))
    assert one == other
    assert one.write == derived_write(KEY) != 0
    for at in range(3):
        message = wire.Message(
            wire.OP_VALUE, KEY, at, 3, tenant=TENANT, content=one.write, tag=one.tag(at), value=one.value(at)
        )
        assert SEAL.is_genuine(message)
        assert not Seal(TENANT, b"another secret!!").is_genuine(message)
