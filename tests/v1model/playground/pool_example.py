"""What the playground opens with: the pool's program in one text, entries as its controller makes them, and
packets that miss, are merged, fill the pool and are served by it.

python -m tests.v1model.playground.pool_example writes it anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.p4.conftest import PROGRAM, SIZES
from tests.p4.rig import NODES, Rig, key_of
from v1model.compile import compile_p4
from v1model.playground.document import FORMAT, decode
from v1model.playground.run import run_document
from v1model.playground.server import PAGE
from v1model.remote.values import show_match
from v1model.switch import Switch

EXAMPLE = PAGE / "example.json"
KEY = key_of("a block")
START_US = 1_000_000
_INCLUDE = re.compile(r'^[ \t]*#include "([^"]+)".*$', re.MULTILINE)


def one_text(path: Path, seen: set[Path]) -> str:
    """The file with what it includes in its place, each file once."""

    def included(match: re.Match[str]) -> str:
        found = next(
            candidate
            for candidate in (path.parent / match[1], PROGRAM.parent / "include" / match[1])
            if candidate.is_file()
        ).resolve()
        if found in seen:
            return ""
        seen.add(found)
        return one_text(found, seen)

    return _INCLUDE.sub(included, path.read_text())


def without_unused(text: str) -> str:
    """The text without constants that nothing in it uses: in one file they would be warned of."""
    said = run_document(decode({"format": FORMAT, "program": text}))
    unused = {problem["line"] for problem in said["problems"]}
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in unused)


def example() -> dict[str, Any]:
    """The document."""
    defines = "\n".join(f"#define {name} {size}" for name, size in SIZES.items())
    compiled = compile_p4(PROGRAM, defines={name: str(size) for name, size in SIZES.items()})
    rig = Rig(compiled)
    rig.install(KEY)
    commands = list(_commands(rig.switch, Switch(compiled)))
    packets = [
        (NODES[0], rig.get(NODES[0], KEY)),  # not in the pool: asked for at the storage node
        (NODES[1], rig.get(NODES[1], KEY)),  # the same, in flight: waits
        (9, rig.value(NODES[0], KEY)),  # fills the pool and reaches both
        (NODES[2], rig.get(NODES[2], KEY)),  # served by the switch
    ]
    return {
        "format": FORMAT,
        "program": without_unused(defines + "\n" + one_text(PROGRAM, set())),
        "commands": commands,
        "packets": [
            {"text": bytes(packet).hex(), "port": port, "time_us": START_US + 10 * place}
            for place, (port, packet) in enumerate(packets)
        ],
    }


def _commands(switch: Switch, fresh: Switch) -> Any:
    for table in switch.program.tables:
        if (default := switch.default(table.name)) != fresh.default(table.name):
            yield " ".join(["table_set_default", table.name, default.action, *map(str, default.arguments)])
        for entry in switch.entries(table.name):
            if not entry.is_const and entry.action is not None:
                matches = [show_match(match) for match in entry.matches]
                words = ["table_add", table.name, entry.action.action, *matches, "=>"]
                yield " ".join([*words, *map(str, entry.action.arguments)])
    handle = 0
    for group, replicas in switch.multicast_groups().items():
        yield f"mc_mgrp_create {group}"
        for replica in replicas:
            yield f"mc_node_create {replica.instance} {replica.port}"
            yield f"mc_node_associate {group} {handle}"
            handle += 1


if __name__ == "__main__":
    EXAMPLE.write_text(json.dumps(example(), indent=1) + "\n")
