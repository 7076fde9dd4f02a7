"""The table of claims: every row says its condition, its memory and its interval."""

import json
from pathlib import Path

import pytest

from experiments.claims import __main__ as claims
from experiments.claims import ranks
from experiments.claims.cases import CLAIMS, SYSTEMS, WORKS, scenario
from experiments.claims.live import MODES, ROWS, compared, ratios, simulated
from experiments.claims.live import scenario as live_scenario
from experiments.simulate.emulate import Emulator
from simulator.checks import check
from tests.experiments.summaries import assert_described
from tests.workload.test_sessions import call, session
from workload.rank_loads import WAYS


def sessions(folder: Path) -> Path:
    """Two sessions of agents in a folder."""
    (folder / "sessions").mkdir()
    for name in ("a", "b"):
        calls = [call(10.0 * turn, list(range(8 + turn))) for turn in range(15)]
        (folder / "sessions" / f"{name}.json").write_text(json.dumps(session(*calls, id=name)))
    return folder / "sessions"


def test_every_case_can_be_simulated() -> None:
    for work in WORKS.values():
        assert "NVLink" in work.condition
        assert any(word in work.condition for word in ("free routing", "affinity", "nodes", "ranks"))
        for name in SYSTEMS:
            check(scenario(work, name, 20, 1, {}))
    assert {name for pair in CLAIMS for name in pair} <= set(SYSTEMS)


def test_claims_are_written_with_all_that_they_depend_on(tmp_path: Path) -> None:
    chosen = ["--traffic=prefill-decode", "--systems=nothing,merging", "--requests=20", "--seeds=2"]
    assert claims.main([*chosen, "--jobs=1", f"--results={tmp_path}", "-q"]) == 0
    head, _, row = (tmp_path / "claims.md").read_text().splitlines()
    assert head.count("|") == row.count("|")
    assert "1 node writes, 4 others read within 20 ms, no NVLink" in row
    assert "pending table" in row
    assert_described("claims", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    (claim,) = summary["claims"]
    assert claim["ttft_mean_s"]["low"] <= claim["ttft_mean_s"]["ratio"] <= claim["ttft_mean_s"]["high"]
    assert claim["sent_gb"]["ratio"] < 1.0
    assert (tmp_path / "prefill-decode.png").stat().st_size > 1000


def test_recorded_sessions_are_simulated_in_blocks_that_every_system_holds(tmp_path: Path) -> None:
    chosen = [f"--trace={sessions(tmp_path)}", "--hours=0.1", "--traffic=prefill-decode", "--seeds=2"]
    chosen += ["--requests=20", "--jobs=1", f"--results={tmp_path / 'out'}", "-q"]
    assert claims.main([*chosen, "--systems=merging,sram-pool"]) == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert {claim["traffic"] for claim in summary["claims"]} >= {"agents", "agents-affinity"}


def test_blocks_that_a_system_does_not_hold_are_refused_before_anything_is_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [f"--trace={sessions(tmp_path)}", "--block-tokens=2048", f"--results={tmp_path / 'out'}"]
    assert claims.main(chosen) == 2
    assert "the pool does not hold one" in capsys.readouterr().err


def test_every_way_and_place_of_ranks_is_in_the_table() -> None:
    head, _, *rows = ranks.table(1000)
    assert all(way in head for way in WAYS)
    assert len(rows) == len(ranks.PLACES)
    assert all(row.count("|") == head.count("|") for row in rows)


@pytest.mark.parametrize("row", ROWS)
def test_rows_that_are_played_can_be_simulated_as_the_emulator_carries_them_out(row: str) -> None:
    emulator = Emulator(live_scenario(row, 1).changed(workload={"requests": 20}), 20_000.0)
    assert all(simulated(emulator, mode)["mean_s"] > 0 for mode in MODES)


def test_a_scale_at_which_a_block_is_one_fragment_can_be_simulated() -> None:
    emulator = Emulator(live_scenario("prefill-decode", 1).changed(workload={"requests": 10}), 200_000.0)
    assert emulator.matched(pool=True).network.fragments == 1
    assert simulated(emulator, "merging")["mean_s"] > 0


def test_ratios_are_of_the_same_seeds() -> None:
    records = [
        {
            "row": "a",
            "mode": mode,
            "seed": seed,
            "played": {"mean_s": seconds},
            "simulated": {"mean_s": seconds * (1.1 if mode == "merging" else 1.0)},
        }
        for seed, mode, seconds in (
            (1, "no_pool", 2.0),
            (1, "merging", 1.0),
            (2, "merging", 1.5),
            (2, "no_pool", 3.0),
            (3, "no_pool", 3.0),
        )
    ]
    assert ratios(records, "a", "played") == {1: 0.5, 2: 0.5}
    live, ours, apart = compared(records, "a")
    assert (live.mean, ours.mean, apart.mean) == pytest.approx((0.5, 0.55, -0.05))
