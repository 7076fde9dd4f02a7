"""The view fits the terminal, says its numbers in digits, and leaves the least busy links out first."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from experiments.live.snapshot import LinkLoad, Snapshot
from experiments.live.view import bar, draw, spark


def links(count: int) -> tuple[LinkLoad, ...]:
    return tuple(LinkLoad("s1", f"node{n}", 1e8, 1e6 * n, 2e6, 1000 * n) for n in range(1, count + 1))


SNAPSHOT = Snapshot(
    t_s=4.5,
    links=links(10),
    blocks={"gpu": 5, "dram": 1, "pool": 3, "remote": 1, "recomputed": 10},
    resident=512,
    served=12_345,
    merged=678,
    admitted=40,
    evicted=2,
    rates={"served": (0.0, 50.0, 100.0), "merged": (3.0,), "digests": ()},
    hottest=({"key": "aabbccdd", "depth": 7, "hits": 321, "switch": "s1"},),
    decisions=(
        {"number": 1, "what": "admitted", "key": "00112233", "depth": 2, "hits": 0, "switch": "s1"},
        {"number": 2, "what": "evicted", "key": "44556677", "depth": 3, "hits": 17, "switch": "s1"},
    ),
    backlog_ms={"store1": 120.0, "store2": 0.0},
)


def drawn(snapshot: Snapshot, columns: int, rows: int) -> list[str]:
    console = Console(file=io.StringIO(), width=columns, height=rows, legacy_windows=False)
    console.print(draw(snapshot, 2048, columns, rows))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("columns", [80, 110, 120])
def test_all_that_is_asked_for_is_there(columns: int) -> None:
    text = "\n".join(drawn(SNAPSHOT, columns, 40))
    for shown in (
        "node10", "10.0  10%", "10 kB",  # load and queue of a link
        "512 of 2,048", "12,345 served, 678 merged", "100/s", "store1 120 ms",
        "GPU memory", "25%", "recomputed", "50%",
        "aabbccdd", "321", "40 in, 2 out", "+ s1 00112233", "- s1 44556677 after 17 hits",
    ):  # fmt: skip
        assert shown in text
    assert "…" not in text


@pytest.mark.parametrize("rows", [24, 40])
def test_a_narrow_terminal_keeps_all_numbers(rows: int) -> None:
    """As large as they get: rates of 100 Mbit/s and more, full links, long queues."""
    busy = tuple(LinkLoad("s1", f"node{n}", 1e8, 1e8, 1e8, 999_000) for n in range(8, 16))
    snapshot = Snapshot(**{name: getattr(SNAPSHOT, name) for name in Snapshot.__slots__} | {"links": busy})
    text = " ".join(drawn(snapshot, 60, rows))
    for shown in (
        "node15", "100.0 100%", "999 kB", "512 of 2,048", "12,345 served, 678 merged", "100/s",
        "store1 120 ms", "GPU memory 25%", "recomputed 50%",
    ):  # fmt: skip
        assert shown in text
    assert "…" not in text


@pytest.mark.parametrize(
    ("columns", "rows"),
    [(60, 20), (60, 40), (80, 20), (80, 24), (80, 40), (120, 20), (120, 30), (120, 50), (200, 60)],
)
@pytest.mark.parametrize("count", [3, 10, 300])
def test_it_fits(columns: int, rows: int, count: int) -> None:
    snapshot = Snapshot(
        **{name: getattr(SNAPSHOT, name) for name in Snapshot.__slots__} | {"links": links(count)}
    )
    lines = drawn(snapshot, columns, rows)
    assert max(map(len, lines)) <= columns
    assert len(lines) <= rows


def test_blocks_come_from_those_who_answer() -> None:
    lending = Snapshot(blocks={"remote": 3, "recomputed": 1}, lends=True)
    assert "lending node 75%" in "\n".join(drawn(lending, 80, 20))


def test_the_busiest_links_stay() -> None:
    text = "\n".join(drawn(Snapshot(links=links(99)), 120, 20))
    assert "node99 " in text
    assert "node3 " not in text
    assert "busiest of 99" in text


def test_nothing_is_shown_without_breaking() -> None:
    assert "no hits yet" in "\n".join(drawn(Snapshot(), 80, 24))


@given(st.floats(-1, 3), st.integers(1, 40))
def test_a_bar_has_its_width(share: float, cells: int) -> None:
    assert len(bar(share, cells)) == cells


@given(st.lists(st.floats(0, 1e9), max_size=30), st.integers(1, 20))
def test_a_spark_line_has_a_bar_for_each_of_the_last(values: list[float], cells: int) -> None:
    assert len(spark(values, cells)) == min(len(values), cells)
