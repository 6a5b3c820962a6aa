# golden.py: what does batch paged attention get, and what must come out?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# PA_CASE chooses the case that runs when none is asked for. PA_SEQ_LEN, lengths separated by
# commas, overrides the context lengths; a list shorter than the batch is repeated.

import os

import numpy as np

ALL_CASES = {
    "Case1": {"batch": 1, "num_heads": 16, "head_dim": 16, "context_len": 16, "block_size": 16},
    # 16 chunks of 13 tasks: three blocks of 6 tokens hold 16, the last one is not full
    "CaseBatch256": {"batch": 256, "num_heads": 1, "head_dim": 256, "context_len": 16,
                     "block_size": 6},
    "CaseVarLen": {"batch": 20, "num_heads": 8, "kv_heads": 2, "head_dim": 64, "block_size": 32,
                   "context_len": [1, 33, 500, 64, 7, 256, 31, 32, 129, 300]},
    "CaseFloat32": {"batch": 18, "num_heads": 4, "head_dim": 40, "context_len": [50, 20],
                    "block_size": 16, "dtype": "float32"},
}
DEFAULT_CASE = os.environ.get("PA_CASE") or "Case1"

RTOL = 1e-5
ATOL = 1e-5

__outputs__ = ["out"]

DTYPE_CODES = {"float32": 0, "float16": 1}


def context_lengths(params):
    text = os.environ.get("PA_SEQ_LEN")
    lengths = params["context_len"]
    if text:
        try:
            lengths = [int(part) for part in text.split(",")]
        except ValueError:
            raise ValueError(f"PA_SEQ_LEN={text}: lengths separated by commas wanted") from None
    if isinstance(lengths, int):
        lengths = [lengths]
    if len(lengths) > params["batch"] or min(lengths) < 1:
        raise ValueError(f"{len(lengths)} context lengths from {min(lengths)} up for a batch of "
                         f"{params['batch']}: wanted are at most one per request, from 1 up")
    return np.resize(np.array(lengths, dtype=np.int32), params["batch"])


def generate_inputs(params):
    rng = np.random.default_rng(42)
    batch, heads, dim = params["batch"], params["num_heads"], params["head_dim"]
    kv_heads = params.get("kv_heads", 1)
    block_size = params["block_size"]
    dtype = params.get("dtype", "float16")
    lengths = context_lengths(params)
    blocks = -(-lengths // block_size)
    num_blocks, width = int(blocks.sum()), int(blocks.max())

    # blocks in random order, -1 where a request has none
    order = rng.permutation(num_blocks).astype(np.int32)
    block_table = np.full((batch, width), -1, dtype=np.int32)
    block_table[np.arange(width) < blocks[:, None]] = order

    cache_shape = (num_blocks, block_size, kv_heads, dim)
    scale = int(np.float32(1 / np.sqrt(dim)).view(np.uint32))
    config = [batch, heads, kv_heads, dim, block_size, num_blocks, width, scale, DTYPE_CODES[dtype]]
    return [
        ("query", rng.uniform(-4, 4, (batch, heads, dim)).astype(dtype)),
        ("key_cache", rng.uniform(-1, 1, cache_shape).astype(dtype)),
        ("value_cache", rng.uniform(-1, 1, cache_shape).astype(dtype)),
        ("block_table", block_table),
        ("context_lens", lengths),
        ("out", np.zeros((batch, heads, dim), dtype=np.float32)),
        ("config", np.array(config, dtype=np.int64)),
    ]


def compute_golden(tensors, params):
    """The plain softmax over all tokens of each request, in double."""
    dim = params["head_dim"]
    kv_heads = params.get("kv_heads", 1)
    group = params["num_heads"] // kv_heads
    for i, length in enumerate(tensors["context_lens"]):
        table = tensors["block_table"][i]
        table = table[table >= 0]
        keys, values = (tensors[name][table].reshape(-1, kv_heads, dim)[:length].astype(np.float64)
                        for name in ("key_cache", "value_cache"))
        query = tensors["query"][i].astype(np.float64).reshape(kv_heads, group, dim)
        scores = np.einsum("ghd,tgd->ght", query, keys) / np.sqrt(dim)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        tensors["out"][i] = np.einsum("ght,tgd->ghd", weights, values).reshape(-1, dim)
