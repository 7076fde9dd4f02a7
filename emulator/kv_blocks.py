"""Computation of the KV of a trace's blocks with a real model, into a file (hostlib.protocol.kv_file).

    python -m emulator.kv_blocks JOB.json     (in the engines' environment)

JOB  {"model": folder, "block_bytes": n, "seed": n, "chains": [[hash id, ...], ...],
      "keys": [[key, ...], ...], "out": file}
stdout  < {"event": "progress", "chains": n}
stdout  < {"event": "written", "blocks": n, "tokens_a_block": n, "token_bytes": n}

A trace has hash ids and no tokens. Each id stands for as many tokens, drawn by the seed, as fit into a block
of the emulation. Their KV is computed after that of the blocks before them. The rest of a block, less than
the bytes of one token, is 0.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

EXIT_UNUSABLE = 3
"""Exit code if the model can't be used; stderr has the reason in one line."""


class UnusableError(Exception):
    """The model can't be used; the message says why."""


def main(path: str) -> int:
    """Compute and write the KV; returns exit code 0, or EXIT_UNUSABLE."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        _write(job)
    except UnusableError as error:
        print(error, file=sys.stderr)
        return EXIT_UNUSABLE
    return 0


def _write(job: dict[str, Any]) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    from engines.transformers.cache import block_bytes
    from hostlib.protocol.kv_file import write_header

    try:
        model = AutoModelForCausalLM.from_pretrained(job["model"], local_files_only=True).eval()
    except (OSError, ValueError, KeyError) as error:
        raise UnusableError(f"{job['model']} is no folder of a model: {str(error).splitlines()[0]}") from None
    token_bytes = block_bytes(model, 1)
    tokens = job["block_bytes"] // token_bytes
    if not tokens:
        raise UnusableError(
            f"the KV of one token of {job['model']} has {token_bytes:,} bytes, a block of this run "
            f"{job['block_bytes']:,}: give a smaller SCALE, or a model with fewer or smaller KV heads"
        )
    _check_length(model, tokens, job["chains"])
    keys = {bytes.fromhex(key): None for chain in job["keys"] for key in chain}
    contents: dict[bytes, bytes] = {}
    with torch.no_grad():
        for number, (ids, names) in enumerate(zip(job["chains"], job["keys"], strict=True)):
            chain = [bytes.fromhex(name) for name in names]
            if any(key not in contents for key in chain):
                blocks = _blocks(model, ids, tokens, job["seed"])
                for key, block in zip(chain, blocks, strict=True):
                    contents.setdefault(key, block.ljust(job["block_bytes"], b"\0"))
            if number % 16 == 0:
                print(json.dumps({"event": "progress", "chains": number}), flush=True)
    with Path(job["out"]).open("wb") as file:
        write_header(file, keys, job["block_bytes"])
        for key in keys:
            file.write(contents[key])
    details = {"blocks": len(keys), "tokens_a_block": tokens, "token_bytes": token_bytes}
    print(json.dumps({"event": "written", **details}), flush=True)


def _check_length(model: Any, tokens: int, chains: list[list[int]]) -> None:
    longest = tokens * max(map(len, chains), default=0)
    most = getattr(model.config, "max_position_embeddings", None) or longest
    if longest > most:
        raise UnusableError(
            f"the longest prompt of this run has {longest:,} tokens, the model takes {most:,}: "
            "give a larger SCALE (fewer tokens a block), or a model that takes more"
        )


def _blocks(model: Any, ids: list[int], tokens: int, seed: int) -> list[bytes]:
    """Return the KV of each block of a chain."""
    import torch
    from transformers import DynamicCache

    from engines.transformers.cache import block_kv

    prompt = [
        token for hash_id in ids for token in block_tokens(hash_id, tokens, model.config.vocab_size, seed)
    ]
    cache = DynamicCache(config=model.config)
    model(torch.tensor([prompt]), past_key_values=cache)
    return [block_kv(cache, number, tokens).numpy().tobytes() for number in range(len(ids))]


def block_tokens(hash_id: int, tokens: int, vocabulary: int, seed: int) -> list[int]:
    """Return the tokens that a hash id stands for."""
    choice = random.Random(f"{seed}:{hash_id}")
    return [choice.randrange(vocabulary) for _ in range(tokens)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
