"""Engines and connectors that are pretended, for the suite's own logic.

An "engine" has KV that is a text which says what it was computed of; a connector has chosen defects.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engines.conformance.bench import BLOCK_TOKENS, DEFAULTS, Bench
from engines.conformance.connectors.base import Connector
from engines.conformance.engine import Engine, StartError
from engines.conformance.outcome import Failed

MEANING = ("weights", "adapter", "dtype", "kv_dtype", "rope", "embeds", "block_size", "tensor_parallel")
"""What KV depends on here, or is arranged by."""


@dataclass
class Defects:
    """What a pretended connector does wrong; by default nothing."""

    key_lacks: frozenset[str] = frozenset()
    """Parts of a request's and engine's identity that are not in its keys."""
    stores_nothing: bool = False
    warns: bool = False
    """Whether it says that it stores nothing."""
    refuses: tuple[str, Any] | None = None
    """An option of vLLM's with the value at which it lets no engine start."""
    damages: bool = False
    """Whether what it loads is other KV than what was stored."""
    ends_engine_with: str = ""
    """An option of vLLM's under which a hit ends the engine."""
    reset_answers: bool | None = True
    """True: a reset begins a new generation; None: it does nothing, and says nothing; False: it says so."""
    ignores_role: bool = False
    stores_failed_steps: bool = False
    fails_without_half: bool = False
    """Whether a lost block ends the engine."""
    offers_all_again: bool = False
    keeps_all_in_memory: bool = False


@dataclass
class PretendedConnector(Connector):
    """A store in this process."""

    folder: Path
    defects: Defects = field(default_factory=Defects)
    stored: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    name = "pretended"
    speaks_as = "pretended"

    @property
    def version(self) -> str:
        return "pretended 1"

    def transfer(self) -> dict[str, Any]:
        return {"kv_connector": "Pretended", "kv_role": "kv_both"}

    def restart_empty(self) -> None:
        self.stored.clear()

    def silence(self) -> None:
        self.silent = True

    def resume(self) -> None:
        self.silent = False

    def lose_half(self) -> int:
        lost = sorted(self.stored)[::2]
        for key in lost:
            del self.stored[key]
        return len(lost)

    def offered_bytes(self, engine: Engine) -> int:
        assert isinstance(engine, PretendedEngine)
        return engine.offered * BLOCK_TOKENS * 4096


class PretendedEngine(Engine):
    """Answers with numbers made of the KV that it used: its own, or what the connector gave it."""

    def __init__(self, connector: PretendedConnector, config: dict[str, Any]) -> None:
        self._options, transfer = config["llm"], config["transfer"]
        self._connector = connector if transfer is not None else None
        self._role = (transfer or {}).get("kv_role", "kv_both")
        self.log_mark = 0
        self._defects, self._log, self._ended = connector.defects, "", False
        self._on_disk = Path(self._options["model"], "model.safetensors").read_bytes().hex()
        self._weights = self._on_disk
        self._adapters: dict[str, str] = {}
        self._generation, self.offered, self._memory = 0, 0, 0
        refused = self._defects.refuses
        if (
            self._connector
            and refused
            and self._options.get(refused[0], DEFAULTS.get(refused[0])) == refused[1]
        ):
            raise StartError(f"pretended: {refused[0]} is not possible")

    def wait_started(self) -> None:
        """It is there at once."""

    @property
    def alive(self) -> bool:
        return not self._ended

    def log_text(self) -> str:
        return self._log

    def close(self) -> None:
        self._ended = True

    def kill(self) -> None:
        self._ended = True

    def ask(self, what: str, limit_s: float = 60.0, **how: Any) -> Any:
        if self._ended:
            raise Failed("the engine has ended")
        return getattr(self, f"_{what}")(**how)

    def _serve(
        self,
        requests: list[dict[str, Any]],
        output_tokens: int,
        recompute: bool = False,
        prompt_logprobs: int | None = None,
    ) -> dict[str, Any]:
        replies, hits = [], 0
        for request in requests:
            reply, found = self._answer(request, output_tokens, recompute or prompt_logprobs is not None)
            replies.append(reply)
            hits += found
        return {"replies": replies, "hit_tokens": hits, "preemptions": len(requests) - 1}

    def _answer(
        self, request: dict[str, Any], output_tokens: int, recompute: bool
    ) -> tuple[dict[str, Any], int]:
        meaning = self._meaning(request)
        tokens = request.get("tokens") or [0] * request["embeds_tokens"]
        blocks = [json.dumps(tokens[:end]) for end in range(BLOCK_TOKENS, len(tokens), BLOCK_TOKENS)]
        right = [json.dumps([{name: meaning[name] for name in MEANING[:6]}, block]) for block in blocks]
        keys = [self._key(meaning, block) for block in blocks]
        used, hits = list(right), 0
        if not recompute:
            hits = self._load(keys, used)
        for key, kv in zip(keys, used, strict=True):
            self._store(key, kv)
        choice = random.Random(json.dumps([used, tokens, meaning["weights"]]))
        return {
            "tokens": [choice.randrange(4096) for _ in range(output_tokens)],
            "logprobs": [-choice.random() for _ in range(output_tokens)],
            "prompt_logprobs": [-1.0] * (len(tokens) - 1),
            "cached_tokens": hits,
        }, hits

    def _load(self, keys: list[str], used: list[str]) -> int:
        connector = self._connector
        if (
            connector is None
            or connector.silent
            or (self._role == "kv_producer" and not self._defects.ignores_role)
        ):
            return 0
        found = 0
        for index, key in enumerate(keys):
            if key not in connector.stored:
                if (
                    index + 1 < len(keys)
                    and keys[index + 1] in connector.stored
                    and self._defects.fails_without_half
                ):
                    self._ended = True
                    raise Failed("the engine ended: a block was lost")
                break
            used[index] = connector.stored[key] + (" damaged" if self._defects.damages else "")
            found += 1
        if found and self._options.get(self._defects.ends_engine_with):
            self._ended = True
            raise Failed("the engine ended: AssertionError")
        return found * BLOCK_TOKENS

    def _store(self, key: str, kv: str) -> None:
        connector = self._connector
        if connector is None:
            return
        if self._defects.stores_nothing:
            self._log = "WARNING pretended: prompts like this are not stored\n" if self._defects.warns else ""
            return
        if connector.silent:
            self._memory += BLOCK_TOKENS * 4096 if self._defects.keeps_all_in_memory else 0
            return
        if self._role == "kv_consumer" and not self._defects.ignores_role:
            return
        if key not in connector.stored or self._defects.offers_all_again:
            self.offered += 1
        connector.stored.setdefault(key, kv)

    def _meaning(self, request: dict[str, Any]) -> dict[str, Any]:
        adapter = request.get("adapter")
        if adapter is not None:
            path = Path(adapter[2], "adapter_model.safetensors")
            adapter = self._adapters.setdefault(f"{adapter[0]} {adapter[1]}", path.read_bytes().hex())
        options = self._options
        return {
            "weights": [
                self._weights,
                options["model"].endswith("longrope") and options["max_model_len"] > 512,
            ],
            "adapter": adapter,
            "dtype": options["dtype"],
            "kv_dtype": options.get("kv_cache_dtype"),
            "rope": options.get("hf_overrides"),
            "embeds": request.get("embeds_seed"),
            "block_size": options["block_size"],
            "tensor_parallel": options.get("tensor_parallel_size", 1),
            "salt": request.get("salt"),
            "generation": self._generation,
        }

    def _key(self, meaning: dict[str, Any], block: str) -> str:
        known = {**meaning, "weights": [self._on_disk, meaning["weights"][1]]}  # training tells no connector
        named = {name: value for name, value in known.items() if name not in self._defects.key_lacks}
        return json.dumps([named, block])

    def _forget(self, connector: bool = False) -> bool:
        if not connector or self._defects.reset_answers is None:
            return True
        self._generation += bool(self._defects.reset_answers)
        return self._defects.reset_answers

    def _pause_and_resume(self) -> None:
        if self._forget(connector=True) is False:
            raise Failed("the caches can't be cleared")

    def _change_weights(self, seed: int) -> None:
        self._weights = f"new {seed}"

    _damage = _change_weights

    def _abort(self, tokens: list[int], steps: int) -> int:
        return 0

    def _fail_step(self, tokens: list[int]) -> None:
        if self._defects.stores_failed_steps:
            meaning = self._meaning({"tokens": tokens})
            for end in range(BLOCK_TOKENS, len(tokens), BLOCK_TOKENS):
                self._store(self._key(meaning, json.dumps(tokens[:end])), "never computed")

    def _call(self, module: str, function: str) -> int:
        return 1

    def _memory_bytes(self) -> int:
        return self._memory


class PretendedBench(Bench):
    """Cases run on it as on real engines."""

    def _launch(
        self,
        model: str | Path,
        with_connector: bool,
        transfer: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
        forked: bool = True,
        **changes: Any,
    ) -> Engine:
        folder = model if isinstance(model, Path) else self.models / model
        given = {**self.connector.transfer(), **(transfer or {})} if with_connector else None
        assert isinstance(self.connector, PretendedConnector)
        return PretendedEngine(
            self.connector, {"llm": {"model": str(folder), **DEFAULTS, **changes}, "transfer": given}
        )
