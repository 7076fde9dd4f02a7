"""Tables of Azure and BurstGPT: arrivals and lengths, and no block that two requests share."""

from pathlib import Path

import pytest

from workload.trace import TraceError
from workload.trace_files import load_trace

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,1600,109
"""
AZURE_2024 = AZURE.replace("6805900", "680590+00:00").replace("9951690", "995169+00:00")
BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,230,1317,Conversation log
"""


@pytest.mark.parametrize(
    ("text", "times_s", "blocks"),
    [
        (AZURE, [0.0, 4.314579], [(0,), (1, 2, 3, 4)]),
        (AZURE_2024, [0.0, 4.314579], [(0,), (1, 2, 3, 4)]),
        (BURSTGPT, [0.0, 40.0], [(0,), (1, 2, 3)]),
    ],
)
def test_published_tables(
    text: str, times_s: list[float], blocks: list[tuple[int, ...]], tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    trace = load_trace(path)
    assert [request.arrival_s for request in trace.requests] == pytest.approx(times_s, abs=1e-5)
    assert [request.blocks for request in trace.requests] == blocks
    assert trace.warnings == (f"{path}: no block ids in it: no two requests share a block",)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("then,ChatGPT,4,1,5,x", "Timestamp must be seconds or a time, not 'then'"),
        ("4,ChatGPT,4,1,5,x", "before the line above"),
        ("-4,ChatGPT,4,1,5,x", "must be 0 or more"),
        ("nan,ChatGPT,4,1,5,x", "must be 0 or more"),
        ("50,ChatGPT,0,1,5,x", "Request tokens must be from 1"),
        ("50,ChatGPT,1000000000000000,1,5,x", "Request tokens must be from 1"),
        ("50,ChatGPT,4,1.5,5,x", "Response tokens must be a whole number"),
        ("50", "Request tokens must be a whole number"),
    ],
)
def test_bad_rows_are_named(row: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(BURSTGPT + row + "\n")
    with pytest.raises(TraceError) as error:
        load_trace(path)
    assert str(error.value).startswith(f"{path}:4: ")
    assert reason in str(error.value)


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(AZURE.splitlines()[0])
    with pytest.raises(TraceError, match="no requests in it"):
        load_trace(path)
