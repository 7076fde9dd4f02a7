"""Code that child processes share which read commands on stdin and answer with JSON lines on stdout.

`emulator.processes.LineProcess` is the other end.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from hostlib.process.config import HostConfig, load_config
from hostlib.protocol.errors import HostlibError
from weir import logs

Config = TypeVar("Config", bound=HostConfig)
MAX_LINE_BYTES = 1 << 20


async def commands() -> AsyncIterator[str]:
    """Yield lines of stdin until "stop", an empty line or the end."""
    lines = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while (line := (await lines.readline()).decode().strip()) and line != "stop":
        yield line


def say(event: str, **details: Any) -> None:
    """Write one event to stdout as a JSON line."""
    print(json.dumps({"event": event, **details}), flush=True)


def main(
    module: str, kind: type[Config], run: Callable[[Config], Awaitable[None]], arguments: list[str]
) -> int:
    """Run a child process with a configuration file; returns its exit code, 2 if it could not begin."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(f"usage: python -m {module} CONFIG.json", file=sys.stderr)
        return 2

    async def running(config: Config) -> None:
        await run(config)

    logs.begin(Path(arguments[0]).stem)
    try:
        asyncio.run(running(load_config(kind, Path(arguments[0]))))
    except (HostlibError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
