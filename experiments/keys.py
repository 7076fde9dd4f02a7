"""The keys of every command: those that its program declares, and those of programs that declare none.

`experiments.reference` makes the reference page and the table that make checks variables by of them.
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
"""Command -> module and dataclass of its keys, of those that make runs, too."""
VALUE_SIZES: Final = tuple(map(str, SIZES))


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class Processes:
    """What every process of Weir reads of its environment, with the prefix WEIR_."""

    log: Annotated[str, OneOf(LEVELS)] = "warning"
    """What processes log at least."""
    pure: Literal["0", "1"] = "0"
    """1: use Python where there is compiled code."""
    compiled: Literal["0", "1"] = "1"
    """0: use the simulator's Python where it is compiled."""
    cache: Path | None = None
    """Folder of compiled P4 programs; default: ~/.cache/weir."""
    werror: Literal["0", "1"] = "0"
    """1: take the C compiler's warnings for errors."""
    value_bytes: Annotated[str, OneOf(VALUE_SIZES)] = str(DEFAULT_BYTES)
    """Bytes of a value on the wire, the same for all of a network; BMv2 carries 512 alone. `make engines`,
    and `make run` where SCALE is the machine's choice, use 8192 if nobody says another."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class StfOptions:
    """What `make stf` runs (v1model.stf)."""

    directory: Annotated[Path | None, Existing(), Variable("DIR")] = None
    """Folder of programs with STF tests."""
    externs: Annotated[Path | None, Existing()] = None
    """C file with the programs' externs."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class TestgenOptions:
    """What `make testgen` has P4Testgen make tests of (v1model.testgen)."""

    directory: Annotated[Path | None, Existing(), Variable("DIR")] = None
    """Folder of v1model programs."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class CorpusOptions:
    """What `make corpus` compiles (v1model.corpus)."""

    directory: Annotated[Path | None, Existing(), Variable("DIR")] = None
    """Folder of v1model programs."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class ConformanceOptions:
    """What `make kv-conformance` tests (read by engines.conformance.options, in the engines' environment)."""

    connectors: tuple[str, ...] = ()
    """Connectors to test; default: all but weir-background."""
    cases: tuple[str, ...] = ()
    """Cases to run; default: all."""
    connector_config: str = ""
    """KVTransferConfig of any other connector, in JSON."""
    seed: int = 1
    """Seed of models and prompts."""
    minutes: Annotated[float, Within(0, 10_000)] = 90.0
    """Time after which no further case begins."""
    folder: Path = Path("build/kv-conformance")
    """Folder for models, logs and files of stores."""
    results: Path = Path("results/kv-conformance")
    """Folder for the results."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class BenchOptions:
    """Which benchmark `make bench` runs; each has variables of its own."""

    what: Annotated[str, OneOf(BENCHMARKS)] | None = None
    """Part that is measured."""


@dataclass(frozen=True, slots=True, kw_only=True, config=DECLARED)
class TestOptions:
    """What `make test-bmv2` plays (tests/differential)."""

    differential_seed: int = 1
    """Seed of the packets that both engines get."""


ANY: Final = "*"
"""Command of the keys that every command has."""


def declared(command: str) -> type:
    """Return the dataclass with a command's keys."""
    module, _, name = WITH_KEYS[command].partition(":")
    found: type = getattr(import_module(module), name)
    return found


def keys_of_command(command: str) -> tuple[Key, ...]:
    """Return what variables and the command line may say of a command; files may say more."""
    kind = declared(command)
    takes = (
        is_played if issubclass(kind, RunOptions) else is_simulated if issubclass(kind, Scenario) else None
    )
    return tuple(key for key in keys_of(kind) if takes is None or takes(key))


def keys_by_command() -> dict[str, tuple[Key, ...]]:
    """Return all keys, those of every command under ANY."""
    every = (*keys_of(Verbosity), *keys_of(Processes))
    return {ANY: every} | {name: keys_of_command(name) for name in WITH_KEYS}
