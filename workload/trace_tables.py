"""Tables of requests without block ids: Azure's LLM inference traces and BurstGPT, as CSV files.

They have each request's time and numbers of tokens, but not what prompts share. Each request therefore gets
blocks that no other has. Nothing can be reused, which a warning says.

Azure (github.com/Azure/AzurePublicDataset): `TIMESTAMP` (date and time), `ContextTokens`, `GeneratedTokens`.
BurstGPT (github.com/HPMLL/BurstGPT): `Timestamp` (seconds), `Request tokens`, `Response tokens`. Times count
from the first request. Errors name file and line: missing or mistyped values, times that go backwards,
prompts of zero tokens.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from workload.trace import MAX_TIME_S, MAX_TOKENS, Request, Schema, Trace, TraceError

BLOCK_TOKENS = 512
MAX_BLOCKS = 100_000_000


@dataclass(frozen=True)
class _Columns:
    """Names that a publisher gives to the columns that this module reads."""

    name: str
    time: str
    input_tokens: str
    output_tokens: str


PUBLISHED = (
    _Columns("azure", "TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    _Columns("burstgpt", "Timestamp", "Request tokens", "Response tokens"),
)


def is_table(head: str) -> bool:
    """Return whether a file's first line is the header of such a table."""
    return _columns(head) is not None


def parse_table(lines: Iterable[str], name: str) -> Trace:
    """Return the trace of a table; messages call the file `name`. Raises TraceError."""
    rows = csv.DictReader(lines)
    columns = _columns(",".join(rows.fieldnames or ()))
    if columns is None:
        raise TraceError(f"{name}: no columns of Azure's or BurstGPT's traces")
    requests = tuple(_requests(rows, columns, name))
    if not requests:
        raise TraceError(f"{name}: no requests in it")
    warning = f"{name}: no block ids in it: no two requests share a block"
    return Trace(name, Schema(columns.name, BLOCK_TOKENS, 1.0, frozenset()), requests, warnings=(warning,))


def _columns(head: str) -> _Columns | None:
    given = {one.strip().strip('"') for one in head.split(",")}
    return next(
        (
            columns
            for columns in PUBLISHED
            if {columns.time, columns.input_tokens, columns.output_tokens} <= given
        ),
        None,
    )


def _requests(rows: csv.DictReader[str], columns: _Columns, name: str) -> Iterator[Request]:
    begin_s: float | None = None
    last_s, block = 0.0, 0
    try:
        for row in rows:
            where = f"{name}:{rows.line_num}"
            at_s = _seconds(row.get(columns.time), where, columns.time)
            begin_s = at_s if begin_s is None else begin_s
            if not last_s <= at_s - begin_s <= MAX_TIME_S:
                raise TraceError(
                    f"{where}: arrives at {at_s - begin_s:g} s, which is before the line above or too late"
                )
            last_s = at_s - begin_s
            input_tokens = _tokens(row.get(columns.input_tokens), where, columns.input_tokens, 1)
            output_tokens = _tokens(row.get(columns.output_tokens), where, columns.output_tokens, 0)
            end = block + -(-input_tokens // BLOCK_TOKENS)
            if end > MAX_BLOCKS:
                raise TraceError(f"{where}: more than {MAX_BLOCKS:,} blocks so far: use a part of the file")
            yield Request(last_s, input_tokens, output_tokens, tuple(range(block, end)))
            block = end
    except csv.Error as error:
        raise TraceError(f"{name}:{rows.line_num}: {error}") from None


def _seconds(text: str | None, where: str, column: str) -> float:
    """Return seconds as they are, and a date and time as seconds since 1970; raises TraceError."""
    try:
        seconds = float(text or "")
    except ValueError:
        try:
            moment = datetime.fromisoformat((text or "").strip())
        except ValueError:
            raise TraceError(f"{where}: {column} must be seconds or a time, not {text!r:.40}") from None
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not 0 <= seconds < float("inf"):
        raise TraceError(f"{where}: {column} must be 0 or more, not {text!r:.40}")
    return seconds


def _tokens(text: str | None, where: str, column: str, least: int) -> int:
    try:
        tokens = int(text or "")
    except ValueError:
        raise TraceError(f"{where}: {column} must be a whole number, not {text!r:.40}") from None
    if not least <= tokens <= MAX_TOKENS:
        raise TraceError(f"{where}: {column} must be from {least} to {MAX_TOKENS:,}, not {tokens}")
    return tokens
