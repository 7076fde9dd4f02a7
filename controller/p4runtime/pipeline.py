"""Keeps a switch's program when it is ours, installs it when not.

The cookie that P4Runtime stores with a pipeline says both: 32 bits of a hash of the program, and when it
was installed (seconds since 1970). A controller that starts anew can't read the generations that an earlier
one left in free slots, but none of those hands out more than one a millisecond for the same slot; so
the milliseconds since the installation are a generation that none has reached.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from controller.errors import ConfigError
from controller.pool.slots import GENERATIONS

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from controller.p4runtime.p4runtime_client import SwitchClient


def ensure_pipeline(client: SwitchClient, p4info: Any, device_config: Path, now_s: float) -> int:
    """Put the program on the switch if it is not there. Return a generation that no slot has reached; 0 for a
    new pipeline.

    `now_s` are seconds since 1970. Raises ConfigError if the device configuration can't be read.
    """
    try:
        program = device_config.read_bytes()
    except OSError as error:
        raise ConfigError(f"{device_config}: {error.strerror}") from None
    digest = program_hash(p4info, program)
    present = client.pipeline()
    if present is not None and present.HasField("cookie"):
        kept_digest, installed_s = divmod(present.cookie.cookie, 1 << 32)
        reached = int((now_s - installed_s) * 1000)
        if kept_digest == digest and 0 <= reached < GENERATIONS - 1:
            return reached
    client.set_pipeline(p4info, program, digest << 32 | int(now_s) % (1 << 32))
    return 0


def program_hash(p4info: Any, program: bytes) -> int:
    """Return a hash of 32 bits that identifies a program."""
    text = p4info.SerializeToString(deterministic=True) + program
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")
