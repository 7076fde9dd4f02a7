"""Metrics of a running topology for Prometheus, all at one address though every process has a namespace of
its own (docs/metrics.md).

`catalogue` says which there are, `sources` asks the processes, `exporter` serves what they say.
"""

from emulator.metrics.exporter import Exporter, ExporterError

__all__ = ["Exporter", "ExporterError"]
