"""One connector, one case after the other."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engines.conformance.bench import HASH_SEED, Bench
from engines.conformance.case import Case
from engines.conformance.connectors import CONNECTORS, Connector, Given
from engines.conformance.connectors.process import StoreError
from engines.conformance.engine import Forks
from engines.conformance.options import Options
from engines.conformance.outcome import FAILED, PASSED, CaseError, Outcome, SuiteError


def make_models(folder: Path, seed: int) -> Path:
    """Return the folder of the models of a seed, which are made if they are not there."""
    models = folder / "models" / str(seed)
    command = [sys.executable, "-m", "engines.conformance.models", str(models), str(seed)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise SuiteError(
            f"the models could not be made, with {sys.executable}:\n{made.stderr.strip()[-2000:]}"
        )
    return models


@contextmanager
def opened(options: Options, name: str, models: Path) -> Iterator[Bench]:
    """Open a connector's store and what cases need, as long as its cases run."""
    folder = options.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    connector: Connector
    if name == "given":
        assert options.given is not None
        connector = Given(folder, options.given)
    else:
        connector = CONNECTORS[name](folder)
    forks = Forks(folder, HASH_SEED)
    try:
        connector.start()
        try:
            forks.wait_ready()
            bench = Bench(connector, models, folder, forks, options.seed)
            try:
                yield bench
            finally:
                bench.close()
        finally:
            connector.stop()
    except StoreError as error:
        raise SuiteError(f"{name}: {error}") from None
    finally:
        forks.close()


def run_case(bench: Bench, case: Case) -> Outcome:
    """Run one case; whatever goes wrong in it is its outcome."""
    began_s = time.monotonic()
    bench.begin(case.name)
    result, message, measured = PASSED, "", {}
    try:
        measured = case.check(bench)
    except CaseError as error:
        result, message, measured = error.result, str(error), error.measured
    except (StoreError, OSError) as error:
        result, message = FAILED, f"the suite's own part failed: {error}"
    finally:
        with suppress(OSError):
            bench.connector.resume()
    return Outcome(result, message, measured, round(time.monotonic() - began_s, 1))
