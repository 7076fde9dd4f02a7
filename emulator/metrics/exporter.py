"""HTTP exporter of the metrics at http://127.0.0.1:PORT/metrics; each scrape asks the processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from wsgiref.simple_server import make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from commands.errors import ExperimentError
from emulator.metrics import catalogue
from emulator.metrics.http_server import Handler, Server
from emulator.metrics.sources import Reports, Sources
from emulator.running import Running

ADDRESS = "127.0.0.1"

_Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class ExporterError(ExperimentError):
    """The port is not available."""


class Exporter(Collector):
    """Server of the metrics of what `watching` names. Use it as a context manager: it serves inside."""

    def __init__(self, port: int, about: Mapping[str, str]) -> None:
        """Start to serve; raises ExporterError. Port 0 is any free one.

        `about` has the labels of weir_run_info except the mode.
        """
        self._about = about
        self._lock = threading.Lock()
        self._sources: Sources | None = None
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server = make_server(ADDRESS, port, make_wsgi_app(registry), Server, Handler)
        except OSError as error:
            raise ExporterError(
                f"METRICS={port}: {ADDRESS}:{port} can't be had ({error.strerror}); choose another port"
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def __enter__(self) -> Exporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Return the URL that Prometheus scrapes."""
        return f"http://{ADDRESS}:{self._server.server_port}/metrics"

    @contextmanager
    def watching(self, running: Running) -> Iterator[None]:
        """Serve the metrics of a running network until the block ends."""
        sources = Sources(running, self._about)
        with self._lock:
            self._sources = sources
        try:
            yield
        finally:
            with self._lock:
                self._sources = None
            sources.close()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics for prometheus_client; none while no network runs."""
        with self._lock:
            reports = self._sources.read() if self._sources is not None else {}
        yield from families(reports)

    def describe(self) -> Iterator[Metric]:
        """Return no metrics: prometheus_client would otherwise call `collect` at registration."""
        return iter(())


def families(reports: Reports) -> Iterator[Metric]:
    """Yield reports as prometheus_client's metrics."""
    for metric in catalogue.METRICS:
        family = _family(metric)
        for owner, report in reports.get(metric.owner, {}).items():
            for labels, value in metric.read(report):
                _add(family, [*owner, *labels], value, metric.factor)
        if family.samples:
            yield family


def _family(metric: catalogue.Metric) -> _Family:
    if metric.kind == catalogue.COUNTER:
        return CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    if metric.kind == catalogue.GAUGE:
        return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    return HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)


def _add(family: _Family, labels: list[str], value: Any, factor: float) -> None:
    if isinstance(family, HistogramMetricFamily):
        bounds = [*(f"{bound:g}" for bound in value["bounds_s"]), "+Inf"]
        family.add_metric(labels, list(zip(bounds, value["up_to"], strict=True)), value["sum_s"])
    else:
        family.add_metric(labels, factor * value)
