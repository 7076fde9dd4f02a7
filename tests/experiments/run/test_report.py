"""The report: overloaded runs don't count, the summary has what others read."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from emulator.machine import CpuUse, Strain, advice
from emulator.repeats import Repeats
from emulator.result import (
    BlockSources,
    Evictions,
    IndexResult,
    Percentiles,
    RunResult,
    TargetResult,
    TenantResult,
    percentiles,
)
from emulator.summary import write_summary
from experiments.run.report import print_report
from hostlib.model.blending import BlendTotals

RESULT = RunResult(
    requests=10, completed=10, failed=0, corrupt=0, blocks=BlockSources(1, 2, 3, 4, 5),
    storage_egress_bytes=2000, switch_served_bytes=602, get_ms=Percentiles(1.0, 2.0),
    ttft_ms=Percentiles(100.0, 200.0), merged=7, admitted=1, evicted=0, p4runtime_writes=5, digests=3,
    wall_s=1.5, overloaded=False,
)  # fmt: skip


def printed(**runs: RunResult) -> str:
    return printed_repeats({name: (run,) for name, run in runs.items()})


def printed_repeats(runs: dict[str, tuple[RunResult, ...]]) -> str:
    console = Console(record=True, width=200, quiet=True)
    with console.capture() as capture:
        console.quiet = False
        print_report(console, "title", Repeats(runs), "What helps: less.")
    return capture.get()


def test_the_table_says_what_the_pool_saved() -> None:
    text = printed(no_pool=RESULT, pool=replace(RESULT, storage_egress_bytes=500))
    assert "75% fewer bytes left the storage nodes" in text
    assert "pool in the switch" in text
    assert "3 (20.0%)" in text


def test_where_nodes_lend_the_table_speaks_of_them_and_of_their_index() -> None:
    lent = replace(RESULT, index=IndexResult(questions=5, asked=1234, located=56, promised=7))
    text = printed(no_pool=lent, pool=lent)
    assert "storage node" not in text
    assert "0% fewer bytes left the lending nodes" in text
    assert "1,234 / 56" in text
    assert "index" not in printed(no_pool=RESULT, pool=RESULT)


def test_a_table_has_each_tenants_share() -> None:
    mine = TenantResult(1, 4, 60, BlockSources(1, 2, 30, 40, 27), Percentiles(11.0, 22.0), 512)
    text = printed(no_pool=RESULT, pool=replace(RESULT, tenants=(mine,)))
    (row,) = [line for line in text.splitlines() if "30 (30.0%)" in line]
    assert "11 / 22" in row
    assert "512" in row
    assert "By tenant" not in printed(no_pool=RESULT, pool=RESULT)


def test_a_table_has_the_levels_of_a_stream_and_how_many_met_their_time() -> None:
    target = TargetResult(500.0, 8, (100.0, 600.0))
    streamed = replace(RESULT, levels={"1": 6, "5": 2, "text": 2}, mean_level=2.0, target=target)
    text = printed(no_pool=RESULT, pool=streamed)
    assert "1 60%, 5 20%, text 20%" in text
    assert "8 (80%)" in text
    assert "TTFT_SLO" not in printed(no_pool=RESULT, pool=RESULT)
    assert "streamed" not in printed(no_pool=RESULT, pool=RESULT)


def test_the_table_says_what_was_blended() -> None:
    totals = BlendTotals(requests=9, chunks=1234, alone=56, tokens=78_901, ops_saved=0.625)
    text = printed(no_pool=RESULT, pool=replace(RESULT, blended=totals))
    assert "1,234; 56" in text
    assert "78,901" in text
    assert "62.5%" in text
    assert "blended" not in printed(no_pool=RESULT, pool=RESULT)


def test_the_table_says_what_became_of_the_evicted() -> None:
    evictions = Evictions(dropped=1, stubs=2, held_elsewhere=3, reclaimed=4, not_whole=5, reclaims_failed=6)
    with_pool = replace(RESULT, evicted=21, evictions=replace(evictions, reclaim_bytes=692))
    text = printed(no_pool=RESULT, pool=with_pool)
    assert "3 / 4" in text
    assert "2 / 5 / 7" in text
    assert "692 B" in text


def test_three_modes_fit_a_terminal_of_80_columns_without_broken_rows() -> None:
    usual = replace(
        RESULT, completed=240, blocks=BlockSources(1078, 326, 512, 856, 1646), rejected=1, compared=1,
        get_ms=Percentiles(36.4, 143.6), ttft_ms=Percentiles(98.0, 2506.0), ssd_reads=1, gate_limited=1,
        evicted=9, evictions=Evictions(*[45] * 8), storage_egress_bytes=10**9, pool_held=9876,
        decoded=1368, decode_ms=Percentiles(36.4, 1143.6),
    )  # fmt: skip
    console = Console(width=80, file=StringIO())
    runs = dict.fromkeys(("no_pool", "merging", "pool"), (usual,))
    print_report(console, "title", Repeats(runs), "What helps: less.")
    assert isinstance(console.file, StringIO)
    rows = [line for line in console.file.getvalue().splitlines() if line.startswith("│")]
    assert {len(row) for row in rows} == {80}
    assert all(row[1:30].strip() for row in rows)
    sections = {"Requests": 5, "Where blocks came from": 8, "Network": 4, "Time": 4, "What the pool cost": 8}
    assert len(rows) == sum(sections.values()) + len(("The machine", "CPU", "switch", "kept up"))


def test_rows_that_say_nothing_are_left_out() -> None:
    labels = (
        "refused by the conductor", "compared with model's KV", "SSD waits", "gate refused", "held at",
        "worthless", "bytes for that", "decode, p50",
    )  # fmt: skip
    text = printed(no_pool=RESULT, pool=RESULT)
    assert not [label for label in labels if label in text]
    used = replace(RESULT, rejected=1, compared=1, ssd_reads=1, gate_limited=1, evicted=1, decoded=1)
    text = printed(no_pool=RESULT, pool=used)
    assert [label for label in labels if label in text] == list(labels)


def test_figures_of_an_overloaded_run_are_said_not_to_count() -> None:
    overloaded = replace(RESULT, overloaded=True, complaints=["CPU: over 90% busy"])
    text = printed(no_pool=RESULT, pool=overloaded)
    assert "these figures don't count" in text
    assert "pool: CPU: over 90% busy" in text
    assert "What helps: less." in text
    assert text.index("fewer bytes") < text.index("did not keep up")


@pytest.mark.parametrize(
    ("scale_given", "smallest", "said"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_advice_never_names_what_is_so_already(scale_given: bool, smallest: bool, said: bool) -> None:
    assert ("SCALE" in advice(scale_given, smallest)) == said
    assert "end other programs" in advice(scale_given, smallest)


def test_the_summary_has_the_documented_fields(tmp_path: Path) -> None:
    write_summary(tmp_path / "a" / "summary.json", {"engine": "embedded"}, Repeats({"pool": (RESULT,)}))
    written = json.loads((tmp_path / "a" / "summary.json").read_text())
    assert written["engine"] == "embedded"
    run = written["runs"]["pool"]
    assert set(run) >= {
        "requests", "completed", "failed", "corrupt", "blocks", "storage_egress_bytes", "switch_served_bytes",
        "get_ms", "ttft_ms", "merged", "admitted", "evicted", "p4runtime_writes", "digests", "wall_s",
        "overloaded",
    }  # fmt: skip
    assert set(run["blocks"]) == {"gpu", "dram", "pool", "remote", "recomputed"}
    assert set(run["get_ms"]) == set(run["ttft_ms"]) == {"p50", "p99"}


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentiles([3.0, 1.0, 2.0]) == Percentiles(2.0, 3.0)
    assert percentiles([]) == Percentiles(0.0, 0.0)


QUIET = Strain(CpuUse(0.5, 0.0), {"node1": 3.0}, {"by the socket of node1": 0})


@pytest.mark.parametrize(
    ("strain", "complaint"),
    [
        (
            replace(QUIET, cpu=CpuUse(0.95, 0.5), late_p99_ms={"node1": 12.0}),
            r"CPU: over 90% busy in 50% of the time",
        ),
        (
            replace(QUIET, cpu=CpuUse(0.5, 0.0, 0.2)),
            r"switch: a thread of it ran or waited for a CPU over 90% of the time in 20% of the samples",
        ),
        (replace(QUIET, late_p99_ms={"node1": 3.0, "node2": 80.0}), r"node2 by 80 ms"),
        (replace(QUIET, dropped={"by the socket of node1": 4}), r"4 packets by the socket of node1"),
        (replace(QUIET, control=0.08), "controller: it took 8.0% of the CPU"),
    ],
)
def test_a_machine_that_does_not_keep_up_is_noticed(strain: Strain, complaint: str) -> None:
    assert QUIET.complaints() == []
    (said,) = strain.complaints()
    assert complaint in said


def test_three_modes_say_what_merging_alone_saves() -> None:
    text = printed(
        no_pool=RESULT,
        merging=replace(RESULT, storage_egress_bytes=1000),
        pool=replace(RESULT, storage_egress_bytes=500),
    )
    assert "by merging alone 50% fewer" in text
    for title in ("no pool", "merging", "pool"):
        assert title in text.split("Requests")[0]


def test_several_plays_have_intervals_and_differences_in_pairs(tmp_path: Path) -> None:
    def plays(*get_p50: float) -> tuple[RunResult, ...]:
        return tuple(replace(RESULT, get_ms=Percentiles(ms, 50.0)) for ms in get_p50)

    runs = {"no_pool": plays(10.0, 20.0, 30.0), "pool": plays(8.0, 18.0, 28.0)}
    text = printed_repeats(runs)
    assert "20.0 ± 24.8" in text  # t(2) = 4.303, standard deviation 10
    assert "-2.0 ± 0.0" in text
    write_summary(tmp_path / "summary.json", {}, Repeats(runs))
    written = json.loads((tmp_path / "summary.json").read_text())
    assert written["runs"]["no_pool"]["get_ms"]["p50"] == 20.0
    assert len(written["repeats"]["pool"]) == 3
    assert written["intervals"]["pool"]["get_p50_ms"]["mean"] == 18.0


def test_one_overloaded_play_of_several_spoils_all() -> None:
    overloaded = replace(RESULT, overloaded=True, complaints=["drops: 4 packets"])
    text = printed_repeats({"no_pool": (RESULT, RESULT), "pool": (RESULT, overloaded)})
    assert "these figures don't count" in text
    assert "pool: drops: 4 packets" in text


def test_a_busy_machine_whose_work_gives_way_to_the_run_keeps_up() -> None:
    assert replace(QUIET, cpu=CpuUse(1.0, 1.0)).complaints() == []


def test_medians_that_the_control_plane_alone_has_moved_do_not_count() -> None:
    def plays(*get_ms: float) -> tuple[RunResult, ...]:
        return tuple(replace(RESULT, get_ms=Percentiles(ms, 2 * ms)) for ms in get_ms)

    quiet = plays(10.0, 10.1, 10.0)
    moved = printed_repeats({"no_pool": quiet, "phantom": plays(11.0, 11.1, 11.0), "pool": quiet})
    assert "these figures don't count" in moved
    assert "control plane: GET p50" in moved
    alike = printed_repeats({"no_pool": quiet, "phantom": plays(10.0, 10.1, 10.0), "pool": quiet})
    assert "don't count" not in alike
    assert "GET p50 with a pool that is never hit: +0.0%" in alike
    assert "undecided" in printed(no_pool=quiet[0], phantom=quiet[0], pool=quiet[0])
