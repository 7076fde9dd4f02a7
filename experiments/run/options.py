"""The demo's options: command line, environment (as make sets it), defaults; in that order."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from controller.policies import POLICY_NAMES
from topologies.engines import ENGINES
from topologies.registry import TOPOLOGIES
from workload.cost import DEFAULT_MODEL, GPUS, MODELS
from workload.generate import DEFAULT_SHAPE
from workload.scale import DEFAULT_SIGMA
from workload.schedule import SCHEDULERS
from workload.shapes import SHAPES


class OptionError(Exception):
    """A value that an option does not take; the message says which and what it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What one `make run` plays, and on what."""

    engine: str
    topology: str
    trace: Path | None
    shape: str
    requests: int | None
    start_s: float | None
    speed: float | None
    hosts: int | None
    stores: int | None
    leaves: int | None
    spines: int | None
    pods: int | None
    scheduler: str
    policy: str
    pool_blocks: int
    gpu_blocks: int
    dram_blocks: int
    store_blocks: int
    scale: float
    model: str
    gpu: str
    link_gbit_s: float
    seed: int
    results: Path


@dataclass(frozen=True, slots=True)
class _Option:
    """One option: its environment variable is also its name on the command line, in lower case."""

    variable: str
    parse: Callable[[str], Any]
    default: Any
    help: str


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise OptionError(f"must be a whole number, not {text!r}") from None
        if not least <= value <= most:
            raise OptionError(f"must be from {least} to {most}, not {value}")
        return value

    return parse


def _number(least: float, most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise OptionError(f"must be a number, not {text!r}") from None
        if not least <= value <= most:
            raise OptionError(f"must be from {least:g} to {most:g}, not {text}")
        return value

    return parse


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise OptionError(f"there is no {text!r}: choose one of {', '.join(choices)}")
        return text

    return parse


# In the order of RunOptions' fields.
_OPTIONS = (
    _Option("ENGINE", _one_of(tuple(ENGINES)), "embedded", "switch engine"),
    _Option("TOPO", _one_of(tuple(TOPOLOGIES)), "star", "topology"),
    _Option("TRACE", Path, None, "trace file, Mooncake's or Bailian's JSONL; without it one is generated"),
    _Option("SHAPE", _one_of(tuple(SHAPES)), DEFAULT_SHAPE, "shape of the generated trace"),
    _Option(
        "REQUESTS", _whole(1, 1_000_000), None, "requests to play; default: 240 generated, 600 of a TRACE"
    ),
    _Option("START", _number(0, 1e9), None, "second to begin at; what came before is in the stores"),
    _Option(
        "SPEED",
        _number(0.01, 1000),
        None,
        "trace seconds a second; default: plays in 32 s",
    ),
    _Option("HOSTS", _whole(1, 256), None, "inference nodes; default: the topology's, 8 for star"),
    _Option("STORES", _whole(1, 64), None, "storage nodes; default: the topology's, 2 for star"),
    _Option("LEAVES", _whole(1, 32), None, "leaf switches of leafspine and tree"),
    _Option("SPINES", _whole(1, 32), None, "spine switches of leafspine"),
    _Option("PODS", _whole(2, 8), None, "pods of fattree"),
    _Option("SCHEDULER", _one_of(tuple(SCHEDULERS)), "random", "which node serves a request"),
    _Option("POLICY", _one_of(tuple(POLICY_NAMES)), "reuse", "policy of the pool"),
    _Option("POOL_BLOCKS", _whole(1, 65536), 2048, "blocks that the switch's pool holds"),
    _Option("GPU_BLOCKS", _whole(1, 1_000_000), 64, "blocks of GPU memory a node"),
    _Option("DRAM_BLOCKS", _whole(1, 1_000_000), 128, "blocks of DRAM a node"),
    _Option("STORE_BLOCKS", _whole(1, 10_000_000), 50_000, "blocks of DRAM a storage node, the rest on SSD"),
    _Option("SCALE", _number(1, 1e9), DEFAULT_SIGMA, "sigma: bytes and link rates are divided by it"),
    _Option("MODEL", _one_of(tuple(MODELS)), DEFAULT_MODEL, "model whose KV is stored"),
    _Option("GPU", _one_of(tuple(GPUS)), "h800", "GPUs of a node"),
    _Option("LINK_GBIT", _number(0.001, 100_000), 200.0, "real rate of a host's link, Gbit/s"),
    _Option("SEED", _whole(0, 2**31), 1, "of generator, scheduler and policy"),
    _Option("RESULTS", Path, Path("results/run"), "folder for the results"),
)


def parse_options(arguments: Sequence[str], program: str, description: str) -> RunOptions:
    """Options from the command line and the environment; raises OptionError."""
    parser = argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog="Each option is also a variable of make and of the environment: --pool-blocks is POOL_BLOCKS.",
    )
    for option in _OPTIONS:
        shown = "none" if option.default is None else option.default
        flag = "--" + option.variable.lower().replace("_", "-")
        parser.add_argument(flag, dest=option.variable, metavar="X", help=f"{option.help} (default: {shown})")
    given = vars(parser.parse_args(arguments))
    values = [_value(option, given[option.variable]) for option in _OPTIONS]
    names = [field.name for field in fields(RunOptions)]
    return RunOptions(**dict(zip(names, values, strict=True)))


def _value(option: _Option, given: str | None) -> Any:
    text = given if given is not None else os.environ.get(option.variable, "")
    if not text:
        return option.default
    try:
        return option.parse(text)
    except OptionError as error:
        raise OptionError(f"{option.variable} {error}") from None
