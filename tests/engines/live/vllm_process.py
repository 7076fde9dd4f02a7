"""A vLLM engine in a process of its own that runs what a test says, with `llm` and these helpers in scope.

`python -m tests.engines.live.vllm_process CONFIG` with `CONFIG` as JSON: `llm`, `transfer`, `path`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from engines.conformance.engine_process import let_cpus_schedule_ahead

ROOT = Path(__file__).resolve().parents[3]
MARK = "@@"
LLM = {
    "skip_tokenizer_init": True,
    "dtype": "float32",
    "enforce_eager": True,
    "max_model_len": 512,
    "max_num_seqs": 8,
    "enable_prefix_caching": True,
    "block_size": 32,
    "num_gpu_blocks_override": 200,
    "seed": 0,
    "disable_log_stats": False,
}


class Engine:
    """The engine, from the test's side."""

    def __init__(
        self,
        folder: Path,
        model: Path,
        transfer: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
        **llm: Any,
    ) -> None:
        config = {"llm": {**LLM, "model": str(model), **llm}, "transfer": transfer}
        number = len(list(folder.glob("engine*.log")))
        self.log = folder / f"engine{number}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.engines.live.vllm_process", json.dumps(config)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            )  # fmt: skip
        self.failure: str | None = self._hear().get("failure")

    def run(self, code: str) -> Any:
        """Run code in the engine's process; the value of its `result`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()
        said = self._hear()
        assert "error" not in said, said
        return said.get("result")

    def generate(self, *prompts: list[int], tokens: int = 4) -> list[dict[str, Any]]:
        """Tokens and log-probabilities of each prompt, all served at once."""
        return list(self.run(f"result = generate({list(prompts)!r}, {tokens})"))

    def settle(self) -> None:
        """Wait until what was computed is stored."""
        self.run("settle()")

    def forget(self) -> None:
        """Empty the engine's own prefix cache."""
        self.run("llm.reset_prefix_cache()")

    def counter(self, name: str) -> int:
        """One of vLLM's metrics."""
        return int(self.run(f"result = counter({name!r})"))

    def close(self) -> None:
        """End it, with the processes that vLLM started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            _, mark, said = line.partition(MARK)
            if mark:
                return dict(json.loads(said))
        raise AssertionError(f"the engine ended:\n{self.log.read_text(errors='replace')[-3000:]}")


def main() -> None:
    """In the engine's process."""
    os.environ |= {
        "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "TORCH_COMPILE_DISABLE": "1",
        "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "OMP_WAIT_POLICY": "passive",
        "OMP_NUM_THREADS": "2",
    }  # fmt: skip
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    from vllm import LLM as VllmEngine
    from vllm import SamplingParams
    from vllm.config import KVEventsConfig, KVTransferConfig

    from hostlib.engine import open_pools

    config = json.loads(sys.argv[1])
    if config["llm"].get("async_scheduling"):
        let_cpus_schedule_ahead()
    if config["transfer"]:
        config["llm"]["kv_transfer_config"] = KVTransferConfig(**config["transfer"])
    if "kv_events_config" in config["llm"]:
        config["llm"]["kv_events_config"] = KVEventsConfig(**config["llm"]["kv_events_config"])
    try:
        llm = VllmEngine(**config["llm"])
    except BaseException as error:
        _say({"failure": f"{type(error).__name__}: {error}"})
        raise

    def generate(prompts: list[list[int]], tokens: int) -> list[dict[str, Any]]:
        sampling = SamplingParams(
            temperature=0, max_tokens=tokens, ignore_eos=True, logprobs=1, detokenize=False
        )
        outputs = llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], sampling, use_tqdm=False)
        replies = []
        for output in outputs:
            (said,) = output.outputs
            chosen = [step[token].logprob for step, token in zip(said.logprobs, said.token_ids, strict=True)]
            replies.append(
                {"tokens": list(said.token_ids), "logprobs": chosen, "cached": output.num_cached_tokens}
            )
        return replies

    def counter(name: str) -> int:
        metrics = (metric for metric in llm.get_metrics() if metric.name == f"vllm:{name}")
        return sum(int(metric.value) for metric in metrics)

    def settle() -> None:
        """What the last step offered is on its way when it is over."""
        deadline_s = time.monotonic() + 60
        while any(pool.waiting_bytes for pool in open_pools()):
            assert time.monotonic() < deadline_s
            time.sleep(0.05)

    scope = {"llm": llm, "generate": generate, "counter": counter, "settle": settle, "open_pools": open_pools}
    _say({"ready": True})
    for line in sys.stdin:
        scope["result"] = None
        try:
            exec(json.loads(line), scope)
            _say({"result": scope["result"]})
        except Exception as error:
            _say({"error": f"{type(error).__name__}: {error}"})


def _say(said: dict[str, Any]) -> None:
    print(MARK + json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
