"""transformers' DynamicCache through the pool: logits equal to the bit."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

pytest.importorskip("transformers", reason="make test-engines")

import torch
from transformers import (
    BartConfig,
    BartForCausalLM,
    BertConfig,
    BertLMHeadModel,
    BigBirdConfig,
    BigBirdForCausalLM,
    CpmAntConfig,
    CpmAntForCausalLM,
    DeepseekV2Config,
    DeepseekV2ForCausalLM,
    DynamicCache,
    GemmaConfig,
    GemmaForCausalLM,
    GitConfig,
    GitForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    PreTrainedModel,
    RoFormerConfig,
    RoFormerForCausalLM,
    TrOCRConfig,
    TrOCRForCausalLM,
)
from transformers.cache_utils import QuantizedLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from engines.transformers import cache
from hostlib.engine import KvSpace, PoolConfig, open_pool
from hostlib.protocol.errors import KeySpaceError
from hostlib.protocol.seal import PUBLIC_SECRET, Seal

BLOCK_TOKENS = 16


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_cache_from_the_pool_gives_the_same_logits(
    pool_settings: dict[str, object], dtype: torch.dtype
) -> None:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval().to(dtype)
    tokens = torch.randint(0, 128, (1, 5 * BLOCK_TOKENS + 7))
    space = cache.kv_space(model, "tiny", BLOCK_TOKENS)
    pool = open_pool(PoolConfig.from_mapping(pool_settings), space)
    try:
        with torch.no_grad():
            kept = DynamicCache(config=config)
            model(tokens[:, : 5 * BLOCK_TOKENS], past_key_values=kept)
            assert cache.store(pool, tokens[0].tolist(), kept, model) == 5
            expected = model(tokens[:, 5 * BLOCK_TOKENS :], past_key_values=kept).logits

            loaded = cache.load(pool, tokens[0].tolist(), model)
            assert loaded.get_seq_length() == 5 * BLOCK_TOKENS
            logits = model(tokens[:, 5 * BLOCK_TOKENS :], past_key_values=loaded).logits
        assert torch.equal(logits, expected)
        assert cache.load(pool, tokens[0].flip(0).tolist(), model).get_seq_length() == 0
    finally:
        pool.close()


SMALL = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


def test_nothing_is_stored_from_a_block_on_that_holds_no_numbers(pool_settings: dict[str, object]) -> None:
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    tokens = torch.randint(2, 128, (1, 4 * BLOCK_TOKENS))
    pool = open_pool(PoolConfig.from_mapping(pool_settings), cache.kv_space(model, "spoiled", BLOCK_TOKENS))
    try:
        kept = DynamicCache(config=model.config)
        with torch.no_grad():
            model(tokens, past_key_values=kept)
        kept.layers[1].values[0, 0, 2 * BLOCK_TOKENS + 3, 0] = float("nan")
        assert cache.store(pool, tokens[0].tolist(), kept, model) == 2
    finally:
        pool.close()


@pytest.mark.parametrize(("ends", "found"), [(1, 2), (None, 2), ([1, 0], 4)])
def test_behind_a_padding_token_that_generate_masks_nothing_is_loaded(
    pool_settings: dict[str, object], ends: int | list[int] | None, found: int
) -> None:
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    model.generation_config.pad_token_id, model.generation_config.eos_token_id = 0, ends
    tokens = torch.randint(2, 128, (1, 4 * BLOCK_TOKENS + 1))
    tokens[0, 2 * BLOCK_TOKENS + 5] = 0
    pool = open_pool(PoolConfig.from_mapping(pool_settings), cache.kv_space(model, "padded", BLOCK_TOKENS))
    try:
        kept = DynamicCache(config=model.config)
        model.generate(tokens, max_new_tokens=1, past_key_values=kept)
        assert cache.store(pool, tokens[0].tolist(), kept, model) == 4

        loaded = cache.load(pool, tokens[0].tolist(), model)
        assert loaded.get_seq_length() == found * BLOCK_TOKENS
        with torch.no_grad():
            logits = model(tokens[:, found * BLOCK_TOKENS :], past_key_values=loaded).logits
            expected = model(tokens).logits[:, found * BLOCK_TOKENS :]
        assert torch.allclose(logits, expected, atol=1e-5)
        masking = keys(pool.space)
        model.generation_config.pad_token_id = None
        assert (keys(cache.kv_space(model, "padded", BLOCK_TOKENS)) != masking) == (found == 2)
    finally:
        pool.close()


def keys(space: KvSpace) -> list[bytes]:
    return list(space.block_keys(Seal(0, PUBLIC_SECRET), range(64)))


def test_other_weights_and_other_settings_share_nothing() -> None:
    def made(seed: int = 1, **changes: object) -> LlamaForCausalLM:
        torch.manual_seed(seed)
        return LlamaForCausalLM(LlamaConfig(**SMALL, **changes)).eval()

    plain = keys(cache.kv_space(made(), "tiny"))
    assert keys(cache.kv_space(made(), "tiny")) == plain
    edited = made()
    with torch.no_grad():
        edited.model.layers[1].mlp.down_proj.weight[3, 5] += 1
    others = [edited, made(seed=2), made(rms_norm_eps=1e-3), made(rope_theta=5000.0)]
    named = [keys(cache.kv_space(one, "tiny")) for one in others]
    assert len({key for chain in (plain, *named) for key in chain}) == 5 * len(plain)


class Scaled(torch.nn.Linear):  # type: ignore[misc] # torch is not in the project's environment
    """A layer like an adapter's: its scale is no parameter."""

    scale = 1.0

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        return super().forward(numbers) * self.scale


def adapt(model: LlamaForCausalLM) -> None:
    model.model.layers[0].mlp.down_proj = Scaled(64, 64).eval()


def steer(model: LlamaForCausalLM) -> None:
    model.model.layers[0].register_forward_hook(lambda module, given, said: said)


def replace_forward(model: LlamaForCausalLM) -> None:
    model.model.norm.forward = lambda numbers: numbers * 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (adapt, "model.layers.0.mlp.down_proj is a .*Scaled: merge adapters"),
        (steer, "model.layers.0 has a hook"),
        (replace_forward, "model.norm has a hook"),
        (lambda model: model.train(), "call its eval"),
    ],
)
def test_what_neither_weights_nor_configuration_say_is_refused(
    change: Callable[[LlamaForCausalLM], object], why: str
) -> None:
    """An adapter that is switched off, a steered model: their parameters are the same."""
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    before = keys(cache.kv_space(model, "tiny"))
    with torch.no_grad():
        model(torch.zeros(1, 20, dtype=torch.long), output_hidden_states=True, output_attentions=True)
    assert keys(cache.kv_space(model, "tiny")) == before  # what transformers itself hooks in changes nothing
    change(model)
    with pytest.raises(KeySpaceError, match=why):
        cache.kv_space(model, "tiny")


def train(model: LlamaForCausalLM) -> None:
    """One step of an optimizer."""
    model(torch.arange(20)[None], labels=torch.arange(20)[None]).loss.backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()


def merge(model: LlamaForCausalLM) -> None:
    """Add an adapter's weights, as peft does."""
    layer = model.model.layers[0].mlp.down_proj
    layer.weight.data += torch.ones_like(layer.weight.data) * 0.1


def swap_rows(model: LlamaForCausalLM) -> None:
    weight = model.model.embed_tokens.weight
    weight.data = weight.data.flip(0)


def tie_again(model: LlamaForCausalLM) -> None:
    model.model.layers[0].mlp.up_proj.weight = model.model.layers[0].mlp.gate_proj.weight


def scale_attention(model: LlamaForCausalLM) -> None:
    model.model.layers[0].self_attn.scaling *= 0.5


def act_otherwise(model: LlamaForCausalLM) -> None:
    model.model.layers[0].mlp.act_fn = torch.nn.ReLU()


def scale_positions(model: LlamaForCausalLM) -> None:
    model.model.rotary_emb.attention_scaling = 2.0


CHANGES = [train, merge, swap_rows, tie_again, scale_attention, act_otherwise, scale_positions]


@pytest.mark.parametrize("change", [*CHANGES, lambda model: model.to(torch.float16)])
def test_a_model_that_changes_behind_its_key_space_neither_stores_nor_loads(
    pool_settings: dict[str, object], change: Callable[[LlamaForCausalLM], object]
) -> None:
    """Others would get KV of the new weights under the name of the former ones, and it theirs."""
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval().to(torch.bfloat16)
    tokens = torch.randint(2, 128, (1, 2 * BLOCK_TOKENS + 1))
    pool = open_pool(PoolConfig.from_mapping(pool_settings), cache.kv_space(model, "changing", BLOCK_TOKENS))
    try:
        kept = DynamicCache(config=model.config)
        model.generate(tokens, max_new_tokens=1, past_key_values=kept)
        assert cache.store(pool, tokens[0].tolist(), kept, model) == 2
        assert cache.load(pool, tokens[0].tolist(), model).get_seq_length() == 2 * BLOCK_TOKENS
        change(model)
        with pytest.raises(KeySpaceError, match="others than when its key space was made"):
            cache.load(pool, tokens[0].tolist(), model)
        computed = DynamicCache(config=model.config)
        with torch.no_grad():
            model(tokens, past_key_values=computed)
        with pytest.raises(KeySpaceError, match="others than when its key space was made"):
            cache.store(pool, tokens[0].tolist(), computed, model)
    finally:
        pool.close()


@pytest.mark.parametrize("change", CHANGES)
def test_all_that_a_model_computes_with_counts(change: Callable[[LlamaForCausalLM], object]) -> None:
    """Also numbers beside parameters, as of an experiment that scales attention, and layers without any."""
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    before = keys(cache.kv_space(model, "tiny"))
    change(model)
    assert keys(cache.kv_space(model, "tiny")) != before


def attend(*_: object, **__: object) -> None:
    """Stand in the place of a function of transformers."""


@pytest.mark.parametrize(
    "place", ["LlamaAttention.forward", "LlamaModel.forward", "apply_rotary_pos_emb", "LlamaRMSNorm"]
)
def test_a_function_that_a_program_puts_in_the_place_of_transformers_is_refused(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    monkeypatch.setattr(f"transformers.models.llama.modeling_llama.{place}", attend)
    with pytest.raises(KeySpaceError, match=f"{place} is replaced by code of {__name__}"):
        cache.kv_space(model, "tiny")


@pytest.mark.parametrize("name", ["sdpa", "mine"])
def test_attention_that_is_registered_under_a_name_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also under one of transformers' own."""

    def mine(*_: object, **__: object) -> None: ...

    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, name, mine)
    model.config._attn_implementation = name
    with pytest.raises(KeySpaceError, match=f"attention '{name}' is code of its own"):
        cache.kv_space(model, "tiny")


class Rounded(QuantizedLayer):  # type: ignore[misc] # transformers is not in the project's environment
    """A layer that keeps its last tokens alone as they were computed."""

    def _quantize(self, tensor: torch.Tensor, axis: int) -> torch.Tensor:
        return tensor.half()

    def _dequantize(self, q_tensor: torch.Tensor) -> torch.Tensor:
        return q_tensor.float()


def rounded(computed: DynamicCache) -> DynamicCache:
    """A cache of the same tokens that quantized all but the last `BLOCK_TOKENS`."""
    for number, layer in enumerate(computed.layers):
        quantized = Rounded()
        for part in layer.keys.split(BLOCK_TOKENS, dim=2):
            quantized.update(part, part)
        computed.layers[number] = quantized
    return computed


def test_a_cache_that_is_not_one_sequence_in_the_models_type_is_not_stored(
    pool_settings: dict[str, object],
) -> None:
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    pool = open_pool(PoolConfig.from_mapping(pool_settings), cache.kv_space(model, "tiny", BLOCK_TOKENS))
    prompts = torch.randint(0, 128, (2, 2 * BLOCK_TOKENS))

    def kept(batch: int, computing: torch.nn.Module) -> DynamicCache:
        computed = DynamicCache(config=model.config)
        with torch.no_grad():
            computing(prompts[:batch], past_key_values=computed)
        return computed

    def stored(one: DynamicCache) -> int:
        return cache.store(pool, prompts[0].tolist(), one, model)

    try:
        with pytest.raises(KeySpaceError, match="holds 2 sequences"):
            stored(kept(2, model))
        with pytest.raises(KeySpaceError, match=r"in torch.bfloat16, but the model in float32"):
            stored(kept(1, copy.deepcopy(model).bfloat16()))
        with torch.autocast("cpu", torch.bfloat16), pytest.raises(KeySpaceError, match="under autocast"):
            stored(kept(1, model))
        with pytest.raises(KeySpaceError, match="the cache has Rounded: only a DynamicCache"):
            stored(rounded(kept(1, model)))
        elsewhere = kept(1, model)
        elsewhere.offloading = True
        with pytest.raises(KeySpaceError, match="the cache is offloaded"):
            stored(elsewhere)
        assert stored(kept(1, model)) == 2
    finally:
        pool.close()


@pytest.mark.parametrize("computed", [0, 2 * BLOCK_TOKENS])
@pytest.mark.parametrize("goes_on", [False, True])
def test_a_cache_of_a_forward_pass_that_ended_between_two_layers_is_not_stored(
    pool_settings: dict[str, object], computed: int, goes_on: bool
) -> None:
    """Its first layers hold a token more than the others. transformers goes on with it, at wrong places."""
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    pool = open_pool(PoolConfig.from_mapping(pool_settings), cache.kv_space(model, "tiny", BLOCK_TOKENS))
    tokens = torch.randint(2, 128, (1, 4 * BLOCK_TOKENS))
    kept = DynamicCache(config=model.config)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        with torch.no_grad():
            if computed:
                model(tokens[:, :computed], past_key_values=kept)
            hook = model.model.layers[1].register_forward_pre_hook(interrupt)
            with pytest.raises(KeyboardInterrupt):
                model(tokens[:, computed:][:, : 1 if computed else None], past_key_values=kept)
            hook.remove()
            for place in range(computed, tokens.shape[1]) if goes_on else ():
                model(tokens[:, place : place + 1], past_key_values=kept)
        with pytest.raises(KeySpaceError, match="layers hold different numbers of tokens"):
            cache.store(pool, tokens[0].tolist(), kept, model)
    finally:
        pool.close()


def test_products_of_shortened_numbers_have_another_name() -> None:
    """With TF32, torch shortens float32 numbers before it multiplies them, in the whole process."""
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    plain = keys(cache.kv_space(model, "tiny"))
    try:
        torch.set_float32_matmul_precision("high")
        shortened = keys(cache.kv_space(model, "tiny"))
        torch.set_float32_matmul_precision("highest")
        assert keys(cache.kv_space(model, "tiny")) == plain != shortened
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("other", [False, True])
def test_a_cache_that_holds_more_than_the_given_tokens_is_not_stored(
    pool_settings: dict[str, object], other: bool
) -> None:
    """As where `generate` gets a shorter prompt with a cache that it has filled before.

    transformers adds a part of the prompt to what the cache holds.
    """
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    pool = open_pool(PoolConfig.from_mapping(pool_settings), cache.kv_space(model, "tiny", BLOCK_TOKENS))
    kept, first = DynamicCache(config=model.config), torch.randint(2, 128, (1, 3 * BLOCK_TOKENS))
    second = torch.randint(2, 128, (1, 40)) if other else first[:, :40]
    try:
        for prompt in (first, second):
            said = model.generate(prompt, past_key_values=kept, max_new_tokens=2, min_new_tokens=2)
        assert kept.get_seq_length() > said.shape[1]
        with pytest.raises(KeySpaceError, match="holds 81 tokens, and 42 were given"):
            cache.store(pool, said[0].tolist(), kept, model)
    finally:
        pool.close()


def test_a_model_that_forgets_tokens_is_refused() -> None:
    model = MistralForCausalLM(MistralConfig(**SMALL, sliding_window=16)).eval()
    with pytest.raises(KeySpaceError, match="not those with DynamicSlidingWindowLayer"):
        cache.kv_space(model, "tiny")


def test_a_model_on_several_devices_is_refused() -> None:
    model = LlamaForCausalLM(LlamaConfig(**SMALL)).eval()
    model.lm_head.to("meta")
    with pytest.raises(KeySpaceError, match="parameters are on cpu and meta"):
        cache.kv_space(model, "tiny")


ROPES = (
    {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0},
    {
        "rope_type": "longrope", "rope_theta": 10000.0, "factor": 2.0, "short_factor": [1.0] * 8,
        "long_factor": [4.0] * 8, "original_max_position_embeddings": 32,
    },
)  # fmt: skip


@pytest.mark.parametrize("rope", ROPES, ids=lambda rope: str(rope["rope_type"]))
def test_a_model_whose_first_tokens_depend_on_the_prompts_length_is_refused(rope: dict[str, object]) -> None:
    torch.manual_seed(1)
    model = LlamaForCausalLM(
        LlamaConfig(**SMALL, max_position_embeddings=64, rope_parameters=rope, pad_token_id=0)
    ).eval()
    tokens = torch.randint(0, 128, (1, 100))
    with torch.no_grad():
        short, long = DynamicCache(config=model.config), DynamicCache(config=model.config)
        model(tokens[:, :20], past_key_values=short)
        model(tokens, past_key_values=long)
    assert not torch.allclose(short.layers[1].keys, long.layers[1].keys[:, :, :20], atol=1e-3)
    with pytest.raises(KeySpaceError, match="otherwise than those of a short one"):
        cache.kv_space(model, "tiny")


def git() -> PreTrainedModel:
    eyes = {
        "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "image_size": 32, "patch_size": 16,
    }  # fmt: skip
    return GitForCausalLM(GitConfig(**SMALL, vision_config=eyes, bos_token_id=0, eos_token_id=1))


def gpt2(**more: object) -> PreTrainedModel:
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=128, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1, **more)
    )


def llama_both_ways() -> PreTrainedModel:
    """A Llama whose tokens see those behind them, as in models of embeddings."""
    model = LlamaForCausalLM(LlamaConfig(**SMALL))
    model.config.is_causal = False
    return model


def gemma_both_ways() -> PreTrainedModel:
    return GemmaForCausalLM(GemmaConfig(**SMALL, head_dim=16, use_bidirectional_attention=True))


def bart() -> PreTrainedModel:
    """Its decoder alone, which may be given what an encoder has made."""
    return BartForCausalLM(
        BartConfig(
            vocab_size=128, d_model=32, decoder_layers=1, decoder_attention_heads=2, encoder_layers=1,
            encoder_attention_heads=2,
        )
    )  # fmt: skip


def cpm_ant() -> PreTrainedModel:
    """Its tokens see all others, and its cache begins with tokens of its own."""
    return CpmAntForCausalLM(
        CpmAntConfig(
            vocab_size=128, hidden_size=64, num_attention_heads=4, dim_head=16, dim_ff=64, num_hidden_layers=2
        )
    )  # fmt: skip


def openai_gpt() -> PreTrainedModel:
    """It has no cache, so that nothing would ever be stored."""
    return OpenAIGPTLMHeadModel(OpenAIGPTConfig(vocab_size=128, n_embd=64, n_layer=2, n_head=4))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: BigBirdForCausalLM(BigBirdConfig(**SMALL)), "first tokens depends on those behind"),
        (lambda: RoFormerForCausalLM(RoFormerConfig(**SMALL)), "first tokens depends on those behind"),
        (cpm_ant, "one entry for each token"),
        (openai_gpt, "one entry for each token|can't be tried"),
    ],
    ids=["big_bird", "roformer", "cpmant", "without a cache"],
)
def test_a_model_that_says_nowhere_what_its_tokens_see_is_tried(
    make: Callable[[], PreTrainedModel], why: str
) -> None:
    torch.manual_seed(1)
    with pytest.raises(KeySpaceError, match=why):
        cache.kv_space(make().eval(), "tiny")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (git, "takes image besides the prompt's tokens"),
        (llama_both_ways, "the configuration.* sees tokens that come later"),
        (gemma_both_ways, "self_attn.* sees tokens that come later"),
        (lambda: BertLMHeadModel(BertConfig(**SMALL)), "sees tokens that come later"),
        (lambda: gpt2(add_cross_attention=True), "crossattention.* those of an encoder"),
        (bart, "encoder_attn.* those of an encoder"),
        (
            lambda: TrOCRForCausalLM(TrOCRConfig(vocab_size=128, d_model=32, decoder_layers=1)),
            "encoder_attn.* those of an encoder",
        ),
    ],
    ids=["images", "is_causal", "bidirectional", "encoder", "cross", "decoder", "decoder that says nothing"],
)
def test_a_model_whose_kv_depends_on_more_than_the_tokens_before_is_refused(
    make: Callable[[], PreTrainedModel], why: str
) -> None:
    with pytest.raises(KeySpaceError, match=why):
        cache.kv_space(make().eval(), "tiny")
    cache.kv_space(gpt2().eval(), "tiny")


def test_attention_that_is_not_causal_gives_a_prompt_other_first_tokens() -> None:
    """This is why such models are refused: a block's KV depends on the tokens behind it."""
    model, tokens = llama_both_ways().eval(), torch.randint(0, 128, (1, 40))
    short, long = DynamicCache(config=model.config), DynamicCache(config=model.config)
    with torch.no_grad():
        model(tokens[:, :20], past_key_values=short)
        model(tokens, past_key_values=long)
    assert not torch.allclose(short.layers[1].keys, long.layers[1].keys[:, :, :20], atol=1e-3)


def test_a_cache_with_other_heads_than_the_configuration_says_is_not_stored(
    pool_settings: dict[str, object],
) -> None:
    """DeepSeek's latent attention has keys that are longer than its values."""
    latent = DeepseekV2Config(
        **{**SMALL, "num_key_value_heads": 4}, moe_intermediate_size=32, kv_lora_rank=32, q_lora_rank=None,
        qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, n_routed_experts=2, num_experts_per_tok=1,
        first_k_dense_replace=2,
    )  # fmt: skip
    model = DeepseekV2ForCausalLM(latent).eval()
    pool = open_pool(PoolConfig.from_mapping(pool_settings), cache.kv_space(model, "tiny", BLOCK_TOKENS))
    prompt, kept = torch.randint(0, 128, (1, 2 * BLOCK_TOKENS)), DynamicCache(config=latent)
    try:
        assert cache.store(pool, prompt[0].tolist(), kept, model) == 0
        with torch.no_grad():
            model(prompt, past_key_values=kept)
        with pytest.raises(KeySpaceError, match="not those that the configuration says"):
            cache.store(pool, prompt[0].tolist(), kept, model)
    finally:
        pool.close()
