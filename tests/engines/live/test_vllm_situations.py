"""Situations in which other connectors gave wrong output or ended the engine, with vLLM's own engine."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make test-engines")

import torch
from transformers import GptOssConfig, GptOssForCausalLM
from vllm.triton_utils import HAS_TRITON

from engines.conformance.connectors.process import free_port
from engines.conformance.models import LONGROPE, make_all
from engines.conformance.weights import write_adapter
from experiments.engines import model
from tests.engines.live.conftest import Home
from tests.engines.live.vllm_process import Engine
from tests.hostlib.loopback import own_address

pytestmark = pytest.mark.timeout(1200)

TOLERANCE = 1e-4
V2 = pytest.param("1", marks=pytest.mark.skipif(not HAS_TRITON, reason="vLLM's V2 runner needs Triton"))
RUNNERS = pytest.mark.parametrize("runner", ["0", V2])
Start = Callable[..., Engine]


def tokens(count: int, seed: int) -> list[int]:
    choice = random.Random(seed)
    return [choice.randrange(3, 200) for _ in range(count)]


def transfer(home: Home, *, role: str = "kv_both", **more: object) -> dict[str, Any]:
    return {
        "kv_connector": "WeirConnector",
        "kv_connector_module_path": "engines.vllm.connector",
        "kv_role": role,
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {
            "address": own_address(), "homes": [home.address], "lookup_timeout_s": 20.0,
            "transfer_timeout_s": 60.0, "silence_s": 5.0, **more,
        },
    }  # fmt: skip


def beside_a_failing_peer(home: Home, peer: str = "FailingPeer", **settings: Any) -> dict[str, Any]:
    """vLLM's MultiConnector of a connector whose loads fail, and Weir's."""
    other = {
        "kv_connector": peer,
        "kv_connector_module_path": "tests.engines.live.failing_peer",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
    }
    return {
        "kv_connector": "MultiConnector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"connectors": [other, transfer(home, **settings)]},
    }


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    model.make(folder, hidden=128, layers=4)
    return folder


@pytest.fixture
def start(tmp_path: Path, tiny: Path) -> Iterator[Start]:
    started: list[Engine] = []

    def start_one(folder: Path = tiny, **more: Any) -> Engine:
        engine = Engine(tmp_path, folder, **more)
        started.append(engine)
        return engine

    yield start_one
    for engine in started:
        engine.close()


def assert_same(said: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    for one, other in zip(said, right, strict=True):
        assert one["tokens"] == other["tokens"]
        differences = [abs(a - b) for a, b in zip(one["logprobs"], other["logprobs"], strict=True)]
        assert max(differences) < TOLERANCE


RECORD = """
from vllm.distributed.kv_transfer import get_kv_transfer_group
calls, worker = [], get_kv_transfer_group()
def record(name):
    plain = getattr(worker, name)
    def recording(*arguments, **named):
        calls.append(name)
        return plain(*arguments, **named)
    setattr(worker, name, recording)
for name in ("handle_preemptions", "start_load_kv", "wait_for_layer_load", "wait_for_save", "get_finished",
             "get_block_ids_with_load_errors", "build_connector_worker_meta"):
    record(name)
"""
REPORTS = ["get_finished", "get_block_ids_with_load_errors", "build_connector_worker_meta"]


def steps_of(calls: list[str]) -> list[list[str]]:
    """The calls of each step, repeated ones once."""
    steps: list[list[str]] = []
    for name in calls:
        if name == "handle_preemptions":
            steps.append([])
        if not steps[-1] or steps[-1][-1] != name:
            steps[-1].append(name)
    return steps


@RUNNERS
def test_ngram_drafts_with_layerwise_loading(start: Start, home: Home, runner: str) -> None:
    """vLLM's V1 runner asks for finished loads before it lets the connector store; V2 after that."""
    drafts = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3}
    engine = start(
        transfer=transfer(home), speculative_config=drafts, environment={"VLLM_USE_V2_MODEL_RUNNER": runner},
        num_gpu_blocks_override=40,
    )  # fmt: skip
    base = tokens(40, 1)
    prompts = [(base * 5)[: 140 + 7 * number] for number in range(4)]
    first = engine.generate(*prompts, tokens=60)
    engine.settle()
    engine.forget()
    hits = engine.counter("external_prefix_cache_hits")
    engine.run(RECORD)
    again = [engine.generate(prompt, tokens=60)[0] for prompt in prompts]
    steps = steps_of(engine.run("result = calls"))
    save = ["wait_for_save"]
    after = [*REPORTS, *save] if runner == "0" else [*save, *REPORTS]
    loading = ["handle_preemptions", "start_load_kv", "wait_for_layer_load", *after]
    computing = ["handle_preemptions", "wait_for_layer_load", *after]
    assert loading in steps  # as tests.engines.vllm.engine_runner has it
    computing.insert(2, "start_load_kv")
    assert computing in steps
    assert engine.counter("external_prefix_cache_hits") > hits
    assert [one["tokens"] for one in again] == [one["tokens"] for one in first]
    assert engine.counter("weir_loaded_objects") > 0
    assert engine.counter("weir_stored_bytes") > 0
    plain = start()
    assert [one["tokens"] for one in plain.generate(*prompts, tokens=60)] == [one["tokens"] for one in first]


CHANGE = """
def change(model):
    import torch
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "layernorm" in name:
                parameter.copy_(torch.rand(parameter.shape, generator=generator) + 0.3)
llm.apply_model(change)
"""


def test_another_connector_that_fails_and_new_weights(start: Start, home: Home) -> None:
    engine = start(transfer=beside_a_failing_peer(home))
    prompt, held = tokens(230, 2), 1 + 2 * 7

    # vLLM computes what the other connector could not load; that alone is stored.
    right = engine.generate(prompt)
    engine.settle()
    assert len(home.store.places()) == held
    engine.run("from tests.engines.live.failing_peer import FailingPeer; FailingPeer.reports = False")
    engine.generate(tokens(230, 6))  # whatever the other connector loads, nothing of it is stored
    engine.generate(tokens(230, 6), tokens=30)
    engine.settle()
    assert len(home.store.places()) == held
    engine.run("FailingPeer.claims = False")
    hits = engine.counter("external_prefix_cache_hits")
    engine.forget()
    assert_same(engine.generate(prompt), right)
    assert engine.counter("external_prefix_cache_hits") == hits + 224

    # New weights: what they make is not stored as long as the engine holds KV of the old ones.
    engine.run(CHANGE)
    engine.generate(tokens(200, 5))
    engine.settle()
    assert len(home.store.places()) == held
    assert engine.run("result = llm.reset_prefix_cache(reset_connector=True)") is True
    new = engine.generate(prompt)
    assert new[0]["logprobs"] != right[0]["logprobs"]
    assert engine.counter("external_prefix_cache_hits") == hits + 224  # nothing of the old ones was found
    engine.settle()
    assert len(home.store.places()) == 2 * held - 1
    engine.forget()
    assert_same(engine.generate(prompt), new)
    assert engine.counter("external_prefix_cache_hits") == hits + 2 * 224
    core = "llm.llm_engine.engine_core.engine_core"
    engine.run(f"{core}.pause_scheduler(mode='abort', clear_cache=True); {core}.resume_scheduler()")
    assert_same(engine.generate(prompt), new)
    assert engine.counter("external_prefix_cache_hits") == hits + 2 * 224
    engine.settle()
    engine.run(f"{core}.model_executor.driver_worker.model_runner.model.load_weights([])")  # as training does
    engine.forget()
    assert_same(engine.generate(prompt), new)
    assert engine.counter("external_prefix_cache_hits") == hits + 2 * 224


def test_training_gives_new_weights_to_an_engine_that_torchrun_started(start: Start, home: Home) -> None:
    """The engine's worker is in its own process, though its executor is not the one that vLLM chooses."""
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    prompt = tokens(230, 9)
    engine = start(
        transfer=transfer(home),
        distributed_executor_backend="external_launcher",
        environment={**ranks, "MASTER_PORT": str(free_port())},
    )
    engine.generate(prompt)
    engine.settle()
    engine.forget()
    engine.generate(prompt)
    hits = engine.counter("external_prefix_cache_hits")
    assert hits == 224
    core = "llm.llm_engine.engine_core.engine_core"
    engine.run(f"{core}.model_executor.driver_worker.model_runner.model.load_weights([])")
    engine.forget()
    engine.generate(prompt)
    assert engine.counter("external_prefix_cache_hits") == hits


@pytest.mark.parametrize("engine_has_own_process", ["0", "1"])
def test_counters_under_a_multi_connector(start: Start, home: Home, engine_has_own_process: str) -> None:
    """vLLM rebuilds each connector's counters by its name, in the process that logs them."""
    engine = start(
        transfer=beside_a_failing_peer(home),
        environment={
            "VLLM_ENABLE_V1_MULTIPROCESSING": engine_has_own_process,
            "VLLM_LOGGING_STREAM": "ext://sys.stderr",
        },
    )
    for seed in range(3):
        engine.generate(tokens(200, seed))
    assert engine.counter("weir_lookups") >= 3
    engine.run("llm.llm_engine.do_log_stats()")
    assert "KV Transfer metrics: WeirConnector={" in engine.log.read_text(errors="replace")


LOSE = """
pool, = open_pools()
load = pool.begin_load
def lossy(items, on_moved):
    return load(items, lambda number, arrived: on_moved(number, arrived and number != 1))
pool.begin_load = lossy
"""


@RUNNERS
def test_a_load_that_fails_while_the_next_step_is_scheduled(start: Start, home: Home, runner: str) -> None:
    """A GPU's engine schedules a step while the one before runs, which may be computing on what fails."""
    prompts = [tokens(200 + number, 30 + number) for number in range(3)]
    environment = {"VLLM_USE_V2_MODEL_RUNNER": runner}
    engine = start(transfer=transfer(home), async_scheduling=True, environment=environment)
    right = engine.generate(*prompts, tokens=12)
    engine.settle()
    engine.forget()
    assert_same(engine.generate(*prompts, tokens=12), right)
    hits = engine.counter("external_prefix_cache_hits")
    assert hits == 3 * 192
    engine.forget()
    engine.run(LOSE)
    assert_same(engine.generate(*prompts, tokens=12), right)
    assert engine.counter("external_prefix_cache_hits") > hits


FAIL = """
core = llm.llm_engine.engine_core.engine_core
model = core.model_executor.driver_worker.worker.model_runner.model
plain = model.forward
def fail(*arguments, **named):
    raise MemoryError
model.forward = fail
try:
    generate([PROMPT], 4)
except MemoryError:
    model.forward = plain
    llm.llm_engine.abort_request(list(llm.llm_engine.output_processor.request_states), internal=True)
    result = generate([PROMPT], 4)[0]["cached"]
"""


@pytest.mark.parametrize("ahead", [False, True])
def test_nothing_is_stored_of_a_step_that_raised_an_error(start: Start, home: Home, ahead: bool) -> None:
    """vLLM lets a connector store all the same. If its engine goes on, as one in the caller's process does,
    it finds blocks in its own cache that were never computed."""
    prompt = tokens(200, 3)
    right = start().generate(prompt)
    engine = start(transfer=transfer(home), async_scheduling=ahead)
    assert engine.run(FAIL.replace("PROMPT", repr(prompt))) == 192
    engine.settle()
    assert len(home.store.places()) == 1  # the shape of its blocks
    is_cleared = engine.run("result = llm.reset_prefix_cache()")
    assert is_cleared == (not ahead)  # with steps ahead, vLLM keeps the blocks of the step that failed
    if not is_cleared:
        return
    assert_same(engine.generate(prompt), right)
    engine.settle()
    assert len(home.store.places()) == 1 + 2 * 6


FAIL_TO_SAMPLE = """
core = llm.llm_engine.engine_core.engine_core
runner = core.model_executor.driver_worker.worker.model_runner
plain = runner._sample
def fail(*arguments, **named):
    raise ValueError("a logits processor")
runner._sample = fail
result = 0
for prompts in (PROMPTS, [[5] * 40], [[6] * 40]):  # with steps ahead, the next call gets another step's error
    try:
        generate(prompts, 4)
    except ValueError:
        result += 1
        runner._sample = plain
        llm.llm_engine.abort_request(list(llm.llm_engine.output_processor.request_states), internal=True)
"""


@pytest.mark.parametrize("ahead", [False, True])
def test_what_failed_to_load_in_a_step_that_chose_no_token_is_neither_used_nor_stored(
    start: Start, home: Home, ahead: bool
) -> None:
    """vLLM drops what the workers say of such a step. Its own cache has the blocks, and what was computed on
    them, and with loads in the background it would keep blocks for ever."""
    shared = tokens(200, 3)
    prompt = shared[:128] + tokens(100, 4)
    right = start().generate(prompt)
    engine = start(transfer=transfer(home), async_scheduling=ahead)
    engine.generate(shared)
    engine.settle()
    engine.forget()
    engine.run(LOSE)
    assert engine.run(FAIL_TO_SAMPLE.replace("PROMPTS", repr([tokens(80, 6), prompt])))
    assert_same(engine.generate(prompt), right)
    engine.generate(tokens(200, 5))
    engine.settle()
    if not ahead:  # with steps ahead, vLLM keeps the blocks of the step that failed
        assert engine.run("result = llm.reset_prefix_cache()")
    assert_same(start(transfer=transfer(home)).generate(prompt), right)


def test_nothing_is_stored_of_a_step_that_a_signal_ends(start: Start, home: Home) -> None:
    """Ctrl-C or a rollout ends vLLM's workers wherever they are, also between two layers."""
    prompt = tokens(200, 3)
    ending = beside_a_failing_peer(home, "EndingPeer")
    with pytest.raises(AssertionError):
        start(transfer=ending, distributed_executor_backend="mp").generate(prompt)
    start()  # which takes longer than what was sent
    assert len(home.store.places()) == 1  # the shape of its blocks


SPOIL = """
worker = llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker
layer = worker.model_runner.model.model.layers[1]
def spoil(module, arguments, output):
    return tuple(one * float("nan") for one in output)
hook = layer.register_forward_hook(spoil)
generate([PROMPT], 4)
hook.remove()
"""


def test_kv_that_is_no_number_is_not_stored(start: Start, home: Home) -> None:
    """A kernel that goes wrong once spoils an engine's own cache for a while, and a pool for good."""
    prompt = tokens(200, 3)
    engine = start(transfer=transfer(home))
    engine.run(SPOIL.replace("PROMPT", repr(prompt)))
    engine.settle()
    assert len(home.store.places()) == 1  # the shape of its blocks
    engine.forget()
    assert_same(engine.generate(prompt), start().generate(prompt))
    engine.settle()
    assert len(home.store.places()) == 1 + 2 * 6


LOSE_ALL = """
pool, = open_pools()
load = pool.begin_load
pool.begin_load = lambda items, on_moved: load(items, lambda number, arrived: on_moved(number, False))
worker = llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker
for one in worker.model_runner.kv_caches:
    one.fill_(3.0)
"""


def test_a_request_waits_for_what_another_one_computes_again_in_parts(
    start: Start, home: Home, tmp_path: Path
) -> None:
    """They share blocks that failed to load. vLLM has the first request compute them, 40 tokens a step, and
    the other one go on at once, so that its answer was another one."""
    make_all(tmp_path, 1)
    base = tokens(224, 1)
    prompts = [base + tokens(10, 5), base + tokens(20, 6)]
    # The V1 runner, since vLLM's V2 runner loads in the background.
    engine = start(
        tmp_path / "llama", transfer=transfer(home), long_prefill_token_threshold=40,
        environment={"VLLM_USE_V2_MODEL_RUNNER": "0"},
    )  # fmt: skip
    right = engine.generate(*prompts)
    engine.settle()
    engine.forget()
    engine.run(LOSE_ALL)
    assert_same(engine.generate(*prompts), right)
    assert engine.counter("weir_loaded_objects") > 0


@pytest.mark.parametrize("loading", ["layerwise", "background"])
def test_nor_does_it_go_on_with_what_another_connector_could_not_load(
    start: Start, home: Home, tmp_path: Path, loading: str
) -> None:
    """The connector beside Weir's fails to load them, and Weir's loads in either way."""
    make_all(tmp_path, 1)
    base = tokens(224, 1)
    prompts = [base + tokens(10, 5), base + tokens(20, 6)]
    both = beside_a_failing_peer(home, role="kv_producer", loading=loading)  # so that both start in one step
    engine = start(
        tmp_path / "llama", transfer=both, long_prefill_token_threshold=40,
        environment={"VLLM_USE_V2_MODEL_RUNNER": "0"},
    )  # fmt: skip
    assert_same(engine.generate(*prompts), start(tmp_path / "llama").generate(*prompts))


def test_a_multi_connector_that_fails_requests_is_refused(start: Start, home: Home) -> None:
    """vLLM asks the MultiConnector's own settings what to do with a load that failed."""
    both = beside_a_failing_peer(home)
    del both["kv_load_failure_policy"]
    engine = start(transfer=both)
    assert engine.failure is not None
    assert "set kv_load_failure_policy='recompute'" in engine.failure


def test_a_producer_and_a_consumer(start: Start, home: Home) -> None:
    """Prefill and decode apart: one stores and does not load, the other loads and does not store."""
    prompt, held = tokens(200, 3), 1 + 2 * 6
    # It completes six blocks in a step, and has room for the copy of one.
    producer = start(transfer=transfer(home, role="kv_producer", waiting_bytes=70_000))
    producer.generate(prompt, tokens=1)
    producer.settle()
    assert len(home.store.places()) == held
    producer.forget()
    right = producer.generate(prompt)
    assert producer.counter("external_prefix_cache_hits") == 0
    consumer = start(transfer=transfer(home, role="kv_consumer"))
    assert_same(consumer.generate(prompt), right)
    assert consumer.counter("external_prefix_cache_hits") == 192
    consumer.generate(tokens(200, 4))
    consumer.settle()
    assert len(home.store.places()) == held


BESIDE = """
from vllm import SamplingParams
from vllm.lora.request import LoRARequest
adapter = LoRARequest("sql", 1, {folder!r})
sampling = SamplingParams(temperature=0, max_tokens=250, ignore_eos=True, detokenize=False)
prompts = [{{"prompt_token_ids": prompt}} for prompt in {prompts}]
answers = llm.generate(prompts, sampling, lora_request=[None, adapter], use_tqdm=False)
settle()
result = list(answers[0].outputs[0].token_ids)
"""


def test_a_request_beside_one_with_an_adapter_stores_nothing_wrong(
    start: Start, home: Home, tmp_path: Path
) -> None:
    """On CPUs, vLLM computes it with the other's adapter."""
    folder, prompts = tmp_path / "sql", [tokens(200, seed) for seed in (1, 2)]
    make_all(tmp_path, 1)
    write_adapter(folder, 1)
    mode = {"folder": tmp_path / "llama", "enable_lora": True, "max_lora_rank": 8, "max_loras": 1}
    one = start(transfer=transfer(home), **mode)
    turn = prompts[0] + one.run(BESIDE.format(folder=str(folder), prompts=prompts))
    assert "KV of requests without an adapter is not stored" in one.log.read_text(errors="replace")
    one.close()
    other = start(transfer=transfer(home), **mode)
    found = other.generate(turn)
    assert_same(found, start(tmp_path / "llama").generate(turn))


SESSION = """
from vllm import SamplingParams
from vllm.v1.request import RequestStatus
core = llm.llm_engine.engine_core.engine_core
def turn(tokens):
    params = SamplingParams(temperature=0, max_tokens=2, ignore_eos=True, detokenize=False)
    prompt = {"type": "token", "prompt_token_ids": tokens}
    process = llm.llm_engine.input_processor.process_inputs
    request, wave = core.preprocess_add_request(process("one", prompt, params, ("generate",), resumable=True))
    core.add_request(request, wave)
    status = None
    while status != RequestStatus.WAITING_FOR_STREAMING_REQ:
        core.post_step(core.step_fn()[1])
        status = core.scheduler.requests["one"].status
"""
END_SESSION = """
result = list(core.scheduler.requests["one"].all_token_ids)
core.scheduler.finish_requests("one", RequestStatus.FINISHED_ABORTED)
"""


def test_what_a_streaming_session_computes_is_not_stored(start: Start, home: Home) -> None:
    """vLLM 0.32 counts accepted drafts behind a turn's last token as computed tokens of the next turn, and
    gives such blocks to others."""
    drafts = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3}
    engine = start(transfer=transfer(home), speculative_config=drafts)
    begin = tokens(40, 1)
    begin += engine.generate(begin, tokens=120)[0]["tokens"][:85]  # repeats itself, so that drafts are right
    engine.settle()
    engine.forget()
    engine.run(SESSION)
    engine.run(f"turn({begin!r})")
    engine.run(f"turn({tokens(60, 9)!r})")
    prompt = engine.run(END_SESSION)[:180] + tokens(20, 10)
    assert engine.generate(prompt)[0]["cached"] == 160  # of which 96 were there before the session
    engine.settle()
    engine.forget()
    found = engine.generate(prompt)
    assert found[0]["cached"] == 96
    assert "What another connector loads, or a streaming session computes" in engine.log.read_text()
    assert_same(found, start().generate(prompt))


def test_sinks_beside_windows_are_refused(start: Start, home: Home, tmp_path: Path) -> None:
    """gpt-oss has such layers. With a connector, vLLM answers the same prompt differently each time."""
    folder = tmp_path / "sinks"
    torch.manual_seed(1)
    sizes = {
        "vocab_size": 256, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 32,
        "num_attention_heads": 2, "num_key_value_heads": 1, "num_local_experts": 2, "num_experts_per_tok": 1,
        "sliding_window": 64, "layer_types": ["sliding_attention", "full_attention"], "pad_token_id": 0,
    }  # fmt: skip
    GptOssForCausalLM(GptOssConfig(**sizes)).save_pretrained(folder)
    engine = start(folder, transfer=transfer(home))
    assert engine.failure is not None
    assert "attention sinks beside sliding windows" in engine.failure


def test_rotary_embeddings_that_transformers_chooses_by_the_batch_are_refused(
    start: Start, home: Home, tmp_path: Path
) -> None:
    """A prompt of 230 tokens found KV that was computed in one of 800: log-probabilities differed by 0.7."""
    make_all(tmp_path, 1)
    engine = start(tmp_path / LONGROPE, transfer=transfer(home), model_impl="transformers")
    assert engine.failure is not None
    assert "depends on the longest prompt in the batch" in engine.failure


def test_drafts_with_kv_of_their_own_are_refused(start: Start, home: Home, tiny: Path) -> None:
    drafts = {"method": "draft_model", "model": str(tiny), "num_speculative_tokens": 2}
    engine = start(transfer=transfer(home), speculative_config=drafts)
    assert engine.failure is not None
    log = engine.failure + engine.log.read_text(errors="replace")
    assert "speculative decoding by 'draft_model' is not possible with the pool" in log


@pytest.fixture(scope="module")
def latent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of DeepSeek's architecture, whose KV is one latent vector a token (MLA)."""
    from transformers import DeepseekV2Config, DeepseekV2ForCausalLM

    folder = tmp_path_factory.mktemp("model") / "latent"
    torch.manual_seed(0)
    config = DeepseekV2Config(
        vocab_size=4096,
        hidden_size=256,
        intermediate_size=512,
        moe_intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=16,
        num_key_value_heads=16,
        kv_lora_rank=512,
        q_lora_rank=None,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        n_routed_experts=4,
        n_shared_experts=1,
        num_experts_per_tok=2,
        first_k_dense_replace=2,
        max_position_embeddings=4096,
        bos_token_id=0,
        eos_token_id=1,
    )
    DeepseekV2ForCausalLM(config).eval().save_pretrained(folder)
    return folder


def test_latent_kv_from_the_pool_is_what_the_engine_itself_caches(
    start: Start, home: Home, latent: Path
) -> None:
    """It is refused where vLLM's kernel can't compute behind a cached prefix, as on CPUs without AMX."""
    prompt = tokens(200, 6)
    engine = start(latent, transfer=transfer(home), block_size=16)
    if not torch.cpu._is_amx_tile_supported():
        assert engine.failure is not None
        log = engine.failure + engine.log.read_text(errors="replace")
        assert "vLLM's prefix caching is off" in log
        return
    first = engine.generate(prompt, tokens=16)
    engine.settle()
    own = engine.generate(prompt, tokens=16)
    assert own[0]["cached"] == 192
    assert engine.counter("external_prefix_cache_hits") == 0
    engine.forget()
    pooled = engine.generate(prompt, tokens=16)
    assert engine.counter("external_prefix_cache_hits") == 192
    assert pooled[0]["tokens"] == own[0]["tokens"] == first[0]["tokens"]
    assert pooled[0]["logprobs"] == own[0]["logprobs"]  # to the last bit
