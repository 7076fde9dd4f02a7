"""Documents: what is run of them, what is refused, and that the playground opens with the pool's program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.v1model.playground.pool_example import EXAMPLE, example
from v1model.playground.document import FORMAT, MAX_PACKETS, DocumentError, decode
from v1model.playground.run import run, run_document

PROGRAM = """#include <core.p4>
#include <v1model.p4>
header k_t { bit<8> key; bit<8> value; }
struct headers_t { k_t k; }
struct meta_t { }
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.k); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<8>>(4) last;
    action to(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
    table route { key = { h.k.key: exact; } actions = { to; drop; } default_action = drop(); }
    apply { route.apply(); last.write(1, h.k.key); }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { h.k.value = 9; } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.k); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def document(program: str = PROGRAM, **others: Any) -> dict[str, Any]:
    packets = [{"text": "0100", "port": 1, "time_us": 5}, {"text": "0200", "port": 1, "time_us": 9}]
    commands = ["table_add I.route I.to 1 => 7"]
    return {"format": FORMAT, "program": program, "commands": commands, "packets": packets, **others}


CHOICES = PROGRAM.replace(
    "table route { key = { h.k.key: exact; } actions = { to; drop; } default_action = drop(); }",
    """action_selector(HashAlgorithm.crc16, 8, 8) paths;
    table route { key = { h.k.key: exact; h.k.value: selector; } actions = { to; }
        implementation = paths; }""",
)
CHOOSING = [
    "act_prof_create_member I.paths I.to 7",
    "act_prof_create_member I.paths I.to 8",
    "act_prof_create_group I.paths",
    "act_prof_add_member_to_group I.paths 0 0",
    "act_prof_add_member_to_group I.paths 1 0",
    "table_indirect_add_with_group I.route 1 => 0",
]


def test_what_each_member_of_a_group_would_have_done() -> None:
    said = run_document(decode(document(CHOICES, commands=CHOOSING)))
    assert [answer for answer in said["commands"] if "error" in answer] == []
    first, second = said["packets"]
    sent = [[e["values"]["port"] for e in one["trace"] if e["kind"] == "sent"] for one in first["outcomes"]]
    assert sent == [[7], [8]]
    assert first["outcomes"][1]["choices"] == "I.paths: group 1 chooses member 2"
    assert first["state"] == {"I.last": {"1": 1}}
    assert second["outcomes"] == []


def test_packets_with_their_ways_and_what_is_left_of_them() -> None:
    said = run_document(decode(document()))
    assert said["problems"] == []
    assert [answer["index"] for answer in said["commands"] if "error" not in answer] == [0]
    first, second = said["packets"]
    assert first["outputs"] == [{"port": 7, "frame": "0109", "time_us": 5}]
    assert [event["kind"] for event in first["trace"]][:3] == ["received", "state", "extract"]
    (table,) = (event for event in first["trace"] if event["kind"] == "table")
    assert (table["name"], table["values"]["hit"], table["values"]["arguments"]) == (
        "I.route",
        True,
        {"port": 7},
    )
    assert (first["state"], second["state"]) == ({"I.last": {"1": 1}}, {"I.last": {"1": 2}})
    assert second["outputs"] == []
    assert second["trace"][-1]["kind"] == "dropped"


def test_errors_and_warnings_have_their_places() -> None:
    said = run_document(decode(document(PROGRAM.replace("h.k.value = 9", "h.k.value = nine"))))
    (problem,) = said["problems"]
    assert (problem["severity"], problem["line"], problem["column"]) == ("error", 17, 97)
    assert said["packets"] == []
    said = run_document(decode(document(PROGRAM.replace("h.k.value = 9", "h.k.value = 300"))))
    assert [problem["severity"] for problem in said["problems"]] == ["warning"]
    assert len(said["packets"]) == 2


def test_commands_and_packets_that_fail_keep_no_others() -> None:
    commands = ["table_add I.nothing I.to 1 => 7", "nonsense", "table_add I.route I.to 1 => 7"]
    packets = [{"text": "IP(", "port": 1}, {"text": "0100", "port": 1}]
    said = run_document(decode(document(commands=commands, packets=packets)))
    assert ["error" in answer for answer in said["commands"]] == [True, True, False]
    assert "error" in said["packets"][0]
    assert said["packets"][1]["outputs"][0]["port"] == 7


@pytest.mark.parametrize(
    "include",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        "#inc\\\nlude </etc/passwd>",
        "/* */ #include </etc/passwd>",
        "# /* */ include </etc/passwd>",
        "%:include </etc/passwd>",
        '#define F "/etc/passwd"\n#include F',
        "#include_next <core.p4>",
        '# 1 "/etc/passwd"',
    ],
)
def test_no_other_file_is_opened(include: str) -> None:
    said = run_document(decode(document(f"{include}\n{PROGRAM}")))
    (problem,) = said["problems"]
    assert "only <core.p4> and <v1model.p4> can be included" in problem["message"]


def test_comments_behind_a_hash_take_no_time() -> None:
    """They were put together in each way that there is."""
    said = run_document(decode(document(f"#{'/**/' * 60}x\n{PROGRAM}")))
    assert not said["problems"]


@pytest.mark.parametrize(
    "given",
    [
        [],
        {},
        {**document(), "program": 1},
        document(program="x" * (1 << 20) + "x"),
        document(packets=[{"text": "00"}] * (MAX_PACKETS + 1)),
        document(packets=[{"text": "00", "port": 511}]),
        document(packets=[{"text": "00", "port": True}]),
        document(packets=[{"text": "00", "time_us": -1}]),
        document(packets=[1]),
        document(commands="x"),
        document(commands=[1]),
    ],
)
def test_what_is_no_document(given: Any) -> None:
    with pytest.raises(DocumentError):
        decode(given)


def test_a_process_of_its_own_says_what_it_says_here() -> None:
    assert json.loads(run(json.dumps(document()).encode())) == run_document(decode(document()))
    assert json.loads(run(b"nonsense"))["failure"]


@pytest.mark.slow
def test_the_pool_s_program_and_a_walk_of_packets() -> None:
    """page/example.json; python -m tests.v1model.playground.pool_example writes it anew."""
    assert json.loads(EXAMPLE.read_text()) == example()
    said = run_document(decode(json.loads(EXAMPLE.read_text())))
    assert said["problems"] == []
    assert [answer for answer in said["commands"] if "error" in answer] == []
    ports = [[output["port"] for output in packet["outputs"]] for packet in said["packets"]]
    assert ports == [[9], [], [1, 2], [3]]


def test_what_is_vendored_is_named_with_its_licence() -> None:
    page = Path(EXAMPLE).parent
    licence = (page / "editor.LICENSE.txt").read_text()
    assert "codemirror" in licence
    assert "Permission is hereby granted" in licence
