"""A running topology with TRACES and PCAP: what is left can be read by those for whom it is made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import json_format
from opentelemetry.proto.trace.v1 import trace_pb2
from scapy.utils import RawPcapNgReader

from hostlib.protocol import wire
from tests.emulator.traces.formats import as_protobuf_json, check_chrome
from tests.wireshark.dissection import dissect, expected, fields_of

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
OPTIONS = (
    "--requests 40 --hosts 3 --stores 2 --speed 6 --gpu-blocks 4 --dram-blocks 8 --scale 20000 "
    "--modes pool --traces 1 --pcap node2,s1"
)
ETHERNET_TO_UDP = 14 + 20 + 8


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("recorded")
    done = subprocess.run(
        [sys.executable, "-m", "experiments.run", *OPTIONS.split(), "--results", str(directory)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def test_every_request_has_its_spans(results: Path) -> None:
    otlp = json.loads((results / "traces" / "pool.otlp.json").read_text())
    parsed = json_format.ParseDict(as_protobuf_json(otlp), trace_pb2.TracesData())
    spans = [
        (resource.resource.attributes[0].value.string_value, span)
        for resource in parsed.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert {service for service, _ in spans} == {"node1", "node2", "node3", "s1", "store1", "store2"}
    assert sum(span.name == "request" for _, span in spans) == 40
    outcomes = [
        attribute.value.string_value
        for _, span in spans
        for attribute in span.attributes
        if attribute.key == "weir.outcome"
    ]
    assert {"served by its home", "served by a switch", "not found"} <= set(outcomes)
    # Each fragment of a fetched block was seen at the switch, once for all requests that waited for it.
    wanted = {
        span.span_id: attribute.value.int_value
        for _, span in spans
        for attribute in span.attributes
        if span.name == "block" and attribute.key == "weir.fragments"
    }
    parent = {span.span_id: span.parent_span_id for _, span in spans}
    seen = dict.fromkeys(wanted, 0)
    for _, span in spans:
        if span.name == "fragment" and parent[span.parent_span_id] in seen:
            seen[parent[span.parent_span_id]] += 1
        for attribute in span.attributes:
            if attribute.key == "weir.fragments.of_another_request" and span.span_id in seen:
                seen[span.span_id] += attribute.value.int_value
    assert sum(seen.values()) >= 0.95 * sum(wanted.values())
    check_chrome(json.loads((results / "traces" / "pool.perfetto.json").read_text()))


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs Debian's package tshark")
def test_the_dissector_reads_a_real_capture_as_the_codec_does(results: Path) -> None:
    capture = results / "pcap" / "pool.node2.pcapng"
    with RawPcapNgReader(str(capture)) as packets:
        frames = list(packets)
    assert {about.ifname for _, about in frames} == {b"s1-eth2 to node2"}
    port = wire.KV_PORT.to_bytes(2, "big")
    datagrams = [data[ETHERNET_TO_UDP:] for data, _ in frames if data[34:38] == 2 * port]
    decoded = [wire.decode(datagram) for datagram in datagrams]
    found = dissect(capture)
    assert len(found) == len(decoded) > 500
    assert [fields_of(layers) for layers in found] == [expected(message) for message in decoded]
    ops = {message.op for message in decoded}
    assert {wire.OP_GET, wire.OP_VALUE, wire.OP_PUT, wire.OP_PUT_ACK, wire.OP_HELLO, wire.OP_MEMBERS} <= ops


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs Debian's package tshark")
def test_a_switch_s_capture_has_all_of_its_ports(results: Path) -> None:
    capture = results / "pcap" / "pool.s1.pcapng"
    with RawPcapNgReader(str(capture)) as packets:
        names = {about.ifname.decode() for _, about in packets}
    assert {f"s1-eth{n} to {peer}" for n, peer in enumerate(("node1", "node2", "node3"), 1)} <= names
    found = dissect(capture, "-Y", "weir.op == 2")
    assert {layers["weir"]["weir.op"] for layers in found} == {"2"}
