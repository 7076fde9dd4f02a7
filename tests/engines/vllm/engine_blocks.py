"""The KV blocks of a modelled engine: which are free, which a request holds, which its prefix cache finds."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

ALPHABET = 3


@dataclass(eq=False)
class Block:
    block_id: int
    users: int = 0
    prefix: tuple[int, ...] | None = None
    """What it is found by in the engine's prefix cache."""


@dataclass(eq=False)
class Request:
    request_id: str
    tokens: list[int]
    prompt_tokens: int
    max_tokens: int
    num_computed_tokens: int = 0
    blocks: list[Block] = field(default_factory=list)
    state: str = "waiting"
    """Or `loading`, `running`, `preempted`, `finished`."""
    in_flight: int = 0
    """Tokens in steps that were not looked at yet."""
    placeholders: int = 0
    """Tokens that these steps will say at most."""
    rejected: int = 0
    """Drafts in these steps that will turn out to be wrong."""
    stale: int = 0
    """Of the tokens in flight, those of before the request was preempted."""
    drops_stale: bool = False
    """Whether what stale steps say is dropped."""
    drafts: int = 0
    """Tokens drafted for its next step."""
    last_step: int = 0
    """Number of the last step that computes it."""
    cached: int = 0
    """Blocks from the first one on that were put into the prefix cache."""
    skip_reading_prefix_cache: bool = False
    lora_request: Any = None
    kv_transfer_params: Any = None

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def all_token_ids(self) -> list[int]:
        return self.tokens

    @property
    def is_over(self) -> bool:
        return self.num_tokens >= self.prompt_tokens + self.max_tokens

    def sequence(self, length: int) -> list[int]:
        """Its tokens, and those that the model will say."""
        tokens = list(self.tokens)
        while len(tokens) < length:
            tokens.append((sum(tokens) + len(tokens)) % ALPHABET)
        return tokens[:length]


class BlockPool:
    """vLLM's `KVCacheManager` with one group of full attention."""

    def __init__(self, blocks: int, size: int) -> None:
        """`size` is the number of tokens in a block."""
        self.size = size
        self.all = [Block(number) for number in range(blocks)]
        self.free = deque(self.all)
        self.prefixes: dict[tuple[int, ...], Block] = {}

    @property
    def is_unused(self) -> bool:
        """Whether no request holds a block."""
        return len(self.free) == len(self.all)

    def reset(self) -> bool:
        """Empty the prefix cache, if no request holds a block."""
        if self.is_unused:
            for block in list(self.prefixes.values()):
                self.forget(block)
        return self.is_unused

    def hit(self, request: Request) -> list[Block]:
        """The blocks that the prefix cache has of a request, but for its last token."""
        hit = []
        for number in range((request.num_tokens - 1) // self.size):
            block = self.prefixes.get(tuple(request.tokens[: (number + 1) * self.size]))
            if block is None:
                break
            hit.append(block)
        return hit

    def lacking(self, request: Request, tokens: int, adopted: Sequence[Block] = ()) -> int:
        """Number of free blocks that a request takes to have room for so many tokens."""
        new = -(-tokens // self.size) - len(request.blocks) - len(adopted)
        return max(0, new) + sum(not block.users for block in adopted)

    def allocate(
        self,
        request: Request,
        tokens: int,
        adopted: Sequence[Block] = (),
        *,
        reserved: int = 0,
        whole: bool = False,
    ) -> list[Block] | None:
        """Give a request those `adopted` and new ones for its `tokens`; return the new ones.

        None if too few are free beside those `reserved`, or for all that is known of a `whole` request.
        """
        if whole and self.lacking(request, request.num_tokens, adopted) > len(self.free):
            return None
        if self.lacking(request, tokens, adopted) > len(self.free) - reserved:
            return None
        for block in adopted:
            if not block.users:
                self.free.remove(block)
            block.users += 1
        request.blocks += adopted
        request.cached = max(request.cached, len(adopted))
        new = []
        for _ in range(self.lacking(request, tokens)):
            block = self.free.popleft()
            self.forget(block)
            block.users = 1
            new.append(block)
        request.blocks += new
        return new

    def take_from(self, request: Request) -> list[Block]:
        """The blocks of a request, which holds none afterwards. They are not free yet."""
        blocks, request.blocks, request.cached = request.blocks, [], 0
        return blocks

    def give_back(self, blocks: Sequence[Block]) -> None:
        """One request less uses these blocks."""
        for block in reversed(blocks):
            block.users -= 1
            if not block.users:
                self.free.append(block)

    def forget(self, block: Block) -> None:
        """The prefix cache does not find this block any more."""
        if block.prefix is not None:
            if self.prefixes.get(block.prefix) is block:
                del self.prefixes[block.prefix]
            block.prefix = None

    def cache(self, request: Request, tokens: int) -> None:
        """Let the prefix cache find the whole blocks among a request's first tokens."""
        whole = min(tokens, request.num_tokens) // self.size
        for number in range(request.cached, whole):
            block, prefix = request.blocks[number], tuple(request.tokens[: (number + 1) * self.size])
            if block.prefix is None:
                block.prefix = prefix
                self.prefixes.setdefault(prefix, block)
        request.cached = max(request.cached, whole)
