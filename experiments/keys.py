"""Keys of every command: those that its program declares, and, here, those of programs that declare none.

From them `experiments.reference` makes the reference page, and the table by which make checks variables.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Existing, Key, OneOf, Variable, Within, keys_of
from commands.verbosity import Verbosity
from emulator.options import RunOptions, is_played
from experiments.bench.__main__ import BENCHMARKS
from experiments.commands import COMMANDS
from experiments.simulate.__main__ import is_simulated
from hostlib.protocol.value_size import DEFAULT_BYTES, SIZES
from scenario import Scenario
from weir.logs import LEVELS

WITH_KEYS: Final = {name: command.keys for name, command in COMMANDS.items() if command.keys}
"""Module and dataclass of the keys, by command; commands that only make runs are included."""
VALUE_SIZES: Final = tuple(map(str, SIZES))


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class Processes:
    """Variables that every process of Weir reads from its environment, with the prefix WEIR_."""

    log: Annotated[str, OneOf(LEVELS)] = "warning"
    """Lowest level of messages that processes log."""
    pure: Literal["0", "1"] = "0"
    """1: use Python instead of compiled code."""
    compiled: Literal["0", "1"] = "1"
    """0: use the simulator's Python code even if it is compiled."""
    cache: Path | None = None
    """Folder of compiled P4 programs; default: ~/.cache/weir."""
    werror: Literal["0", "1"] = "0"
    """1: treat the C compiler's warnings as errors."""
    value_bytes: Annotated[str, OneOf(VALUE_SIZES)] = str(DEFAULT_BYTES)
    """Bytes of a value on the wire, the same in a whole network; BMv2 carries only 512. If it is not given,
    `make engines` and, with `SCALE=auto`, `make run` use 8192 on the embedded switch."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class StfOptions:
    """Options of `make stf`, which runs STF conformance tests (v1model.stf)."""

    directory: Annotated[Path | None, Existing(), Variable("DIR")] = None
    """Folder of programs with STF tests."""
    externs: Annotated[Path | None, Existing()] = None
    """C file with the programs' externs."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class TestgenOptions:
    """Options of `make testgen`, which runs P4Testgen's tests of programs (v1model.testgen)."""

    directory: Annotated[Path | None, Existing(), Variable("DIR")] = None
    """Folder of v1model programs."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class CorpusOptions:
    """Options of `make corpus`, which compiles programs (v1model.corpus)."""

    directory: Annotated[Path | None, Existing(), Variable("DIR")] = None
    """Folder of v1model programs."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class ConformanceOptions:
    """Options of `make kv-conformance`, which compares any KV connector with recomputing.

    engines.conformance.options reads them, because the command runs in the engines' environment.
    """

    connectors: tuple[str, ...] = ()
    """Connectors to test; default: all but weir-background."""
    cases: tuple[str, ...] = ()
    """Cases to run; default: all."""
    connector_config: str = ""
    """KVTransferConfig of another connector, in JSON."""
    seed: int = 1
    """Seed of models and prompts."""
    minutes: Annotated[float, Within(0, 10_000)] = 90.0
    """Minutes after which no further case begins."""
    folder: Path = Path("build/kv-conformance")
    """Folder for models, logs and files of stores."""
    results: Path = Path("results/kv-conformance")
    """Folder for the results."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class BenchOptions:
    """Option of `make bench` that chooses the benchmark; each benchmark has variables of its own."""

    what: Annotated[str, OneOf(BENCHMARKS)] | None = None
    """Part to measure."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class TestOptions:
    """Options of `make test-bmv2`, which sends the same packets to both engines (tests/differential)."""

    differential_seed: int = 1
    """Seed of the packets that both engines get."""


ANY: Final = "*"
"""Name in place of a command's, for the keys that every command has."""


def declared(command: str) -> type:
    """Return the dataclass with a command's keys."""
    module, _, name = WITH_KEYS[command].partition(":")
    found: type = getattr(import_module(module), name)
    return found


def keys_of_command(command: str) -> tuple[Key, ...]:
    """Return the keys of a command that variables and its command line may set; files may set more."""
    kind = declared(command)
    takes = (
        is_played if issubclass(kind, RunOptions) else is_simulated if issubclass(kind, Scenario) else None
    )
    return tuple(key for key in keys_of(kind) if takes is None or takes(key))


def keys_by_command() -> dict[str, tuple[Key, ...]]:
    """Return all keys by command; those that every command has are under ANY."""
    every = (*keys_of(Verbosity), *keys_of(Processes))
    return {ANY: every} | {name: keys_of_command(name) for name in WITH_KEYS}
