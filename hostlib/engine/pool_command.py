"""weir pool: what a tenant has in the pool, by name, and having it forgotten.

    weir pool --settings pool.json ls              names, with their objects and bytes
    weir pool --settings pool.json ls NAME         the objects of one
    weir pool --settings pool.json stat NAME       how much of it is there now
    weir pool --settings pool.json clear NAME      delete all of it
    weir pool --settings pool.json pin NAME        let other blocks leave first for --seconds; unpin ends it
    weir pool --settings pool.json prefetch NAME   have it in the storage nodes' DRAM; demote: let it leave
    weir pool --settings pool.json expire NAME     have it deleted after --seconds
    weir pool --settings pool.json watch [NAME]    ls, again and again

pool.json has the settings of an engine's pool (docs/engines.md). Engines write down what they store if their
setting `listed` is true. --json prints JSON. Exit code 0: done; 1: the pool does not answer, or not all could
be deleted or hinted at; 2: bad input, such as a name that does not exist; 130: interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hostlib.engine.config import PoolConfig
from hostlib.engine.listed import Lists
from hostlib.engine.node_client import NodeClient
from hostlib.protocol.errors import ConfigError, HostlibError
from hostlib.protocol.hints import MAX_LIFETIME_S, MAX_RETAIN_S, Hint, HintOutcome
from hostlib.protocol.seal import Seal
from hostlib.protocol.transfer import BlockRef

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hostlib.engine.shared_client import BlockClient

QUESTIONS: Final = 256
"""Objects that are asked about at once."""
ASK_S: Final = 10.0
HINTS: Final = {
    "pin": Hint.RETAIN, "unpin": Hint.RETAIN, "prefetch": Hint.PREFETCH, "demote": Hint.DEMOTE,
    "expire": Hint.EXPIRE,
}  # fmt: skip

SECONDS: Final = "how long, 3600 by default"


class UnknownNameError(ConfigError):
    """A name that nobody has stored anything under."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out what stands behind `weir pool`. Returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return asyncio.run(_run(options))
    except ConfigError as error:
        print(f"weir pool: {error}", file=sys.stderr)
        return 2
    except HostlibError as error:
        print(f"weir pool: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


async def _run(options: argparse.Namespace) -> int:
    config = _settings(Path(options.settings))
    seal = Seal(config.tenant, config.secret_bytes())
    client = NodeClient(config, seal)
    try:
        await client.open()
        return await run(client, seal, config, options)
    finally:
        client.close()


async def run(client: BlockClient, seal: Seal, config: PoolConfig, options: argparse.Namespace) -> int:
    """Carry out what was asked for, through a client; returns the exit code."""
    lists = Lists(client, seal, config.replicas)
    name: str | None = options.name
    if name is not None and name not in (names := await lists.names()):
        known = ", ".join(names) if names else "none: no engine with the setting `listed` stored anything"
        raise UnknownNameError(f"no name {name!r} exists; there are {known}")
    if options.what == "clear":
        assert name is not None
        return await _clear(lists, name, options.json)
    if options.what in HINTS:
        assert name is not None
        return await _hint(lists, name, options)
    if options.what == "stat":
        assert name is not None
        _say(await _stat(client, lists, name), options.json)
        return 0
    times = 0
    while True:
        _say(await (_all(lists) if name is None else _one(lists, name)), options.json)
        times += 1
        if options.what == "ls" or times == options.times:
            return 0
        await asyncio.sleep(options.every)


async def _all(lists: Lists) -> list[dict[str, Any]]:
    return [await _sum(lists, name) for name in await lists.names()]


async def _sum(lists: Lists, name: str) -> dict[str, Any]:
    lengths = await _lengths(lists, name)
    return {"name": name, "objects": len(lengths), "bytes": sum(lengths.values())}


async def _one(lists: Lists, name: str) -> list[dict[str, Any]]:
    return [{"key": key.hex(), "bytes": length} for key, length in (await _lengths(lists, name)).items()]


async def _lengths(lists: Lists, name: str) -> dict[bytes, int]:
    """Return the length of each object of a name, by key."""
    return {one.key: one.length async for page in lists.pages(name) for one in page.objects}


async def _stat(client: BlockClient, lists: Lists, name: str) -> list[dict[str, Any]]:
    """Return how much of what is listed is in the pool now."""
    lengths = await _lengths(lists, name)
    keys, there, there_bytes, unknown = list(lengths), 0, 0, 0
    for at in range(0, len(keys), QUESTIONS):
        some = keys[at : at + QUESTIONS]
        answers = await client.present([BlockRef(key) for key in some], ASK_S)
        there += answers.count(True)
        unknown += answers.count(None)
        there_bytes += sum(lengths[key] for key, one in zip(some, answers, strict=True) if one)
    return [
        {
            "name": name,
            "objects": len(keys),
            "bytes": sum(lengths.values()),
            "there": there,
            "there_bytes": there_bytes,
            "unknown": unknown,
        }
    ]


async def _clear(lists: Lists, name: str, as_json: bool) -> int:
    total = len(await _lengths(lists, name))

    def progress(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {total} objects", end="", file=sys.stderr, flush=True)

    deleted = await lists.clear(name, progress)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    _say([{"name": name, "listed": total, "deleted": deleted}], as_json)
    return 0


async def _hint(lists: Lists, name: str, options: argparse.Namespace) -> int:
    """Hint at all of a name; 1 if some of it is there and a home did not answer or do it."""
    seconds = options.seconds if options.what in ("pin", "expire") else 0
    outcomes = await lists.hint(name, HINTS[options.what], seconds)
    counts = {outcome.name.lower(): outcomes[outcome] for outcome in reversed(HintOutcome)}
    _say([{"name": name, **counts}], options.json)
    return 1 if outcomes[HintOutcome.REFUSED] or outcomes[HintOutcome.NO_ANSWER] else 0


def _say(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print one JSON value a line, or columns."""
    if as_json:
        print(json.dumps(rows), flush=True)
        return
    if not rows:
        print("nothing is listed", flush=True)
        return
    table = [list(rows[0])] + [[str(value) for value in row.values()] for row in rows]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    sys.stdout.flush()


def _settings(path: Path) -> PoolConfig:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON ({error})") from None
    if not isinstance(given, dict):
        raise ConfigError(f"{path}: not an object with the settings of a pool")
    return PoolConfig.from_mapping(given)


def _parser() -> argparse.ArgumentParser:
    pool = argparse.ArgumentParser(
        prog="weir pool", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    pool.add_argument("--settings", required=True, help="file with the settings of an engine's pool, in JSON")
    pool.add_argument("--json", action="store_true", help="print JSON")
    what = pool.add_subparsers(required=True, dest="what")
    for command, text in (("ls", "what there is"), ("watch", "what there is, again and again")):
        one = what.add_parser(command, help=text)
        one.add_argument("name", nargs="?", help="of a model or key space")
        one.add_argument("--every", type=float, default=2.0, help="seconds between two looks of watch")
        one.add_argument("--times", type=int, default=0, help="end watch after so many; 0: never")
    for command, text in (("stat", "how much of it is there now"), ("clear", "delete all of it")):
        what.add_parser(command, help=text).add_argument("name", help="of a model or key space")
    for command in HINTS:
        one = what.add_parser(command, help="a hint to the storage nodes, best effort")
        one.add_argument("name", help="of a model or key space")
        if command in ("pin", "expire"):
            longest_s = MAX_RETAIN_S if command == "pin" else MAX_LIFETIME_S
            one.add_argument("--seconds", type=_seconds_up_to(longest_s), default=3600, help=SECONDS)
    return pool


def _seconds_up_to(longest_s: int) -> Callable[[str], int]:
    def seconds(given: str) -> int:
        if not given.isdecimal() or not 0 < int(given) <= longest_s:
            raise argparse.ArgumentTypeError(f"a whole number from 1 to {longest_s}")
        return int(given)

    return seconds


if __name__ == "__main__":
    sys.exit(main())
