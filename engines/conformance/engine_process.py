"""One vLLM engine as a process: answers lines of JSON on a socket that it inherits.

    python -m engines.conformance.engine_process CONFIG.json DESCRIPTOR    one engine
    python -m engines.conformance.engine_process --fork DESCRIPTOR         imports vLLM once, then forks

> {"do": "serve", "requests": [{"tokens": [...]}], "output_tokens": 8}
< {"replies": [...], "hit_tokens": 640, "preemptions": 0}
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_WORKER_MULTIPROC_METHOD": "fork",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "LMCACHE_TRACK_USAGE": "false",
    "TORCH_COMPILE_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_WAIT_POLICY": "passive",
    "OMP_NUM_THREADS": "1",
}
ABORT_LIMIT_S = 60.0
SETTLE_LIMIT_S = 5.0
"""Seconds for a connector to store what was computed, while the engine has nothing else to do."""
MESSAGE_BYTES = 4096
"""Most bytes of a message, which names a configuration's path."""
READY = b"ready"


class Engine:
    """An engine, and what the suite can ask it for."""

    def __init__(self, config: dict[str, Any]) -> None:
        allow_wrapped_objects()
        for stand_in in config["stand_ins"]:
            importlib.import_module(stand_in).install()
        from vllm import LLM
        from vllm.config import KVTransferConfig

        options = dict(config["llm"])
        if options.get("async_scheduling"):
            let_cpus_schedule_ahead()
        if config["transfer"] is not None:
            options["kv_transfer_config"] = KVTransferConfig(**config["transfer"])
        self._llm = LLM(**options)
        self._numbered = 0

    def serve(
        self,
        requests: list[dict[str, Any]],
        output_tokens: int,
        recompute: bool = False,
        prompt_logprobs: int | None = None,
    ) -> dict[str, Any]:
        """Answer all requests at once. With `recompute` no cache is read, the connector's neither."""
        import torch
        from vllm import SamplingParams
        from vllm.lora.request import LoRARequest

        parameters = SamplingParams(
            temperature=0, max_tokens=output_tokens, ignore_eos=True, logprobs=1, detokenize=False,
            prompt_logprobs=prompt_logprobs, skip_reading_prefix_cache=True if recompute else None,
        )  # fmt: skip
        prompts, adapters = [], []
        for request in requests:
            prompt: dict[str, Any] = {"prompt_token_ids": request.get("tokens")}
            if "embeds_seed" in request:
                generator = torch.Generator().manual_seed(request["embeds_seed"])
                shape = (request["embeds_tokens"], request["embeds_width"])
                prompt = {"prompt_embeds": torch.randn(shape, generator=generator) / 10}
            if "salt" in request:
                prompt["cache_salt"] = request["salt"]
            prompts.append(prompt)
            adapters.append(LoRARequest(*request["adapter"]) if "adapter" in request else None)
        before = self._counters()
        outputs = self._llm.generate(
            prompts, parameters, lora_request=adapters if any(adapters) else None, use_tqdm=False
        )
        self._settle()
        after = self._counters()
        counted = {name: after[name] - before[name] for name in after}
        return {"replies": [_reply(output) for output in outputs], **counted}

    def forget(self, connector: bool = False) -> bool:
        """Empty the engine's own prefix cache, and the connector's if asked. Returns vLLM's answer."""
        deadline_s = time.monotonic() + SETTLE_LIMIT_S
        while not self._llm.reset_prefix_cache() and time.monotonic() < deadline_s:
            self._settle()  # blocks are in use as long as the connector stores them
        return not connector or bool(self._llm.reset_prefix_cache(reset_connector=True))

    def pause_and_resume(self) -> None:
        """Do what /pause and /sleep do to drop what was computed with old weights."""
        core = self._llm.llm_engine.engine_core.engine_core
        core.pause_scheduler(mode="abort", clear_cache=True)
        core.resume_scheduler()

    def change_weights(self, seed: int) -> None:
        """Put new weights into the running model, as a training loop does."""
        self._llm.apply_model(lambda model: _change_norms(model, seed))

    def damage(self, seed: int) -> None:
        """Put new weights into the model past the engine, so that no connector can know."""
        core = self._llm.llm_engine.engine_core.engine_core
        _change_norms(core.model_executor.driver_worker.worker.get_model(), seed)

    def abort(self, tokens: list[int], steps: int) -> int:
        """Abort a request after so many steps. Returns the requests left unfinished: 0 is right."""
        from vllm import SamplingParams

        engine = self._llm.llm_engine
        self._numbered += 1
        name = f"aborted-{self._numbered}"
        parameters = SamplingParams(temperature=0, max_tokens=64, ignore_eos=True, detokenize=False)
        engine.add_request(name, {"prompt_token_ids": tokens}, parameters)
        for _ in range(steps):
            engine.step()
        engine.abort_request([name])
        deadline_s = time.monotonic() + ABORT_LIMIT_S
        while engine.has_unfinished_requests() and time.monotonic() < deadline_s:
            engine.step()
        return int(engine.get_num_unfinished_requests())

    def fail_step(self, tokens: list[int]) -> None:
        """Make a prompt's forward pass raise an error, as when memory runs out, and give the request up."""
        from vllm import SamplingParams

        engine = self._llm.llm_engine
        model = engine.engine_core.engine_core.model_executor.driver_worker.worker.get_model()
        self._numbered += 1
        name = f"failed-{self._numbered}"
        parameters = SamplingParams(temperature=0, max_tokens=1, ignore_eos=True, detokenize=False)
        engine.add_request(name, {"prompt_token_ids": tokens}, parameters)

        def fail(*arguments: Any, **named: Any) -> None:
            raise MemoryError

        model.forward = fail
        deadline_s = time.monotonic() + ABORT_LIMIT_S
        try:
            while time.monotonic() < deadline_s:
                engine.step()
        except MemoryError:
            return
        finally:
            del model.forward
            engine.abort_request([name])
        raise RuntimeError("the request was never computed")

    def call(self, module: str, function: str) -> Any:
        """Return what a connector's module says here, in the engine's process."""
        return getattr(importlib.import_module(module), function)()

    def memory_bytes(self) -> int:
        """Return the memory that this process has resident."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def close(self) -> None:
        """End the engine, its connector included."""
        self._llm.llm_engine.engine_core.shutdown()

    def _settle(self) -> None:
        """Go on with steps, as a serving engine does, while the connector works for finished requests."""
        core = self._llm.llm_engine.engine_core.engine_core
        deadline_s = time.monotonic() + SETTLE_LIMIT_S
        while core.scheduler.has_requests() and time.monotonic() < deadline_s:
            self._llm.llm_engine.step()
            time.sleep(0.002)

    def _counters(self) -> dict[str, int]:
        names = {"hit_tokens": "vllm:external_prefix_cache_hits", "preemptions": "vllm:num_preemptions"}
        metrics = self._llm.get_metrics()
        return {
            name: sum(int(one.value) for one in metrics if one.name == counter and hasattr(one, "value"))
            for name, counter in names.items()
        }


def allow_wrapped_objects() -> None:
    """Let vLLM look for Triton's kernels in all that is imported: it fails at objects that wrap others, as
    llvmlite's functions do, which LMCache imports, unless these have no attributes."""
    from vllm.triton_utils import dispatcher

    def attributes(value: Any) -> dict[str, Any]:
        found = vars(value)
        return found if isinstance(found, dict) else {}

    dispatcher.vars = attributes


def _told(error: BaseException) -> str:
    """Return what went wrong, and in which line: many of an engine's assertions have no message."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno}: {frames[-1].line})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def let_cpus_schedule_ahead() -> None:
    """Keep vLLM from turning asynchronous scheduling off on a CPU, where it works and gains nothing."""
    from vllm.platforms.cpu import CpuPlatform

    plain = CpuPlatform.check_and_update_config.__func__

    def check(cls: type[CpuPlatform], config: Any) -> None:
        plain(cls, config)
        config.scheduler_config.async_scheduling = True

    CpuPlatform.check_and_update_config = classmethod(check)


def _change_norms(model: Any, seed: int) -> None:
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.copy_(torch.rand(parameter.shape, generator=generator) + 0.3)


def _reply(output: Any) -> dict[str, Any]:
    completion = output.outputs[0]
    tokens = list(completion.token_ids)
    chosen = zip(completion.logprobs, tokens, strict=True)
    prompt = output.prompt_logprobs or []
    of_prompt = zip(prompt[1:], (output.prompt_token_ids or [])[1:], strict=False)
    return {
        "tokens": tokens,
        "logprobs": [logprobs[token].logprob for logprobs, token in chosen],
        "prompt_logprobs": [logprobs[token].logprob for logprobs, token in of_prompt],
        "cached_tokens": output.num_cached_tokens or 0,
    }


def run_engine(config: dict[str, Any], connection: socket.socket) -> int:
    """Serve the suite until it closes the socket. Returns the exit code."""
    os.environ.update(config["environment"])
    lines = connection.makefile("rw", encoding="utf-8")

    def say(**answer: Any) -> None:
        lines.write(json.dumps(answer) + "\n")
        lines.flush()

    try:
        engine = Engine(config)
    except BaseException as error:
        traceback.print_exc()
        say(error=_told(error))
        return 1
    say(result="ready")
    for line in lines:
        asked = json.loads(line)
        if asked["do"] == "stop":
            engine.close()
            break
        try:
            say(result=getattr(engine, asked.pop("do"))(**asked))
        except Exception as error:
            traceback.print_exc()
            say(error=_told(error))
    return 0


def _import_engine() -> None:
    """Import what engines import, and do once what each would do again."""
    import vllm.model_executor.models.deepseek_v2
    import vllm.model_executor.models.gemma3
    import vllm.model_executor.models.llama
    import vllm.v1.engine.core
    import vllm.v1.engine.llm_engine
    import vllm.v1.worker.cpu_worker  # noqa: F401
    from vllm import LLM, SamplingParams  # noqa: F401
    from vllm.platforms import current_platform

    allow_wrapped_objects()
    platform = type(current_platform)
    if hasattr(platform, "register_triton_kernel_overrides"):
        platform.register_triton_kernel_overrides()
        platform.register_triton_kernel_overrides = staticmethod(lambda: None)
    gc.collect()
    gc.freeze()


def serve_forks(asks: socket.socket) -> int:
    """Import vLLM, then fork an engine for each message: the path of its configuration, with its socket.

    Answers its process id. Importing is most of a start, and starts no thread: forks are whole.
    """
    _import_engine()
    asks.send(READY)
    while True:
        path, descriptors, _, _ = socket.recv_fds(asks, MESSAGE_BYTES, 1)
        if not path:
            return 0
        config = json.loads(Path(path.decode()).read_text(encoding="utf-8"))
        with socket.socket(fileno=descriptors[0]) as connection:
            sys.stdout.flush()
            child = os.fork()
            if not child:
                asks.close()
                _become_engine(config, connection)
        asks.send(str(child).encode())


def _become_engine(config: dict[str, Any], connection: socket.socket) -> None:
    """Run an engine in the fork, with a session and a log of its own; never returns."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        log = os.open(config["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = run_engine(config, connection)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def main(arguments: list[str]) -> int:
    """Run one engine, or the process that forks them."""
    connection = socket.socket(fileno=int(arguments[1]))
    if arguments[0] == "--fork":
        return serve_forks(connection)
    return run_engine(json.loads(Path(arguments[0]).read_text(encoding="utf-8")), connection)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
