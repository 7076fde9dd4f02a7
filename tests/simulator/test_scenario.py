"""Scenario files: what is refused, where, and why."""

from pathlib import Path

import pytest

from commands.toml_file import Document, ScenarioError
from scenario import Scenario, load_scenario
from scenario.reading import decode_scenario
from simulator.checks import check, cost_model


def refusal(text: str) -> str:
    try:
        document = Document(text, "bad.toml")
        check(decode_scenario(document), document)
    except ScenarioError as error:
        return str(error)
    pytest.fail("nothing was wrong with it")


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        (
            "[nodes]\n\ncont = 3\n",
            "bad.toml:3: nodes.cont",
            "no such field (did you mean count?); there are count",
        ),
        ("[nodes]\ncount = 0\n", "bad.toml:2: nodes.count", "from 1 to 256, not 0"),
        ("[nodes]\ncount = 1.5\n", "bad.toml:2: nodes.count", "a whole number"),
        ("[nodes]\ncount = true\n", "bad.toml:2: nodes.count", "a whole number"),
        ("nodes = 3\n", "bad.toml:1: nodes", "must be a table"),
        ("[nodez]\n", "bad.toml:1: nodez", "no such table"),
        ("name = 3\n", "bad.toml:1: name", "must be text"),
        ("[pool]\nmerging = 1\n", "bad.toml:2: pool.merging", "true or false"),
        ("[pool]\n# a comment\npolicy = 'none'\n", "bad.toml:3: pool.policy", "choose one of"),
        ("[pool\n", "bad.toml:1", "not TOML"),
        ("[storage]\nkind = 'stores'\ncount = 0\n", "bad.toml:3: storage.count", "no storage"),
        ("[network]\nlink_gbit_s = 0\n", "bad.toml:2: network.link_gbit_s", "must be above 0"),
        ("[pool]\nsize_gb = 0.064\n", "bad.toml:2: pool.size_gb", "does not hold one"),
        ("[nodes]\ncount = 64\n", "bad.toml", "61 nodes (HOSTS), not 64"),
        ("[model]\nlayers = 3\n", "bad.toml:1: model", "also needs hidden"),
        ("[storage]\nkind = 'direct'\n[direct]\nsize_gb = 0.01\n", "bad.toml:4: direct.size_gb", "hold one"),
        ("[nodes]\ngpu_gb = 0\n", "bad.toml:2: nodes.gpu_gb", "does not hold one"),
        (
            "[nodes]\ndecode = 'batched'\nrunning_gb = 0\n",
            "bad.toml:3: nodes.running_gb",
            "no request would ever start",
        ),
        (
            "[storage]\nkind = 'peers'\n[machine]\ncores = 2\n",
            "bad.toml:3: machine",
            "lend past switches, only",
        ),
        (
            "[nodes]\ndecode = 'budget'\ngate = 'never'\n[machine]\ncores = 2\n",
            "bad.toml:4: machine",
            '"apart" and "batched" only',
        ),
        ("[decoders]\ncount = 2\n[machine]\ncores = 2\n", "bad.toml:3: machine", "decoders.count = 0"),
    ],
)
def test_bad_scenarios_are_refused_with_place_and_reason(text: str, place: str, reason: str) -> None:
    message = refusal(text)
    assert message.startswith(place)
    assert reason in message


def test_a_model_of_its_own() -> None:
    text = (
        "[model]\nlayers = 61\nhidden = 7168\nkv_values_per_layer = 576\nkv_dtype_bytes = 2\n"
        "weights = 37e9\nblock_tokens = 64\n"
    )
    model = cost_model(decode_scenario(Document(text, "own.toml")), 64)
    assert model.block_bytes == 61 * 576 * 2 * 64  # DeepSeek-V3's latent of 512 and 64 rope dimensions


def test_an_empty_file_is_the_default_scenario() -> None:
    assert decode_scenario(Document("", "empty.toml")) == Scenario()


def test_a_base_is_taken_over_and_its_own_errors_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text("[nodes]\ncount = 4\ndram_gb = 7\n")
    (tmp_path / "one.toml").write_text(
        'base = "base.toml"\n[nodes]\ncount = 5\n[workload]\ntrace = "t.jsonl"\n'
    )
    scenario, _ = load_scenario(tmp_path / "one.toml")
    assert (scenario.nodes.count, scenario.nodes.dram_gb) == (5, 7.0)
    assert scenario.workload.trace == tmp_path / "t.jsonl"
    (tmp_path / "base.toml").write_text("[nodes]\n\ncount = -4\n")
    with pytest.raises(ScenarioError, match=r"base\.toml:3: nodes\.count"):
        load_scenario(tmp_path / "one.toml")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="No such file"):
        load_scenario(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="UTF-8"):
        load_scenario(tmp_path / "binary.toml")
    (tmp_path / "trace.jsonl").write_text('{"timestamp": 0}\n')
    with pytest.raises(
        ScenarioError, match=r"trace\.jsonl: a scenario is a TOML file; a trace is what TRACE names"
    ):
        load_scenario(tmp_path / "trace.jsonl")
