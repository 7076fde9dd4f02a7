"""A data-parallel group: engines of one server, each with scheduler and worker in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="make test-engines")

from tests.engines.live.conftest import Home
from tests.engines.live.test_vllm_situations import TOLERANCE, tiny, tokens, transfer
from tests.engines.live.vllm_process import LLM, ROOT

pytestmark = pytest.mark.timeout(1200)

__all__ = ["tiny"]

SERVER = """
import asyncio, json, os, sys

async def answer(engine, prompt, rank):
    from vllm import SamplingParams
    sampling = SamplingParams(temperature=0, max_tokens=4, ignore_eos=True, logprobs=1, detokenize=False)
    request = engine.generate({"prompt_token_ids": prompt}, sampling, f"to {rank}", data_parallel_rank=rank)
    async for output in request:
        pass
    (said,) = output.outputs
    chosen = [step[token].logprob for step, token in zip(said.logprobs, said.token_ids, strict=True)]
    return [list(said.token_ids), chosen, output.num_cached_tokens]

async def main():
    from vllm.config import KVTransferConfig
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM
    given = json.loads(sys.argv[1])
    transfer = KVTransferConfig(**given["transfer"])
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**given["llm"], kv_transfer_config=transfer))
    answers = []
    for rank in range(2):
        answers.append(await answer(engine, given["prompt"], rank))
        await asyncio.sleep(3)  # what was computed is stored meanwhile
    engine.shutdown()
    print("@@" + json.dumps(answers), flush=True)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_engines_of_a_data_parallel_group_share_and_say_the_same(
    home: Home, tiny: Path, tmp_path: Path
) -> None:
    """They are on one node, share one client of the pool, and write a report each."""
    llm = {**LLM, "model": str(tiny), "data_parallel_size": 2, "disable_log_stats": True}
    given = {
        "llm": llm, "prompt": tokens(200, 8), "transfer": transfer(home, report=str(tmp_path / "report.json"))
    }  # fmt: skip
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    ran = subprocess.run(
        [sys.executable, str(script), json.dumps(given)],
        env={
            **os.environ, "PYTHONPATH": str(ROOT), "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind", "TORCH_COMPILE_DISABLE": "1", "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1", "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1",
        },
        cwd=ROOT, capture_output=True, text=True, timeout=1100, check=False,
    )  # fmt: skip
    said = [line[2:] for line in ran.stdout.splitlines() if line.startswith("@@")]
    assert said, (ran.stdout + ran.stderr)[-3000:]
    first, second = json.loads(said[0])
    assert first[0] == second[0]
    assert max(abs(a - b) for a, b in zip(first[1], second[1], strict=True)) < TOLERANCE
    assert [first[2], second[2]] == [0, 192]
    written = [path.name for path in tmp_path.glob("report*")]
    assert {"engine1" in name for name in written} == {False, True}, written
