"""Conversion of keys, actions and rates between Thrift's structs and the data plane's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from v1model.dataplane import MeterConfig, matched, placed
from v1model.ir import ActionCall, Bits, KeyMatch
from v1model.thrift.binary import BOOL, DOUBLE, I32, STRING, ListOf, StructOf
from v1model.thrift.calls import ThriftError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from v1model import ir
    from v1model.dataplane import Matches

    Named = TypeVar("Named", ir.Table, ir.Action, ir.ExternInstance, ir.ValueSet)

EXACT, LPM, TERNARY, VALID, RANGE = range(5)
MATCH_PARAMS = ListOf(
    StructOf(
        (
            I32,
            StructOf((STRING,)),
            StructOf((STRING, I32)),
            StructOf((STRING, STRING)),
            StructOf((BOOL,)),
            StructOf((STRING, STRING)),
        )
    )
)
RATES = ListOf(StructOf((DOUBLE, I32)))
INVALID_ACTION, BAD_MATCH_KEY, BAD_ACTION_DATA = 8, 18, 26
BAD_RATES = 3
MICROSECONDS_PER_S = 1_000_000
NS_PER_MS = 1_000_000
FIRST_ID = 1  # P4Runtime's smallest id of a member or group; BMv2's handles count from 0


def bad_key(message: str) -> ThriftError:
    return ThriftError(BAD_MATCH_KEY, message)


def named(things: Iterable[Named], name: bytes) -> Named | None:
    """Return the thing of this name, or the only one whose name ends with it; None if there is none."""
    wanted, candidates = name.decode(errors="replace"), list(things)
    ending = [thing for thing in candidates if thing.name.endswith(f".{wanted}")]
    exact = next((thing for thing in candidates if thing.name == wanted), None)
    return exact or (ending[0] if len(ending) == 1 else None)


def width_of(key: ir.Key) -> int:
    return key.expression.type.width if isinstance(key.expression.type, Bits) else 1


def matched_keys(table: ir.Table) -> list[ir.Key]:
    return [key for key in table.keys if key.match_kind != "selector"]


def matches_of(table: ir.Table, params: Sequence[dict[int, Any]]) -> Matches:
    """Return the matches of a BmMatchParams."""
    keys = matched_keys(table)
    if len(params) != len(keys):
        raise bad_key(f"table {table.name} has {len(keys)} keys, {len(params)} matches are given")
    return placed(table, (_match(key, param) for key, param in zip(keys, params, strict=True)))


def _match(key: ir.Key, param: dict[int, Any]) -> KeyMatch | None:
    width, kind = width_of(key), param.get(1)
    full = (1 << width) - 1
    if kind == LPM and key.match_kind == "lpm":
        prefix = param[3][2]
        if not 0 <= prefix <= width:
            raise bad_key(f"{key.name}: a prefix of {prefix} bits")
        value = _number(param[3][1], width, key.name) >> width - prefix << width - prefix
        return KeyMatch(value, prefix_length=prefix) if prefix else None
    if kind == TERNARY and key.match_kind in ("ternary", "optional"):
        value, mask = (_number(param[4][part], width, key.name) for part in (1, 2))
        if key.match_kind == "optional":
            if mask not in (0, full):
                raise bad_key(f"{key.name}: an optional key matches all bits or none")
            return KeyMatch(value) if mask else None
        return KeyMatch(value & mask, mask=mask) if mask else None
    if kind == RANGE and key.match_kind == "range":
        low, high = (_number(param[6][part], width, key.name) for part in (1, 2))
        return None if (low, high) == (0, full) else KeyMatch(low, high=high)
    if kind == EXACT and key.match_kind in ("exact", "optional"):
        return KeyMatch(_number(param[2][1], width, key.name))
    if kind == VALID and key.match_kind == "exact" and width == 1:
        return KeyMatch(int(bool(param[5][1])))
    raise bad_key(f"{key.name} is {key.match_kind}")


def match_params(table: ir.Table, matches: Matches) -> list[tuple[Any, ...]]:
    """Return the BmMatchParams of an entry's matches."""
    return [_param(key, match) for key, match in matched(table, matches)]


def entry_key(table: ir.Table, matches: Matches, priority: int) -> tuple[Any, ...]:
    """Return a key that identifies an entry, equal for all forms in which its matches can be written."""
    return (*match_params(table, matches), priority)


def _param(key: ir.Key, match: KeyMatch | None) -> tuple[Any, ...]:
    width = width_of(key)
    full = (1 << width) - 1
    value = _bytes(match.value if match else 0, width)
    if key.match_kind == "exact":
        return EXACT, (value,), None, None, None, None
    if key.match_kind == "lpm":
        prefix = match.prefix_length if match else 0
        return LPM, None, (value, prefix), None, None, None
    if key.match_kind == "range":
        high = match.high if match and match.high is not None else full
        return RANGE, None, None, None, None, (value, _bytes(high, width))
    mask = 0 if match is None else full if match.mask is None else match.mask
    return TERNARY, None, None, (value, _bytes(mask, width)), None, None


def action_call(actions: Iterable[ir.Action], name: bytes, data: Sequence[bytes]) -> ActionCall:
    """Return the call of one of `actions` with BmActionData."""
    action = named(actions, name)
    if action is None:
        raise ThriftError(INVALID_ACTION, f"no action {name!r} here")
    if len(data) != len(action.params):
        message = f"{action.name} takes {len(action.params)} parameters, not {len(data)}"
        raise ThriftError(BAD_ACTION_DATA, message)
    values = zip(data, action.params, strict=True)
    return ActionCall(action.name, tuple(_argument(value, param) for value, param in values))


def _argument(value: bytes, param: ir.ActionParam) -> int:
    number = int.from_bytes(value, "big")
    if number >> param.type.width:
        raise ThriftError(BAD_ACTION_DATA, f"{param.name} has {param.type.width} bits")
    return number


def action_data(actions: Iterable[ir.Action], action: ActionCall) -> list[bytes]:
    """Return the BmActionData of a call."""
    params = next(one.params for one in actions if one.name == action.action)
    return [_bytes(value, param.type.width) for value, param in zip(action.arguments, params, strict=True)]


def meter_config(given: Sequence[dict[int, Any]]) -> MeterConfig:
    """Return the rates of a meter; BMv2 gives both, the committed one first."""
    if len(given) != 2:
        raise ThriftError(BAD_RATES, f"two rates are expected, not {len(given)}")
    (cir, cburst), (pir, pburst) = ((round(one[1] * MICROSECONDS_PER_S), one[2]) for one in given)
    return MeterConfig(cir, cburst, pir, pburst)


def rates(config: MeterConfig | None) -> list[tuple[float, int]]:
    """Return the BmMeterRateConfigs of a meter; [] if it has no rates."""
    if config is None:
        return []
    pairs = ((config.cir, config.cburst), (config.pir, config.pburst))
    return [(rate / MICROSECONDS_PER_S, burst) for rate, burst in pairs]


def _bytes(value: int, width: int) -> bytes:
    return value.to_bytes((width + 7) // 8, "big")


def _number(data: bytes, width: int, name: str) -> int:
    value = int.from_bytes(data, "big")
    if value >> width:
        raise bad_key(f"{name}: {value} does not fit {width} bits")
    return value
