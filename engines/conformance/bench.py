"""Bench of a case: engines with one connector, its store, and prompts that no other case uses."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engines.conformance.comparison import TOLERANCE, difference, is_same, largest_difference
from engines.conformance.connectors.base import Connector
from engines.conformance.engine import Answers, Engine, Forks, StartError
from engines.conformance.models import LLAMA, VOCABULARY
from engines.conformance.outcome import Failed, LeftOut, Refused

BLOCK_TOKENS = 32
PROMPT_TOKENS = 645
"""Tokens of a prompt: two chunks of 256 tokens, as LMCache stores them by default, and some more."""
FOUND_LIMIT_S = 20.0
"""Seconds until another engine has to find what was computed."""
HASH_SEED = {"PYTHONHASHSEED": "0"}
"""Environment that vLLM and LMCache ask for where engines share a store; the case `hash-seed` goes without.
"""
DEFAULTS: dict[str, Any] = {
    "skip_tokenizer_init": True,
    "dtype": "float32",
    "enforce_eager": True,
    "max_model_len": 2048,
    "max_num_seqs": 8,
    "max_num_batched_tokens": 1024,
    "enable_prefix_caching": True,
    "block_size": BLOCK_TOKENS,
    "num_gpu_blocks_override": 200,
    "seed": 0,
    "disable_log_stats": False,
}


@dataclass
class Bench:
    """One connector with its store running, for one case after the other."""

    connector: Connector
    models: Path
    folder: Path
    """Folder of engines' configurations and logs."""
    forks: Forks
    seed: int
    _shared: dict[str, Engine] = field(default_factory=dict)
    _numbered: int = 0
    _random: random.Random = field(default_factory=random.Random)

    def begin(self, case: str) -> None:
        """Make prompts by the seed and the case's name, whatever ran before."""
        self._random = random.Random(f"{self.seed} {case}")
        for engine in self._shared.values():
            engine.log_mark = len(engine.log_text())

    def prompt(self, length: int = PROMPT_TOKENS) -> dict[str, Any]:
        """Return a request that nobody has seen."""
        return {"tokens": [self._random.randrange(2, VOCABULARY) for _ in range(length)]}

    # Engines

    @property
    def writer(self) -> Engine:
        """Return the engine that computes what others find; in the plain configuration."""
        return self._plain("writer")

    @property
    def reader(self) -> Engine:
        """Another engine in the plain configuration."""
        return self._plain("reader")

    @contextmanager
    def engine(
        self, model: str | Path = LLAMA, with_connector: bool = True, **changes: Any
    ) -> Iterator[Engine]:
        """Yield an engine for this case alone. `changes` are vLLM's options; `transfer` changes
        KVTransferConfig.

        Raises Refused if the connector keeps it from starting, LeftOut if vLLM does not start so without one.
        """
        with self._started(1, model, with_connector, changes) as (engine,):
            yield engine

    @contextmanager
    def two_engines(self, model: str | Path = LLAMA, **changes: Any) -> Iterator[tuple[Engine, Engine]]:
        """Yield two engines in the same configuration, started at the same time; otherwise as `engine`."""
        with self._started(2, model, True, changes) as (first, second):
            yield first, second

    def settle(self) -> None:
        """End the shared engines; the next use starts them anew."""
        for engine in self._shared.values():
            engine.close()
        self._shared.clear()

    # What cases check

    def compute(self, engine: Engine, *requests: dict[str, Any], **how: Any) -> Answers:
        """Compute requests on an engine, for others to find."""
        return engine.serve(requests, **how)

    def find(
        self,
        engine: Engine,
        request: dict[str, Any],
        least_tokens: int = BLOCK_TOKENS,
        may_refuse: bool = True,
        **how: Any,
    ) -> Answers:
        """Ask until the connector has at least so many tokens of a request: the positive control of cases.

        Raises Refused if it has not and has logged a warning or an error in this case, else Failed.
        """
        deadline_s = time.monotonic() + FOUND_LIMIT_S
        most = 0
        while True:
            engine.forget()
            answers = engine.serve([request], **how)
            if answers.hit_tokens >= least_tokens:
                return answers
            most = max(most, answers.hit_tokens)
            if time.monotonic() > deadline_s:
                break
            time.sleep(0.3)
        said = self.connector.messages(engine.log_text()[engine.log_mark :])
        where = f"{most} of at least {least_tokens} tokens found again in {FOUND_LIMIT_S:g} s"
        if said and not most and may_refuse:
            raise Refused(f"{where}; it says: {said[-1]}")
        raise Failed(f"{where}, and no word of why")

    def check_same(
        self, answers: Answers, right: list[dict[str, Any]], what: str, tolerance: float = TOLERANCE
    ) -> dict[str, Any]:
        """Return what was measured; raises Failed if anything but `right` was answered."""
        largest = largest_difference(answers.replies, right)
        measured = {"hit_tokens": answers.hit_tokens, "logprob_difference": round(largest, 7)}
        wrong = sum(
            not is_same(reply, one, tolerance) for reply, one in zip(answers.replies, right, strict=True)
        )
        if wrong:
            raise Failed(
                f"{what}: {wrong} of {len(right)} answers differ from recomputing, a log-probability by "
                f"{largest:.2g} ({answers.hit_tokens} tokens from the connector)",
                **measured,
            )
        return measured

    def check_isolated(
        self, engine: Engine, request: dict[str, Any], before: dict[str, Any], what: str
    ) -> dict[str, Any]:
        """Check that an engine for which `request` means other KV computes with nothing of what was stored.

        `before` is the reply of the engine that stored it; it must differ, or the case shows nothing. A hit
        that vLLM counted and whose load then failed is no failure: the answer shows that it was not used.
        """
        engine.forget()
        answers = engine.serve([request])
        (right,) = engine.recompute([request])
        changed, apart = difference(before, right)
        if not changed and apart <= TOLERANCE:
            raise LeftOut(f"{what}: it changes no log-probability (by {apart:.2g}), so nothing can be shown")
        wrong = difference(answers.replies[0], right)[1]
        is_right = is_same(answers.replies[0], right)
        measured = {
            "hit_tokens": answers.hit_tokens,
            "logprob_difference": round(wrong, 7),
            "change_moves_logprob_by": round(apart, 4),
        }
        if not is_right:
            raise Failed(
                f"{what}: {answers.hit_tokens} tokens of other KV were taken, "
                f"a log-probability is off by {wrong:.2g}",
                **measured,
            )
        return measured

    def served_model(self, source: str, change: Callable[[Path], None] | None = None) -> Path:
        """Put a copy of a model at the path that these cases serve from, as operators replace a release."""
        served = self.folder / "served" / "chat"
        part = served.with_name("chat.part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(self.models / source, part)
        if change is not None:
            change(part)
        shutil.rmtree(served, ignore_errors=True)
        part.rename(served)
        return served

    def close(self) -> None:
        """End all engines."""
        self.settle()

    def _plain(self, name: str) -> Engine:
        there = self._shared.get(name)
        if there is None or not there.alive:
            try:
                there = self._shared[name] = self._launch(LLAMA, True)
                there.wait_started()
            except StartError as error:
                raise Refused(f"an engine with this connector does not start: {error}") from None
        return there

    @contextmanager
    def _started(
        self, count: int, model: str | Path, with_connector: bool, changes: dict[str, Any]
    ) -> Iterator[list[Engine]]:
        engines: list[Engine] = []
        try:
            try:
                engines += [self._launch(model, with_connector, **changes) for _ in range(count)]
                for engine in engines:
                    engine.wait_started()
            except StartError as error:
                if not with_connector:
                    raise LeftOut(f"vLLM does not start so: {error}") from None
                self._check_starts_alone(model, changes)
                raise Refused(f"the engine does not start: {error}") from None
            yield engines
        finally:
            for engine in engines:
                engine.close()

    def _launch(
        self,
        model: str | Path,
        with_connector: bool,
        transfer: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
        forked: bool = True,
        **changes: Any,
    ) -> Engine:
        self._numbered += 1
        folder = model if isinstance(model, Path) else self.models / model
        config: dict[str, Any] = {
            "llm": {"model": str(folder), **DEFAULTS, **changes},
            "transfer": None,
            "stand_ins": [],
        }
        needed = dict(HASH_SEED if environment is None else environment)
        if with_connector:
            config["transfer"] = {**self.connector.transfer(), **(transfer or {})}
            config["stand_ins"] = list(self.connector.stand_ins)
            needed |= self.connector.environment()
        forks = self.forks if forked and environment is None else None
        return Engine(self.folder, f"engine-{self._numbered:03}", config, forks, needed)

    def _check_starts_alone(self, model: str | Path, changes: dict[str, Any]) -> None:
        alone = {name: value for name, value in changes.items() if name != "transfer"}
        try:
            engine = self._launch(model, False, **alone)
            engine.wait_started()
            engine.close()
        except StartError as error:
            raise LeftOut(f"vLLM does not start so without a connector either: {error}") from None
