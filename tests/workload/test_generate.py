import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workload.generate import GenerateError, block_contents, generate, main
from workload.shapes import PASSAGES, PLAYED_SHAPES
from workload.trace_lines import parse_trace


@pytest.mark.parametrize("shape", PLAYED_SHAPES)
def test_shape_is_a_clean_trace(shape: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shape", shape, "--requests", "400", "--seed", "5"]) == 0
    trace = parse_trace(capsys.readouterr().out.splitlines(), shape)
    assert trace.requests == generate(shape, 5, 400).requests
    assert not [warning for warning in trace.warnings if "gap" not in warning]
    rate = len(trace.requests) / trace.duration_s
    assert PLAYED_SHAPES[shape].requests_per_s / 3 < rate < PLAYED_SHAPES[shape].requests_per_s * 3


@pytest.mark.parametrize("shape", ["chat", "rag", "services"])
def test_smaller_blocks_are_the_same_prompts(shape: str) -> None:
    """The same times and tokens; whoever shared a block of 512 tokens shares the eight of 64 in it."""
    usual, small = generate(shape, 3, 200), generate(shape, 3, 200, block_tokens=64)
    assert small.block_tokens == 64
    for one, other in zip(usual.requests, small.requests, strict=True):
        assert (one.arrival_s, one.input_tokens) == (other.arrival_s, other.input_tokens)
        assert len(other.blocks) == -(-one.input_tokens // 64)
    for number, one in enumerate(usual.requests):
        for other in usual.requests[:number]:
            if one.blocks[0] == other.blocks[0]:
                shared = sum(a == b for a, b in zip(one.blocks, other.blocks, strict=False))
                full = min(shared, other.input_tokens // 512)
                begun = other.arrival_s, other.input_tokens
                same = next(r for r in small.requests if (r.arrival_s, r.input_tokens) == begun)
                assert small.requests[number].blocks[: 8 * full] == same.blocks[: 8 * full]
                break


def test_a_block_has_a_token() -> None:
    with pytest.raises(GenerateError, match="at least one token, not 0"):
        generate("chat", 1, 10, block_tokens=0)


def test_seeds_differ() -> None:
    assert generate("agents", 1, 50).requests != generate("agents", 2, 50).requests


def test_agents_look_like_mooncakes_tool_and_agent_trace() -> None:
    """As published: 8,596 tokens in, 182 out, 59 % of blocks hit, first 12 blocks shared."""
    trace = generate("agents", 1, 8000)
    requests = trace.requests
    assert 7300 < sum(r.input_tokens for r in requests) / len(requests) < 9900
    assert 140 < sum(r.output_tokens for r in requests) / len(requests) < 225
    distinct = len({block for request in requests for block in request.blocks})
    assert 0.52 < 1 - distinct / trace.accesses < 0.66
    heads = Counter(request.blocks[:12] for request in requests if len(request.blocks) >= 12)
    assert heads.most_common(1)[0][1] > 0.2 * len(requests)


@pytest.mark.parametrize("shape", ["rag", PASSAGES.name])
def test_chunks_are_what_blocks_hold(shape: str) -> None:
    """A block of the chain has one content; full blocks of documents alone are chunks, the last never is."""
    content: dict[int, int | None] = {}
    for request in generate(shape, 1, 500).requests:
        assert len(request.chunks) == len(request.blocks)
        assert request.chunks[0] is None
        assert request.chunks[-1] is None
        for block, chunk in zip(request.blocks, request.chunks, strict=True):
            assert content.setdefault(block, chunk) == chunk


def test_passages_come_back_where_their_prefixes_do_not() -> None:
    seen: set[int] = set()
    chunks: set[int | None] = set()
    prefixes = found = 0
    requests = generate(PASSAGES.name, 1, 2000).requests
    for request in requests:
        hits = next(at for at, block in enumerate(request.blocks) if block not in seen)
        prefixes += hits
        found += sum(chunk is not None and chunk in chunks for chunk in request.chunks[hits:])
        seen.update(request.blocks)
        chunks.update(request.chunks)
    blocks = sum(len(request.blocks) for request in requests)
    assert prefixes < 0.2 * blocks
    assert found > 0.45 * blocks


def test_other_shapes_have_no_chunks() -> None:
    assert not generate("agents", 1, 50).has_chunks


def test_agents_come_in_bursts() -> None:
    requests = generate("agents", 1, 3000).requests
    together = sum(
        later.arrival_s - earlier.arrival_s < 0.1 and later.blocks[:10] == earlier.blocks[:10]
        for earlier, later in pairwise(requests)
    )
    assert together > 0.2 * len(requests)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"shape": "x"}, "choose one of agents"),
        ({"requests": 0}, "at least one"),
        ({"requests_per_s": -1.0}, "rate"),
    ],
)
def test_bad_arguments(wrong: dict[str, object], reason: str) -> None:
    with pytest.raises(GenerateError, match=reason):
        generate(**wrong)  # type: ignore[arg-type]


def test_command_line_error_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "workload.generate", "--shape", "x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "choose one of agents" in done.stderr
    assert "Traceback" not in done.stderr


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 2000)), min_size=1, max_size=8))
def test_blocks_cover_the_prompt(prompt: list[tuple[str, int]]) -> None:
    blocks = list(block_contents(prompt, 512))
    sizes = [sum(taken for _, _, taken in block) for block in blocks]
    assert sum(sizes) == sum(tokens for _, tokens in prompt)
    assert all(size == 512 for size in sizes[:-1])
    assert 0 < sizes[-1] <= 512
