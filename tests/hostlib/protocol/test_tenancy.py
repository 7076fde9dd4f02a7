from __future__ import annotations

import pytest

from hostlib.protocol.errors import ConfigError
from hostlib.protocol.seal import PUBLIC_SECRET, Seal
from hostlib.protocol.tenancy import name_key_of, seal_of
from workload.keys import KeySpace

KEY = bytes(16)


def test_a_tenant_with_its_secret_and_the_public_namespace_without() -> None:
    secret = bytes(range(32))
    assert seal_of(7, secret.hex()).tag(KEY, 0, 1, 1, b"x") == Seal(7, secret).tag(KEY, 0, 1, 1, b"x")
    assert seal_of(0, None).tag(KEY, 0, 1, 1, b"x") == Seal(0, PUBLIC_SECRET).tag(KEY, 0, 1, 1, b"x")


def test_tenants_name_the_same_prompt_differently_and_the_public_namespace_alike() -> None:
    secrets = (None, "00" * 32, "01" * 32)
    named = [
        list(KeySpace(name_key=name_key_of(7 if secret else 0, secret)).chain([1, 2])) for secret in secrets
    ]
    assert named[0] == list(KeySpace().chain([1, 2]))
    assert len({key for keys in named for key in keys}) == 6


@pytest.mark.parametrize(
    ("tenant", "secret", "said"),
    [
        (7, None, "tenant 7 needs a secret"),
        (70_000, "00" * 32, "tenant must be 0 to 65535"),
        (7, "not hexadecimal", "secret: "),
        (7, "00", "16 to 64 bytes"),
    ],
)
def test_what_can_not_be_is_said(tenant: int, secret: str | None, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        seal_of(tenant, secret)
