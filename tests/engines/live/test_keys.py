"""Keys of vLLM's requests, beside the hashes that vLLM's own prefix cache goes by."""

from __future__ import annotations

import gc
import hashlib
import re
import time
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="make test-engines")
pytest.importorskip("vllm", reason="make test-engines")

import torch
from vllm import PoolingParams, SamplingParams
from vllm.lora.request import LoRARequest
from vllm.multimodal.inputs import (
    MultiModalBatchedField,
    MultiModalFeatureSpec,
    MultiModalFieldElem,
    MultiModalKwargsItem,
    PlaceholderRange,
)
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.request import Request

from engines.vllm import keys as keys_module
from engines.vllm import media
from engines.vllm.adapters import AdapterNames
from engines.vllm.errors import AdapterChangedError
from engines.vllm.keys import EngineKeys, RequestKeys
from engines.vllm.media import MediaNames
from engines.vllm.resolved import Resolved
from hostlib.engine import KvSpace
from hostlib.engine.space import UNNAMED
from hostlib.protocol.errors import KeySpaceError
from hostlib.protocol.seal import PUBLIC_SECRET, Seal

BLOCK = 16
SPACE = KvSpace(name="m", model="w", layout="l", dtype="float32", block_tokens=BLOCK, object_bytes=(64,))
SEAL = Seal(0, PUBLIC_SECRET)
SETTINGS = Resolved("settings", (), ())
TYPED = PoolingParams(task="classify", extra_kwargs={"compressed_token_type_ids": 7})
TEXT = list(range(100, 100 + 32 * BLOCK))
IMAGE = [9] * 4 * BLOCK

init_none_hash(sha256)


def image(
    identifier: str, offset: int, content: torch.Tensor | None = None, length: int = len(IMAGE)
) -> MultiModalFeatureSpec:
    """A feature of this content; by default of one that goes with the identifier."""
    if content is None:
        content = torch.tensor(list(identifier.encode()))
    data = MultiModalKwargsItem({"pixel_values": MultiModalFieldElem(content, MultiModalBatchedField())})
    return MultiModalFeatureSpec(
        data=data, modality="image", identifier=identifier, mm_position=PlaceholderRange(offset, length)
    )


def request(tokens: list[int], images: list[MultiModalFeatureSpec] | None = None, **more: Any) -> Request:
    return Request(
        request_id="1", prompt_token_ids=tokens, mm_features=images,
        block_hasher=get_request_block_hasher(BLOCK, sha256),
        **{"sampling_params": SamplingParams(max_tokens=4), "pooling_params": None, **more},
    )  # fmt: skip


def keys(one: Request, space: KvSpace = SPACE, adapter: str | None = None) -> list[bytes]:
    media = MediaNames(BLOCK).begin(one.mm_features).result()
    return RequestKeys(space, SEAL, one, media, adapter).extend(one.num_tokens // BLOCK)


def named_by(engine: EngineKeys, one: Request) -> RequestKeys | None:
    media = engine.begin_media(one)
    wait([media])
    return engine.of(one, media)


def engine_keys(weights: Future[str] | None = None, settings: Resolved = SETTINGS) -> EngineKeys:
    """Those of an engine whose weights are named "w" if nothing else is said."""
    if weights is None:
        weights = Future()
        weights.set_result("w")
    return EngineKeys(SPACE.named(UNNAMED), SEAL, settings, weights, AdapterNames(), MediaNames(BLOCK))


def common(a: list[Any], b: list[Any]) -> int:
    """How many blocks from the first on have the same name."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


TURNS = (
    request(TEXT + list(range(64))),
    request(TEXT + IMAGE + list(range(40)), [image("A", 512)]),
    request(TEXT + IMAGE + list(range(40)) + IMAGE + [1] * 20, [image("A", 512), image("B", 616)]),
    request(TEXT + IMAGE + list(range(40)) + IMAGE + [1] * 20, [image("A", 512), image("C", 616)]),
    request([7, *TEXT, *IMAGE], [image("A", 513)]),
    request([9] * 20 * BLOCK, [image("A", 3), image("A", 70)]),
    request([9] * 20 * BLOCK, [image("A", 3), image("A", 71)]),
    request([9] * 20 * BLOCK, [image("A", 3, length=40), image("B", 43, length=1), image("A", 70)]),
)


@pytest.mark.parametrize("one", range(len(TURNS)))
def test_blocks_share_their_name_exactly_where_vllms_own_hashes_do(one: int) -> None:
    for other in TURNS:
        assert common(keys(TURNS[one]), keys(other)) == common(TURNS[one].block_hashes, other.block_hashes)


def test_an_image_in_a_later_turn_leaves_what_stands_before_it() -> None:
    assert common(keys(TURNS[0]), keys(TURNS[1])) == 32
    assert common(keys(TURNS[1]), keys(TURNS[2])) == 38


def test_a_feature_within_another_is_part_of_the_name_of_each_block_that_it_overlaps() -> None:
    """As a video's sound among its pictures."""
    video = image("video", 0, length=8 * BLOCK)
    one = request([9] * 8 * BLOCK, [video, image("sound 1", 3 * BLOCK, length=8)])
    other = request([9] * 8 * BLOCK, [video, image("sound 2", 3 * BLOCK, length=8)])
    assert common(keys(one), keys(other)) == 3


def test_the_tokens_of_an_image_that_get_its_embeddings_are_part_of_the_name() -> None:
    masks = (None, torch.tensor([True] * 64), torch.tensor([True] * 60 + [False] * 4))
    one = image("A", 512)
    masked = [replace(one, mm_position=PlaceholderRange(512, 64, is_embed=mask)) for mask in masks]
    chains = [keys(request(TEXT + IMAGE, [feature])) for feature in masked]
    assert [common(chains[0], other) for other in chains] == [36, 32, 32]
    assert common(chains[1], chains[2]) == 32


CALLED = ("req-1-image-0", "5f" * 32, hashlib.sha256(b"caller's id").hexdigest())


@pytest.mark.parametrize("called", CALLED)
def test_what_a_caller_calls_an_image_is_no_name_of_its_content(called: str) -> None:
    """Callers may give identifiers of their own (multi_modal_uuids), and vLLM hashes these with options."""
    red, blue = torch.zeros(3, 8, 8), torch.ones(3, 8, 8)
    tokens = TEXT + IMAGE
    here = keys(request(tokens, [image(called, 512, red)]))
    assert common(here, keys(request(tokens, [image(called, 512, blue)]))) == 32
    assert common(here, keys(request(tokens, [image("another name", 512, red)]))) == 36
    nested: Any = [torch.zeros(3, 8, 4), torch.zeros(3, 8, 4)]
    assert common(here, keys(request(tokens, [image(called, 512, nested)]))) == 32
    opaque: Any = object()
    with pytest.raises(KeySpaceError, match="has object in pixel_values"):
        keys(request(tokens, [image(called, 512, opaque)]))


def test_an_image_whose_content_is_elsewhere_has_no_name(caplog: pytest.LogCaptureFixture) -> None:
    """In another process's memory, where vLLM gives an address, or with an encoder on another machine."""
    engine, one = engine_keys(), image("5f" * 32, 512)
    fields = {name: MultiModalFieldElem(7, MultiModalBatchedField()) for name in ("address", "monotonic_id")}
    for data in (MultiModalKwargsItem(fields), None):
        assert named_by(engine, request(TEXT + IMAGE, [replace(one, data=data)])) is None
    assert ["content of an image is not in" in record.message for record in caplog.records] == [True]


def refused(names: MediaNames, one: MultiModalFeatureSpec, **more: bool) -> str:
    """Why an image has no name; empty if it has one."""
    return str(names.begin([one], **more).exception() or "")


def test_an_identifier_that_stood_for_two_contents_is_used_for_none() -> None:
    """vLLM's caches of KV and of encoded images go by it, so that one may be computed with the other's."""
    names, red, blue = MediaNames(BLOCK), torch.zeros(3, 8, 8), torch.ones(3, 8, 8)
    assert not refused(names, image("A", 512, red))
    assert not refused(names, image("A", 70, red))
    assert not refused(names, image("B", 512, blue))
    for content in (blue, red):
        assert "has the identifier of another one" in refused(names, image("A", 512, content))
    assert "not in the scheduler" in refused(names, replace(image("C", 512, red), data=None))
    assert "has the identifier of another one" in refused(names, image("C", 512, red))
    assert not refused(names, image("B", 512, blue))


def test_identifiers_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_IDENTIFIERS", 3)
    names = MediaNames(BLOCK)
    for number in range(9):
        assert not refused(names, image(str(number), 512))
    assert list(names._contents) == ["6", "7", "8"]


@pytest.mark.parametrize(
    ("config", "has_adapter", "why"),
    [
        ({}, True, ""),
        ({"connector": "ECExampleConnector", "is_ec_consumer": True}, False, "elsewhere .ECExampleConnector"),
        ({"connector": "ECExampleConnector", "is_ec_consumer": False}, False, ""),
        ({"manager": "somebody.CacheManager"}, False, "elsewhere .somebody.CacheManager"),
        ({"tower": True}, True, "an adapter changes how images"),
        ({"tower": True}, False, ""),
        ({"is_seen_whole": True}, False, "tokens see those behind them"),
        ({"is_seen_whole": True, "is_computed_whole": True}, False, ""),
        ({"attention": "fp8"}, False, "depends on those before them, or on a file"),
        ({"pruning": 0.5}, False, "computes at other positions"),
        ({"pruning": 0.0}, False, ""),
    ],
)
def test_images_whose_kv_may_not_be_that_of_their_content_have_no_name(
    config: dict[str, Any], has_adapter: bool, why: str
) -> None:
    """vLLM takes an encoded image by its identifier, whatever weights or adapter it was encoded with.

    In Gemma 3, an image's tokens see one another: computed in two chunks, the first does not see the second.
    Where vLLM leaves out tokens of videos, it corrects the positions behind them as it encodes.
    """
    transfer = SimpleNamespace(
        ec_connector=config.get("connector"), is_ec_consumer=config.get("is_ec_consumer", False)
    )
    vllm_config: Any = SimpleNamespace(
        ec_transfer_config=transfer if "connector" in config else None,
        ec_manager_config=SimpleNamespace(encoder_cache_manager_cls=config.get("manager")),
        lora_config=SimpleNamespace(enable_tower_connector_lora=config.get("tower", False)),
        model_config=SimpleNamespace(
            is_mm_prefix_lm=config.get("is_seen_whole", False),
            multimodal_config=SimpleNamespace(
                mm_encoder_attn_dtype=config.get("attention"), video_pruning_rate=config.get("pruning")
            ),
        ),
        scheduler_config=SimpleNamespace(disable_chunked_mm_input=config.get("is_computed_whole", False)),
    )
    said = refused(MediaNames.of_engine(vllm_config, BLOCK), image("A", 512), has_adapter=has_adapter)
    assert bool(said) == bool(why)
    assert re.search(why, said)


def test_an_image_that_can_not_be_hashed_ends_no_engine(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(torch.Tensor):  # type: ignore[misc] # torch is not in the project's environment
        def detach(self) -> Any:
            raise RuntimeError("no memory")

    one = request(TEXT + IMAGE, [image("A", 512, torch.zeros(3).as_subclass(Broken))])
    assert named_by(engine_keys(), one) is None
    assert ["can't be hashed: RuntimeError('no memory')" in record.message for record in caplog.records] == [
        True
    ]


def test_an_image_of_an_earlier_turn_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names, one = MediaNames(BLOCK), image("A", 512)
    hashed: list[Any] = []
    plain = media._content_name
    monkeypatch.setattr(media, "_content_name", lambda item: hashed.append(item) or plain(item))  # type: ignore[func-returns-value]
    first = names.begin([one]).result()
    assert names.begin([one, image("B", 700)]).result().items() >= first.items()
    assert len(hashed) == 2
    hashed.clear()
    del one
    gc.collect()
    assert not names._names


def test_keys_grow_with_a_request_and_are_those_of_the_whole() -> None:
    growing = request(TEXT[: 3 * BLOCK + 5])
    names = RequestKeys(SPACE, SEAL, growing, {})
    first = list(names.extend(3))
    for token in TEXT[3 * BLOCK + 5 :]:
        growing.append_output_token_ids(token)
        names.extend(growing.num_tokens // BLOCK)
    assert names.keys[:3] == first
    assert names.keys == keys(request(TEXT))
    with pytest.raises(ValueError, match="a block has 16 tokens"):
        names.extend(33)


def test_adapters_and_salts_are_in_the_name_of_every_block() -> None:
    lora = LoRARequest("sql", 1, "/adapters/sql")
    named = [
        keys(request(TEXT)),
        keys(request(TEXT, cache_salt="user 1")),
        keys(request(TEXT, cache_salt="user 2")),
        keys(request(TEXT, lora_request=lora), adapter="1"),
        keys(request(TEXT, lora_request=lora), adapter="2"),
        keys(request(TEXT, lora_request=lora, cache_salt="user 1"), adapter="2"),
    ]
    assert len({name for chain in named for name in chain}) == 6 * 32
    with pytest.raises(KeySpaceError, match="has no name"):
        keys(request(TEXT, lora_request=lora))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"prompt_embeds": torch.zeros(len(TEXT), 8)}, "embeddings"),
        ({"resumable": True}, "streaming session"),
        ({"sampling_params": None, "pooling_params": TYPED}, "more than the request's tokens"),
    ],
)
def test_requests_whose_kv_has_no_name_are_not_shared_and_the_log_says_so_once(
    more: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_keys()
    assert named_by(engine, request(TEXT, **more)) is None
    assert named_by(engine, request(TEXT, **more)) is None
    assert [why in record.message for record in caplog.records] == [True]


def test_what_a_later_vllm_adds_to_its_requests_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys_module._parameters(Request) <= keys_module.KNOWN_PARAMETERS
    monkeypatch.setattr(keys_module, "KNOWN_PARAMETERS", keys_module.KNOWN_PARAMETERS - {"priority"})
    assert keys(request(TEXT))
    with pytest.raises(KeySpaceError, match="not known here what priority of a request does"):
        keys(request(TEXT, priority=1))


def test_a_new_generation_names_everything_anew_and_shares_it_with_nobody() -> None:
    engine, other = (engine_keys(), engine_keys())
    said = []
    for _ in range(3):
        for one in (engine, other):
            names = named_by(one, request(TEXT))
            assert names is not None
            said.append(names.extend(32))
            one.new_generation()
    assert said[0] == said[1] == keys(request(TEXT), replace(SPACE, settings="settings"))
    assert len({key for chain in said for key in chain}) == 5 * 32


def test_until_the_weights_have_a_name_nothing_is_shared(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keys_module, "START_PAUSE_S", 0.0)
    weights: Future[str] = Future()
    engine = engine_keys(weights)
    assert named_by(engine, request(TEXT)) is None
    assert named_by(engine, request(TEXT)) is None
    assert "KV is not shared yet" in engine.health()
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "KV is not shared: the model's files are being hashed; it is shared as soon as they are."
    ]
    weights.set_result("w")
    named = named_by(engine, request(TEXT))
    assert named is not None
    assert named.extend(32) == named_by(engine_keys(), request(TEXT)).extend(32)  # type: ignore[union-attr]
    assert "weights w, settings settings: KV is shared with the engines of tenant 0" in engine.health()


def test_an_adapter_written_anew_while_the_weights_had_no_name_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """vLLM's own cache may hold KV of the one before."""
    monkeypatch.setattr(keys_module, "START_PAUSE_S", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    adapter = tmp_path / "sql"
    adapter.mkdir()
    one = request(TEXT, lora_request=LoRARequest("sql", 1, str(adapter)))
    weights: Future[str] = Future()
    engine = engine_keys(weights)
    for content in (b"one", b"other"):
        (adapter / "adapter_model.safetensors").write_bytes(content)
        assert named_by(engine, one) is None
    weights.set_result("w")

    def ask_until_its_files_are_hashed() -> None:
        for _ in range(1000):
            named_by(engine, one)
            time.sleep(0.005)

    with pytest.raises(AdapterChangedError):
        ask_until_its_files_are_hashed()


def test_weights_replaced_before_they_had_a_name_are_shared_with_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keys_module, "START_PAUSE_S", 0.0)
    weights: Future[str] = Future()
    engine = engine_keys(weights)
    engine.new_generation()
    weights.set_result("w")
    names = named_by(engine, request(TEXT))
    assert names is not None
    assert not set(names.extend(32)) & set(keys(request(TEXT), replace(SPACE, settings="settings")))


@pytest.mark.parametrize("what", ["weights", "settings"])
def test_an_engine_of_which_something_has_no_name_shares_with_itself_alone(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    def made() -> EngineKeys:
        if what == "settings":
            return engine_keys(settings=Resolved("settings", (), ("hf_overrides is code of its own",)))
        weights: Future[str] = Future()
        weights.set_exception(KeySpaceError("the weights are random"))
        return engine_keys(weights)

    one, other = made(), made()
    here, again, there = (
        named_by(one, request(TEXT)),
        named_by(one, request(TEXT)),
        named_by(other, request(TEXT)),
    )
    assert here is not None
    assert again is not None
    assert there is not None
    assert here.extend(32) == again.extend(32)
    assert not set(here.keys) & set(there.extend(32))
    assert "KV is shared with no other engine" in one.health()
    assert sum("not shared: with other engines" in record.message for record in caplog.records) == 2
