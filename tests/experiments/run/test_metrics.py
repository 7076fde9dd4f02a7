"""Metrics: the table in docs/metrics.md, the dashboard, and what the exporter serves."""

import json
import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as PrometheusMetric
from prometheus_client.parser import text_string_to_metric_families

from emulator.metrics import Exporter, ExporterError, http_server
from emulator.metrics.catalogue import COUNTER, HISTOGRAM, METRICS, NODE, STORE, Metric
from emulator.metrics.exporter import families
from emulator.metrics.sources import Reports
from hostlib.process.observe import Histogram

ROOT = Path(__file__).parents[3]
ABOUT = dict.fromkeys(("engine", "policy", "revision", "seed", "sigma", "topology"), "x")


def test_the_table_in_the_docs_is_that_of_the_code() -> None:
    rows = [
        line.strip("| ").split(" | ")
        for line in (ROOT / "docs" / "metrics.md").read_text().splitlines()
        if line.startswith("| `weir_")
    ]
    documented = [tuple(cell.strip() for cell in row) for row in rows]
    assert documented == [
        (f"`{metric.name}`", metric.kind, ", ".join(metric.labels), metric.help) for metric in METRICS
    ]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_prometheus_s_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"weir_[a-z0-9_]+", metric.name)
    assert (metric.kind == COUNTER) == metric.name.endswith("_total")
    assert len(set(metric.labels)) == len(metric.labels)
    if metric.kind == HISTOGRAM or "time" in metric.help.split():
        assert "_seconds" in metric.name


def test_the_dashboard_names_only_metrics_and_labels_that_there_are() -> None:
    dashboard = json.loads((ROOT / "dashboards" / "weir.json").read_text())
    known = {metric.name: set(metric.labels) for metric in METRICS}
    known |= {f"{m.name}_bucket": {*m.labels, "le"} for m in METRICS if m.kind == HISTOGRAM}
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(targets) > 20
    for target in targets:
        used = re.findall(r"weir_\w+", target["expr"])
        assert used
        assert set(used) <= set(known), target
        labels = {label for name in used for label in known[name]}
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels, target


def test_reports_become_samples_and_what_is_not_said_is_left_out() -> None:
    times = Histogram()
    times.observe(0.03)
    reports: Reports = {
        NODE: {("node1",): {"blocks": {"pool": 3, "gpu": 1}, "ttft": times.report(), "gate": None}},
        STORE: {("store1",): {"backlog_ms": 250, "storage": {"gets": 7}}},
    }

    class Collector:
        def collect(self) -> Iterator[PrometheusMetric]:
            return families(reports)

    registry = CollectorRegistry()
    registry.register(Collector())
    parsed = text_string_to_metric_families(generate_latest(registry).decode())
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for one in parsed
        for sample in one.samples
    }
    assert samples["weir_node_blocks_total", ("node", "node1"), ("source", "pool")] == 3
    assert samples["weir_store_backlog_seconds", ("store", "store1")] == 0.25
    assert samples["weir_store_messages_total", ("op", "get"), ("store", "store1")] == 7
    bucket = "weir_node_first_token_seconds_bucket"
    assert samples[bucket, ("le", "0.02"), ("node", "node1")] == 0
    assert samples[bucket, ("le", "0.05"), ("node", "node1")] == 1
    assert samples[bucket, ("le", "+Inf"), ("node", "node1")] == 1
    assert not [name for name, *_ in samples if "gate" in name]


def test_an_exporter_serves_nothing_while_nothing_runs_and_says_when_its_port_is_taken() -> None:
    with Exporter(0, ABOUT) as exporter:
        with closing(urllib.request.urlopen(exporter.url, timeout=30)) as answer:
            assert answer.read() == b""
        port = int(exporter.url.split(":")[2].split("/")[0])
        with pytest.raises(ExporterError, match=f"METRICS={port}: .*choose another"):
            Exporter(port, ABOUT)


def test_connections_that_say_nothing_keep_neither_threads_nor_the_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another user of this machine took a thread of the run with each."""
    monkeypatch.setattr(http_server.Server, "max_connections", 3)
    monkeypatch.setattr(http_server.Handler, "timeout", 0.2)
    with Exporter(0, ABOUT) as exporter, ExitStack() as silent:
        address = ("127.0.0.1", int(exporter.url.split(":")[2].partition("/")[0]))
        for _ in range(3):
            silent.enter_context(socket.create_connection(address, timeout=10))
        with socket.create_connection(address, timeout=10) as fourth:
            assert fourth.recv(1) == b""
        until_s = time.monotonic() + 30
        while not _is_served(exporter.url):
            assert time.monotonic() < until_s


def _is_served(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
