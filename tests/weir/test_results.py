"""Results load in one line, into tables."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import weir.results
from hostlib.model import waits

REQUEST = {
    "node": "node1", "arrival_s": 0.5, "fetch_s": 0.1, "queue_s": 0.0, "prefill_s": 0.2, "ttft_s": None,
    "end_s": 2.0, "waits_s": {"queued": 0.03, "home 10.0.0.9": 0.07},
    "sources": {"gpu": 1, "dram": 0, "pool": 3, "remote": 0, "recomputed": 2},
}  # fmt: skip
SAMPLE = {
    "t_s": 0.5, "link_bytes": {"s1-node1": [10, 20]}, "blocks": {}, "completed": 1, "resident": 2, "hits": 3,
    "admitted": 4, "evicted": 5, "digests": 6, "outcomes": {},
}  # fmt: skip


def write(folder: Path, **files: object) -> None:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def test_a_run_loads_into_tables(tmp_path: Path) -> None:
    run = {"result": {"merged": 7}, "requests": [REQUEST], "timeline": [SAMPLE, SAMPLE], "get_ms": [1.0, 2.5]}
    write(tmp_path, summary={"seed": 1}, details={"runs": {"pool": run}})
    loaded = weir.results.load(tmp_path)
    play = loaded.plays["pool"]
    assert loaded.summary["seed"] == 1
    assert play.result["merged"] == 7
    assert play.requests["pool"].tolist() == [3]
    assert np.isnan(play.requests["ttft_s"][0])
    assert play.requests["wait_home_s"].tolist() == [0.07]
    assert play.requests["wait_pool_s"].tolist() == [0.0]
    assert play.timeline["s1-node1 from"].tolist() == [20, 20]
    assert play.get_ms.mean() == 1.75


def test_waits_are_those_of_the_hosts() -> None:
    said = (waits.QUEUED, waits.PROBING, waits.MERGED, waits.POOL, waits.HOME)
    assert said == weir.results._WAITS


def test_an_experiment_without_details_has_its_summary(tmp_path: Path) -> None:
    write(tmp_path, summary={"results": [1]})
    loaded = weir.results.load(str(tmp_path))
    assert loaded.summary == {"results": [1]}
    assert not loaded.plays


def test_a_play_without_requests_has_empty_tables(tmp_path: Path) -> None:
    run: dict[str, object] = {"result": {}, "requests": [], "timeline": [], "get_ms": []}
    write(tmp_path, summary={}, details={"runs": {"pool": run}})
    play = weir.results.load(tmp_path).plays["pool"]
    assert len(play.requests) == len(play.timeline) == len(play.get_ms) == 0


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "has the experiment been run"),
        ({"summary": [1]}, "expected a JSON object, found list"),
        ({"summary": {}, "details": {}}, r"details\.json: it has no key 'runs'"),
        ({"summary": {}, "details": {"runs": {"pool": {"requests": [{"node": 1, "sources": {}}]}}}}, "'gpu'"),
        ({"summary": {}, "details": {"runs": {"pool": []}}}, "no version of make run wrote it so"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, files: dict[str, object], said: str) -> None:
    write(tmp_path, **files)
    with pytest.raises(weir.results.ResultsError, match=said):
        weir.results.load(tmp_path)


OLD = Path(__file__).parent / "old"


def test_a_run_of_an_earlier_version_is_read() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = weir.results.load(OLD)
    assert loaded.summary["revision"] == "359e1636caae"
    assert "value_bytes" not in loaded.summary
    pool = loaded.plays["pool"]
    assert (len(pool.requests), len(pool.timeline), pool.missing) == (4, 3, ())
    assert pool.requests["recomputed"][0] == 14
    assert not np.isnan(pool.requests["wait_probing_s"]).any()


def test_what_an_earlier_version_did_not_write_is_named(tmp_path: Path) -> None:
    """The first version with details had no `waits_s`, and others will have lacked something else."""
    details = json.loads((OLD / "details.json").read_text())
    for run in details["runs"].values():
        for record in run["requests"]:
            del record["waits_s"], record["queue_s"]
        for sample in run["timeline"]:
            del sample["digests"]
    write(tmp_path, summary={}, details=details)
    named = "without requests.queue_s, requests.waits_s, timeline.digests"
    with pytest.warns(weir.results.ResultsWarning, match=named):
        pool = weir.results.load(tmp_path).plays["pool"]
    assert pool.missing == ("requests.queue_s", "requests.waits_s", "timeline.digests")
    assert np.isnan(pool.requests["wait_probing_s"]).all()
    assert np.isnan(pool.requests["queue_s"]).all()
    assert pool.timeline["digests"].tolist() == [-1, -1, -1]
    assert not np.isnan(pool.requests["fetch_s"]).any()


def test_a_play_without_a_list_names_it(tmp_path: Path) -> None:
    write(tmp_path, summary={}, details={"runs": {"pool": {"result": {}, "requests": []}}})
    with pytest.warns(weir.results.ResultsWarning, match="without get_ms, timeline"):
        play = weir.results.load(tmp_path).plays["pool"]
    assert len(play.timeline) == len(play.get_ms) == 0


def test_a_torn_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"a":')
    with pytest.raises(weir.results.ResultsError, match=r"summary\.json: not JSON"):
        weir.results.load(tmp_path)
