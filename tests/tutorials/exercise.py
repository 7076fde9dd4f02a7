"""One exercise of p4lang's tutorials, as it was fetched: its topology and entries on switches in this
process, packets passed from link to link. Nothing of it is kept in this project."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

from v1model.compile import compile_p4
from v1model.dataplane import CloneSession, Replica, TableEntry
from v1model.ir import ActionCall, Bits, Key, KeyMatch, Program
from v1model.remote.values import parse_value
from v1model.switch import Switch

MAX_HOPS = 64


class Exercise:
    """`folder` has topology.json; the solution is the exercise's only program."""

    def __init__(self, folder: Path, program: Path) -> None:
        topology = json.loads((folder / "topology.json").read_text())
        self.hosts: dict[str, dict[str, Any]] = topology["hosts"]
        self._links: dict[tuple[str, int], tuple[str, int]] = {}
        for ends in topology["links"]:
            a, b = _end(ends[0]), _end(ends[1])
            self._links |= {a: b, b: a}
        compiled = compile_p4(program)
        self.switches = {name: Switch(compiled) for name in topology["switches"]}
        for name, config in topology["switches"].items():
            if runtime := config.get("runtime_json"):
                _configure(self.switches[name], _existing(folder, runtime))

    def close(self) -> None:
        for switch in self.switches.values():
            switch.close()

    def ip(self, host: str) -> str:
        return str(self.hosts[host]["ip"].split("/")[0])

    def mac(self, host: str) -> str:
        return str(self.hosts[host]["mac"])

    def send(self, host: str, frame: bytes) -> list[tuple[str, bytes]]:
        """What arrives at hosts because of one frame from a host, in order."""
        arrived = []
        waiting = deque([(*self._links[host, 0], frame, 0)])
        while waiting:
            name, port, data, hops = waiting.popleft()
            assert hops <= MAX_HOPS, "the frame goes round in the network"
            if name in self.hosts:
                arrived.append((name, data))
                continue
            for output in self.switches[name].inject(port, data):
                link = self._links.get((name, output.port))
                if link is not None:
                    waiting.append((*link, output.data, hops + 1))
        return arrived


def _end(text: str) -> tuple[str, int]:
    """`s1-p2` or `h1`."""
    name, _, port = text.partition("-p")
    return name, int(port) if port else 0


def _existing(folder: Path, name: str) -> Path:
    """Paths are relative to the exercise, which is the topology's folder or the one above."""
    found = [base / name for base in (folder, folder.parent, folder.parent / "solution")]
    found.append(folder.parent / "solution" / Path(name).name)
    return next(path for path in reversed(found) if path.is_file())


def _configure(switch: Switch, runtime: Path) -> None:
    config = json.loads(runtime.read_text())
    for entry in config.get("table_entries", []):
        _add_entry(switch, entry)
    for group in config.get("multicast_group_entries", []):
        switch.set_multicast_group(group["multicast_group_id"], _replicas(group))
    for session in config.get("clone_session_entries", []):
        switch.set_clone_session(session["clone_session_id"], CloneSession(_replicas(session)))


def _replicas(config: dict[str, Any]) -> tuple[Replica, ...]:
    return tuple(Replica(one["egress_port"], one["instance"]) for one in config["replicas"])


def _add_entry(switch: Switch, entry: dict[str, Any]) -> None:
    program: Program = switch.program
    table = next(table for table in program.tables if table.name == entry["table"])
    params = next(action.params for action in program.actions if action.name == entry["action_name"])
    given = entry.get("action_params", {})
    values = tuple(parse_value(str(given[param.name]), param.type.width) for param in params)
    call = ActionCall(entry["action_name"], values)
    if entry.get("default_action"):
        switch.set_default(table.name, call)
        return
    matches = tuple(_match(key, entry["match"].get(key.name)) for key in table.keys)
    switch.insert(TableEntry(table.name, matches, call, entry.get("priority", 0)))


def _match(key: Key, given: Any) -> KeyMatch | None:
    width = key.expression.type.width if isinstance(key.expression.type, Bits) else 1
    if given is None:
        return None
    if key.match_kind == "exact":
        return KeyMatch(parse_value(str(given[0] if isinstance(given, list) else given), width))
    first, second = (parse_value(str(part), max(width, 8)) for part in given)
    if key.match_kind == "lpm":
        return KeyMatch(first, prefix_length=second)
    return KeyMatch(first, mask=second) if key.match_kind == "ternary" else KeyMatch(first, high=second)
