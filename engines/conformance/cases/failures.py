"""Cases of failing stores: whatever the store does, the engine lives, and answers right and in time."""

from __future__ import annotations

import time

from engines.conformance.bench import Bench
from engines.conformance.case import Measured, case
from engines.conformance.outcome import Failed, LeftOut

PROMPTS = 6
SILENCE_LIMIT_S = 120.0
"""Seconds for a prompt while the store is silent: its connector has to give up by then."""
SETTLE_S = 2.0
"""Seconds for an engine to send what it has to store before it ends."""
PEER = {
    "kv_connector": "FailingPeer",
    "kv_connector_module_path": "engines.conformance.failing_peer",
    "kv_role": "kv_both",
    "kv_load_failure_policy": "recompute",
}


@case("lost-objects", "Half of the store's objects are lost: they are computed, and no request hangs.",
      "vllm-project/vllm#27074", "LMCache/LMCache#2106", "sgl-project/sglang#31315")  # fmt: skip
def lost_objects(bench: Bench) -> Measured:
    requests = [bench.prompt() for _ in range(PROMPTS)]
    bench.compute(bench.writer, *requests)
    for request in requests:
        bench.find(bench.reader, request)
    right = bench.reader.recompute(requests)
    bench.settle()  # nobody has them in memory
    lost = bench.connector.lose_half()
    if not lost:
        raise Failed("the store held nothing to lose")
    measured: Measured = {}
    with bench.engine() as engine:
        for request, expected in zip(requests, right, strict=True):
            answers = engine.serve([request])
            measured = bench.check_same(answers, [expected], "a prompt of which parts are lost")
        engine.forget()
        answers = engine.serve(requests)
        measured = bench.check_same(answers, right, "the same prompts together, and again")
    return {**measured, "objects_lost": lost}


@case("store-restarts-empty", "The store comes back empty: answers stay right, and it is filled again.",
      "LMCache/LMCache#1814", "vllm-project/vllm#27074")  # fmt: skip
def store_restarts_empty(bench: Bench) -> Measured:
    request = bench.prompt()
    bench.compute(bench.writer, request)
    bench.find(bench.reader, request)
    right = bench.reader.recompute([request])
    bench.connector.restart_empty()
    measured: Measured = {}
    for engine in (bench.reader, bench.writer):
        engine.forget()
        began_s = time.monotonic()
        answers = engine.serve([request], limit_s=SILENCE_LIMIT_S)
        measured = bench.check_same(answers, right, "a prompt after the store came back empty")
        measured["took_s"] = round(time.monotonic() - began_s, 1)
    other = bench.prompt()
    bench.compute(bench.writer, other)
    bench.find(bench.reader, other, may_refuse=False)
    return measured


@case("store-silent", "The store falls silent: requests are computed in time, and it is used again later.",
      "ModelEngine-Group/unified-cache-management#1128", "LMCache/LMCache#4983")  # fmt: skip
def store_silent(bench: Bench) -> Measured:
    known, new = bench.prompt(), bench.prompt()
    bench.compute(bench.writer, known)
    bench.find(bench.reader, known)
    right = bench.reader.recompute([known])
    (right_new,) = bench.writer.recompute([new])
    bench.reader.forget()
    slowest_s = 0.0
    bench.connector.silence()
    try:
        for request, expected in ((known, right[0]), (new, right_new)):
            began_s = time.monotonic()
            answers = bench.reader.serve([request], limit_s=SILENCE_LIMIT_S)
            slowest_s = max(slowest_s, time.monotonic() - began_s)
            bench.check_same(answers, [expected], "a prompt while the store is silent")
    finally:
        bench.connector.resume()
    answers = bench.find(bench.reader, known, may_refuse=False)
    return {
        **bench.check_same(answers, right, "a prompt after the silence"),
        "slowest_s": round(slowest_s, 1),
    }


@case("step-raises", "A step's forward pass raises an error: nothing that it did not compute is stored.",
      "vllm-project/vllm#17738")  # fmt: skip
def step_raises(bench: Bench) -> Measured:
    request, control = bench.prompt(), bench.prompt()
    bench.compute(bench.writer, control)
    bench.find(bench.reader, control)
    with bench.engine() as engine:
        engine.ask("fail_step", tokens=request["tokens"])
        bench.check_same(engine.serve([control]), engine.recompute([control]), "a prompt after the error")
        time.sleep(SETTLE_S)
    answers = bench.reader.serve([request])
    right = bench.reader.recompute([request])
    return bench.check_same(answers, right, "what an engine stored of the failed step")


@case("other-connector-fails", "Beside a connector whose load fails (MultiConnector), no wrong KV is stored.",
      "vllm-project/vllm#20609", "LMCache/LMCache#2294")  # fmt: skip
def other_connector_fails(bench: Bench) -> Measured:
    requests = [bench.prompt() for _ in range(2)]
    with bench.engine(with_connector=False) as alone:
        right = alone.recompute(requests)
    both = {
        "kv_connector": "MultiConnector",
        "kv_connector_module_path": None,
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"connectors": [PEER, bench.connector.transfer()]},
    }
    with bench.engine(transfer=both) as engine:
        bench.check_same(engine.serve(requests), right, "prompts whose load by the other connector failed")
        if not engine.ask("call", module=PEER["kv_connector_module_path"], function="failure_count"):
            raise LeftOut("vLLM asked the other connector for no load")
        time.sleep(SETTLE_S)
    control = bench.prompt()
    bench.compute(bench.writer, control)
    bench.find(bench.reader, control)
    answers = bench.reader.serve(requests)
    return bench.check_same(answers, right, "what an engine stored beside a failing connector")
