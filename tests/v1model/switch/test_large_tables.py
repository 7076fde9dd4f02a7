"""Tables of hundreds of entries with wide keys, against a search of all entries. Their number makes the
runtime's classifier plan its tuples anew, again and again (runtime/classifier.h)."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable

import pytest

from tests.v1model.switch.conftest import frame
from v1model.dataplane import TableEntry
from v1model.ir import ActionCall, KeyMatch
from v1model.switch import Switch

Make = Callable[..., Switch]
TABLE, SET = "MyIngress.t", "MyIngress.set"
WIDTHS = (32, 16, 8)
FULL = tuple((1 << width) - 1 for width in WIDTHS)
Values = tuple[int, int, int]


def prefix(source: random.Random, field: int, lengths: tuple[int, ...]) -> KeyMatch | None:
    width = WIDTHS[field]
    mask = FULL[field] ^ FULL[field] >> source.choice(lengths)
    value = source.getrandbits(width) & mask
    return KeyMatch(value, mask=mask) if mask else None


def range_of(source: random.Random) -> KeyMatch:
    low, high = sorted((source.getrandbits(16), source.getrandbits(16)))
    return KeyMatch(low, high=high)


def access_list(source: random.Random) -> tuple[KeyMatch | None, ...]:
    """As people write them: prefixes, a port or none, a protocol or none."""
    port = KeyMatch(source.choice((22, 80, 443, source.getrandbits(16))), mask=FULL[1])
    protocol = KeyMatch(source.choice((6, 17)), mask=FULL[2])
    return (
        prefix(source, 0, (0, 8, 12, 16, 19, 22, 24, 28, 32)),
        source.choice((None, port)),
        source.choice((None, protocol)),
    )


def any_masks(source: random.Random) -> tuple[KeyMatch | None, ...]:
    """Masks without any order: more of them than there can be tuples."""
    masks = [source.getrandbits(width) & source.getrandbits(width) for width in WIDTHS]
    return tuple(KeyMatch(source.getrandbits(32) & mask, mask=mask) for mask in masks)


def ranges(source: random.Random) -> tuple[KeyMatch | None, ...]:
    return prefix(source, 0, (0, 8, 32)), range_of(source), None


KINDS = {
    "access list": ("ternary", "ternary", "ternary", access_list),
    "any masks": ("ternary", "ternary", "ternary", any_masks),
    "ranges": ("ternary", "range", "ternary", ranges),
    "two ranges": (
        "exact",
        "range",
        "range",
        lambda source: (KeyMatch(source.randrange(3)), range_of(source), KeyMatch(3, high=200)),
    ),
    "routes": (
        "lpm",
        "exact",
        "exact",
        lambda source: (
            KeyMatch(source.getrandbits(32), prefix_length=source.choice((0, 8, 15, 16, 22, 24, 32))),
            KeyMatch(source.randrange(2)),
            KeyMatch(0),
        ),
    ),
}


def port_of(entry: TableEntry) -> int:
    assert entry.action is not None
    return entry.action.arguments[0]


def matches(entry: TableEntry, values: Values) -> bool:
    for match, value, full in zip(entry.matches, values, FULL, strict=True):
        if match is None:
            continue
        mask = full if match.mask is None else match.mask
        if match.prefix_length is not None:
            mask = full ^ full >> match.prefix_length
        if match.high is not None:
            if not match.value <= value <= match.high:
                return False
        elif (value ^ match.value) & mask:
            return False
    return True


def rank(entry: TableEntry) -> int:
    length = entry.matches[0].prefix_length if entry.matches[0] else None
    return entry.priority if length is None else length


def near(source: random.Random, entry: TableEntry) -> Values:
    """Values that the entry matches, but for a bit here and there."""
    values = []
    for match, width in zip(entry.matches, WIDTHS, strict=True):
        value = source.getrandbits(width)
        if match is not None and match.high is not None:
            value = source.choice((match.value, match.high, source.randint(match.value, match.high)))
        elif match is not None:
            mask = (1 << width) - 1 if match.mask is None else match.mask
            if match.prefix_length is not None:
                mask = (1 << width) - 1 ^ (1 << width) - 1 >> match.prefix_length
            value = value & ~mask | match.value & mask
        if source.random() < 0.1:
            value ^= 1 << source.randrange(width)
        values.append(value)
    a, b, c = values
    return a, b, c


@pytest.mark.parametrize("kind", KINDS)
def test_large_tables_find_what_a_search_of_all_entries_finds(make: Make, kind: str) -> None:
    first, second, third, draw = KINDS[kind]
    switch = make(
        ingress_declarations=f"""
        action set(bit<9> port) {{ std.egress_spec = port; }}
        table t {{
            key = {{ hdr.h.d: {first}; hdr.h.c: {second}; hdr.h.a: {third}; }}
            actions = {{ set; NoAction; }}
            size = 4096;
        }}""",
        ingress="t.apply();",
    )
    source = random.Random(kind)
    wants_priority = not {"ternary", "range"}.isdisjoint((first, second, third))
    installed: list[TableEntry] = []
    keys = set()
    for number in range(900):
        if installed and source.random() < 0.25:
            gone = installed.pop(source.randrange(len(installed)))
            keys.discard((gone.matches, gone.priority))
            switch.delete(gone)
        entry = TableEntry(
            TABLE,
            draw(source),
            ActionCall(SET, (number % 500 + 1,)),
            source.randrange(1, 50) if wants_priority else 0,
        )
        if first == "lpm":
            value = entry.matches[0]
            assert value is not None
            mask = FULL[0] ^ FULL[0] >> (value.prefix_length or 0)
            value = KeyMatch(value.value & mask, prefix_length=value.prefix_length)
            entry = TableEntry(TABLE, (value, *entry.matches[1:]), entry.action, 0)
        if (entry.matches, entry.priority) in keys:
            continue
        keys.add((entry.matches, entry.priority))
        switch.insert(entry)
        installed.append(entry)
        if number % 2:
            values = near(source, source.choice(installed))
            found = [entry for entry in installed if matches(entry, values)]
            best = max(map(rank, found), default=None)
            allowed = {port_of(entry) for entry in found if rank(entry) == best} or {0}
            d, c, a = values
            (output,) = switch.inject(1, frame(a, 0, c, d))
            assert output.port in allowed
    for entry in installed:
        switch.delete(entry)
    assert list(switch.entries(TABLE)) == []
    assert [output.port for output in switch.inject(1, frame())] == [0]


MALLINFO = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
)  # fmt: skip


class Mallinfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [(name, ctypes.c_size_t) for name in MALLINFO]


def allocated_bytes() -> int:
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo
    info = mallinfo2()
    return int(info.hblkhd + info.uordblks)


def test_an_entry_with_a_short_key_takes_two_cache_lines(make: Make) -> None:
    entries = 1 << 18
    switch = make(
        ingress_declarations=f"""
        action set(bit<9> port) {{ std.egress_spec = port; }}
        table t {{ key = {{ hdr.h.d: exact; }} actions = {{ set; NoAction; }} size = {entries}; }}""",
        ingress="t.apply();",
    )
    before = allocated_bytes()
    for number in range(entries):
        assert switch.handle.call("insert", 0, number.to_bytes(4), None, 0, bytes(12), bytes(2), 0) == number
    assert (allocated_bytes() - before) / entries < 2 * 64 + 32  # and its place in the hash table
