"""What a measurement of the control plane may fail with."""


class BenchError(Exception):
    """It could not be measured; the message says why."""
