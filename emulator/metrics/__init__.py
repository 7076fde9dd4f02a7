"""Metrics of a running topology for Prometheus, all at one address (docs/metrics.md).

Processes have network namespaces of their own. `catalogue` lists the metrics, `sources` asks the processes,
`exporter` serves the answers.
"""

from emulator.metrics.exporter import Exporter, ExporterError

__all__ = ["Exporter", "ExporterError"]
