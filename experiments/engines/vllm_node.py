"""Process of one vLLM engine, in the engines' environment, on its node of the network.

    python -m experiments.engines.vllm_node CONFIG.json

stdout  < {"event": "ready", "start_s": ...}
stdin   > run {"requests": [{"tokens": [...], "output_tokens": 16}, ...]}
stdout  < {"event": "served", "replies": [...], "pool": {...}}
stdin   > abort {"tokens": [...]}         begin a request, and abort it when its first step is done
stdin   > forget                          drop the engine's own prefix cache
stdin   > damage                          from now on damage what is loaded from the pool
stdin   > stop
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "TORCH_COMPILE_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "LMCACHE_TRACK_USAGE": "false",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "OMP_WAIT_POLICY": "passive",  # an engine that waits leaves the cores to the other
    "PYTHONHASHSEED": "0",  # LMCache names chunks by Python's hash
}


class Node:
    """Engine of vLLM, which runs in this process."""

    def __init__(self, config: dict[str, Any]) -> None:
        from vllm import LLM
        from vllm.config import KVTransferConfig

        from engines.conformance.engine_process import allow_wrapped_objects

        allow_wrapped_objects()
        transfer = config.get("transfer")
        options = {"kv_transfer_config": KVTransferConfig(**transfer)} if transfer else {}
        self.llm = LLM(
            model=config["model"],
            skip_tokenizer_init=True,
            dtype=config.get("dtype", "float32"),
            enforce_eager=True,
            max_model_len=config["max_tokens"],
            max_num_seqs=8,
            max_num_batched_tokens=config["batched_tokens"],
            enable_prefix_caching=True,
            block_size=config["block_tokens"],
            num_gpu_blocks_override=config["own_blocks"],
            seed=0,
            disable_log_stats=False,
            tensor_parallel_size=config.get("tensor_parallel", 1),
            **options,
        )
        self._numbered = 0

    def serve(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Serve all requests together; return each one's tokens, log-probabilities and times."""
        from vllm import SamplingParams

        engine = self.llm.llm_engine
        replies: dict[str, dict[str, Any]] = {}
        for request in requests:
            name = str(self._numbered)
            self._numbered += 1
            parameters = SamplingParams(
                temperature=0,
                max_tokens=request["output_tokens"],
                ignore_eos=True,
                logprobs=1,
                detokenize=False,
            )
            replies[name] = {"sent_s": time.monotonic(), "times_s": []}
            engine.add_request(name, {"prompt_token_ids": request["tokens"]}, parameters)
        while engine.has_unfinished_requests():
            for output in engine.step():
                reply = replies[output.request_id]
                done = len(output.outputs[0].token_ids)
                now_s = time.monotonic()
                reply["times_s"] += [now_s] * (done - len(reply["times_s"]))
                if output.finished:
                    reply["output"] = output
        return [_summary(reply) for reply in replies.values()]

    def abort(self, tokens: list[int]) -> int:
        """Abort a request after its first step; returns how many requests are unfinished, which must be 0."""
        from vllm import SamplingParams

        engine = self.llm.llm_engine
        parameters = SamplingParams(temperature=0, max_tokens=64, ignore_eos=True, detokenize=False)
        engine.add_request("aborted", {"prompt_token_ids": tokens}, parameters)
        engine.step()
        engine.abort_request(["aborted"])
        deadline_s = time.monotonic() + 60
        while engine.has_unfinished_requests() and time.monotonic() < deadline_s:
            engine.step()
        return int(engine.get_num_unfinished_requests())

    def forget(self) -> None:
        """Empty the engine's own prefix cache."""
        self.llm.reset_prefix_cache()

    def close(self) -> None:
        """End the engine, its connector included."""
        self.llm.llm_engine.engine_core.shutdown()


def _summary(reply: dict[str, Any]) -> dict[str, Any]:
    output = reply["output"]
    completion = output.outputs[0]
    tokens = list(completion.token_ids)
    chosen = zip(completion.logprobs, tokens, strict=True)
    gaps_s = [later - earlier for earlier, later in zip(reply["times_s"], reply["times_s"][1:], strict=False)]
    return {
        "tokens": tokens,
        "logprobs": [logprobs[token].logprob for logprobs, token in chosen],
        "ttft_s": reply["times_s"][0] - reply["sent_s"],
        "tbt_s": gaps_s,
        "cached_tokens": output.num_cached_tokens or 0,
    }


def damage() -> None:
    """Damage all KV that is loaded from now on: each number's sign is flipped before the engine gets it."""
    import numpy as np

    from engines.vllm.tensors import KvTensors

    write = KvTensors.write

    def write_damaged(self: KvTensors, block_id: int, index: int, content: memoryview) -> None:
        write(self, block_id, index, (-np.frombuffer(content, np.float32)).view(np.uint8).data)

    KvTensors.write = write_damaged  # type: ignore[method-assign] # on purpose


def counter(llm: Any, name: str) -> int:
    """Return one of vLLM's own counters, summed over its labels."""
    metrics = (metric for metric in llm.get_metrics() if metric.name == f"vllm:{name}")
    return sum(int(metric.value) for metric in metrics if hasattr(metric, "value"))


def _pool_stats() -> dict[str, Any]:
    from hostlib.engine import open_pools

    mooncake = sys.modules.get("experiments.engines.mooncake_connector")
    pools = mooncake.opened() if mooncake else open_pools()
    return next((pool.stats() for pool in pools), {})


def _say(event: str, **details: Any) -> None:
    print(json.dumps({"event": event, **details}), flush=True)


def main(path: str) -> int:
    """Serve until stdin says "stop" or ends. Returns exit code 0."""
    os.environ.update(ENVIRONMENT)
    config = json.loads(Path(path).read_text(encoding="utf-8"))
    os.environ.update({"OMP_NUM_THREADS": str(config["threads"])})
    if config.get("processes"):  # engine and workers in processes of their own, as by default in vLLM
        del os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"]
    started_s = time.monotonic()
    node = Node(config)
    _say("ready", start_s=round(time.monotonic() - started_s, 1))
    for line in sys.stdin:
        command, _, rest = line.partition(" ")
        if command.strip() == "stop":
            break
        if command.strip() == "forget":
            node.forget()
            _say("forgot")
        elif command == "abort":
            _say("aborted", unfinished=node.abort(json.loads(rest)["tokens"]))
        elif command.strip() == "damage":
            damage()
            _say("damaging")
        elif command == "run":
            replies = node.serve(json.loads(rest)["requests"])
            hits = counter(node.llm, "external_prefix_cache_hits")
            preempted = counter(node.llm, "num_preemptions")
            _say("served", replies=replies, hit_tokens=hits, preemptions=preempted, pool=_pool_stats())
    node.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
