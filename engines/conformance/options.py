"""Options of weir-kv-conformance: from the command line, else from WEIR_ variables, as make sets them."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.conformance.case import CASES
from engines.conformance.connectors import CONNECTORS

DEFAULT_CONNECTORS = ("weir", "lmcache", "mooncake", "vllm-offloading", "vllm-example")
DEFAULT_MINUTES = 90.0


class OptionError(Exception):
    """An option that can't be; the message says which values are."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one run."""

    connectors: tuple[str, ...]
    cases: tuple[str, ...]
    """Empty: all."""
    given: dict[str, Any] | None
    """KVTransferConfig of a connector that the suite does not know."""
    seed: int
    results: Path
    folder: Path
    """Folder for models, configurations, logs and files of stores."""
    minutes: float
    list_cases: bool
    markdown: bool


def parse(arguments: Sequence[str]) -> Options:
    """Return the options; raises OptionError."""
    parser = argparse.ArgumentParser(prog="weir-kv-conformance", description=__doc__)
    parser.add_argument("--connector", "--connectors", metavar="NAME,…", default=_variable("CONNECTORS"),
                        help=f"of {', '.join(CONNECTORS)} (default: all but weir-background)")  # fmt: skip
    parser.add_argument(
        "--case", "--cases", metavar="NAME,…", default=_variable("CASES"), help="default: all"
    )
    parser.add_argument("--connector-config", metavar="JSON", default=_variable("CONNECTOR_CONFIG"),
                        help="KVTransferConfig of any other connector, tested under the name 'given'; in it "
                        "{folder} is a folder for its files, {number} another for each engine")  # fmt: skip
    parser.add_argument("--seed", type=int, default=int(_variable("SEED") or 1), help="of models and prompts")
    parser.add_argument(
        "--results", type=Path, default=Path(_variable("RESULTS") or "results/kv-conformance")
    )
    parser.add_argument("--folder", type=Path, default=Path(_variable("FOLDER") or "build/kv-conformance"),
                        help="for models, logs and files of stores")  # fmt: skip
    parser.add_argument("--minutes", type=float, default=float(_variable("MINUTES") or DEFAULT_MINUTES),
                        help="after which no further case begins")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the cases and what they stand for")
    parser.add_argument(
        "--markdown", action="store_true", help="print the table of what there is, and run nothing"
    )
    asked = parser.parse_args(arguments)
    given = _config(asked.connector_config)
    connectors = _names(asked.connector, CONNECTORS, "connector")
    return Options(
        connectors=connectors or (("given",) if given else DEFAULT_CONNECTORS),
        cases=_names(asked.case, CASES, "case"),
        given=given,
        seed=asked.seed,
        results=asked.results,
        folder=asked.folder.absolute(),
        minutes=asked.minutes,
        list_cases=asked.list,
        markdown=asked.markdown,
    )


def _variable(name: str) -> str:
    return os.environ.get(f"WEIR_{name}", "")


def _names(text: str, known: Any, what: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in known:
            raise OptionError(f"there is no {what} {name!r}: choose from {', '.join(known)}")
    return names


def _config(text: str) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        config = json.loads(text)
    except ValueError as error:
        raise OptionError(f"--connector-config is not JSON: {error}") from None
    if not isinstance(config, dict) or not isinstance(config.get("kv_connector"), str):
        raise OptionError(
            "--connector-config is a JSON object with kv_connector, as --kv-transfer-config of vLLM is"
        )
    return config
