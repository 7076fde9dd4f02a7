"""Parts of p4c's JSON that BMv2's control-plane tools read: tables, actions, arrays and value sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from v1model import ir
from v1model.midend.frame import nested

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DEFAULT_TABLE_SIZE = 1024
_MATCH_TYPES = {"exact": "exact", "lpm": "lpm", "ternary": "ternary", "range": "range", "optional": "ternary"}


def describe(program: ir.Program, custom_crcs: Iterable[int] = ()) -> dict[str, Any]:
    """Return the part of p4c's JSON for simple_switch that its runtime CLI and p4-utils read, in p4c's form.

    `custom_crcs` has the bits of each call of crc16_custom and crc32_custom.
    """
    headers = _Headers()
    ids = {action.name: number for number, action in enumerate(program.actions)}
    pipelines = [
        _pipeline(number, name, program, ids, headers) for number, name in enumerate(("ingress", "egress"))
    ]
    return {
        "__meta__": {"version": [2, 23], "compiler": "weir-p4c"},
        "header_types": headers.types(),
        "headers": headers.instances(),
        "actions": [_action(action, number) for number, action in enumerate(program.actions)],
        "pipelines": pipelines,
        "meter_arrays": _meters(program),
        "counter_arrays": _counters(program),
        "register_arrays": _registers(program),
        "calculations": [
            {"name": f"calc_{number - 1}" if number else "calc", "id": number, "algo": f"crc{bits}_custom"}
            for number, bits in enumerate(custom_crcs)
        ],
        "parse_vsets": _value_sets(program),
        "learn_lists": [{"name": digest.name, "id": i} for i, digest in enumerate(program.digests, start=1)],
    }


class _Headers:
    """Headers that keys name, each with the fields that were requested."""

    def __init__(self) -> None:
        self._fields: dict[str, dict[str, int]] = {}

    def target(self, key: ir.Key) -> list[str]:
        """Return the header and field of a key, as p4c splits its name."""
        if key.name.endswith(".isValid()"):
            header, field, width = key.name.removesuffix(".isValid()"), "$valid$", 1
        else:
            header, _, field = key.name.rpartition(".")
            width = key.expression.type.width if isinstance(key.expression.type, ir.Bits) else 1
        header = header.removeprefix("hdr.") or "scalars"
        self._fields.setdefault(header, {})[field] = width
        return [header, field]

    def types(self) -> list[dict[str, Any]]:
        return [
            {
                "name": f"{header}_t",
                "id": number,
                "fields": [[n, width, False] for n, width in fields.items()],
            }
            for number, (header, fields) in enumerate(self._fields.items())
        ]

    def instances(self) -> list[dict[str, Any]]:
        return [
            {"name": header, "id": number, "header_type": f"{header}_t", "metadata": False}
            for number, header in enumerate(self._fields)
        ]


def _action(action: ir.Action, number: int) -> dict[str, Any]:
    data = [{"name": param.name, "bitwidth": param.type.width} for param in action.params]
    return {"name": action.name, "id": number, "runtime_data": data, "primitives": []}


def _pipeline(
    number: int, name: str, program: ir.Program, ids: dict[str, int], headers: _Headers
) -> dict[str, Any]:
    applied = set(_applied(getattr(program, name).body))
    tables = [(i, table) for i, table in enumerate(program.tables) if table.name in applied]
    profiles = {table.implementation for _, table in tables if table.implementation}
    control = next((table.name.partition(".")[0] for _, table in tables if "." in table.name), name)
    kinds = {extern.name: extern.kind for extern in program.externs}
    return {
        "name": name,
        "id": number,
        "source_info": {"source_fragment": control},
        "tables": [_table(i, table, kinds, ids, headers) for i, table in tables],
        "action_profiles": [
            _profile(i, extern) for i, extern in enumerate(program.externs) if extern.name in profiles
        ],
        "conditionals": [],
    }


def _applied(body: tuple[ir.Stmt, ...]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ir.ApplyTable):
            yield statement.table
        for inner in nested(statement):
            yield from _applied(inner)


def _table(
    number: int, table: ir.Table, kinds: dict[str, str], ids: dict[str, int], headers: _Headers
) -> dict[str, Any]:
    keys = [key for key in table.keys if key.match_kind != "selector"]
    match_kinds = [_MATCH_TYPES[key.match_kind] for key in keys]
    type_ = {"action_profile": "indirect", "action_selector": "indirect_ws"}.get(
        kinds.get(table.implementation, ""), "simple"
    )
    actions = [action.action for action in table.actions]
    found = {
        "name": table.name,
        "id": number,
        "key": [
            {"match_type": kind, "name": key.name, "target": headers.target(key), "mask": None}
            for key, kind in zip(keys, match_kinds, strict=True)
        ],
        "match_type": next((kind for kind in ("range", "ternary", "lpm") if kind in match_kinds), "exact"),
        "type": type_,
        "max_size": table.size or DEFAULT_TABLE_SIZE,
        "with_counters": any(kinds[direct] == "direct_counter" for direct in table.direct),
        "support_timeout": table.idle_timeout,
        "direct_meters": next((d for d in table.direct if kinds[d] == "direct_meter"), None),
        "action_ids": [ids[action] for action in actions],
        "actions": actions,
    }
    if table.implementation:
        found["action_profile"] = found["act_prof_name"] = table.implementation
    return found


def _profile(number: int, extern: ir.ExternInstance) -> dict[str, Any]:
    found: dict[str, Any] = {"name": extern.name, "id": number, "max_size": extern.size}
    if extern.kind == "action_selector":
        found["selector"] = {"algo": extern.algorithm.rpartition(".")[2], "input": []}
    return found


def _bound(program: ir.Program, extern: ir.ExternInstance) -> str:
    return next((table.name for table in program.tables if extern.name in table.direct), "")


def _meters(program: ir.Program) -> list[dict[str, Any]]:
    externs = [extern for extern in program.externs if extern.kind in ("meter", "direct_meter")]
    return [
        {"name": extern.name, "id": number, "type": extern.unit, "rate_count": 2, **_place(program, extern)}
        for number, extern in enumerate(externs)
    ]


def _counters(program: ir.Program) -> list[dict[str, Any]]:
    externs = [extern for extern in program.externs if extern.kind in ("counter", "direct_counter")]
    return [{"name": e.name, "id": number, **_place(program, e)} for number, e in enumerate(externs)]


def _place(program: ir.Program, extern: ir.ExternInstance) -> dict[str, Any]:
    """Return whether an array is direct, and its table or its number of elements."""
    if extern.kind.startswith("direct_"):
        return {"is_direct": True, "binding": _bound(program, extern)}
    return {"is_direct": False, "size": extern.size}


def _registers(program: ir.Program) -> list[dict[str, Any]]:
    externs = [extern for extern in program.externs if extern.kind == "register"]
    return [
        {
            "name": extern.name,
            "id": number,
            "size": extern.size,
            "bitwidth": extern.value_type.width if isinstance(extern.value_type, ir.Bits) else 1,
        }
        for number, extern in enumerate(externs)
    ]


def _value_sets(program: ir.Program) -> list[dict[str, Any]]:
    return [
        {
            "name": value_set.name,
            "id": number,
            "max_size": value_set.size,
            "compressed_bitwidth": sum(
                key.expression.type.width if isinstance(key.expression.type, ir.Bits) else 1
                for key in value_set.keys
            ),
        }
        for number, value_set in enumerate(program.value_sets)
    ]
