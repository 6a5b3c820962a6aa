# golden.py: what does F = exp(sqrt(log A) W1 + sqrt(log A) W2) get, and what must come out?
#
# SPDX-License-Identifier: LGPL-2.1-or-later

import numpy as np

ALL_CASES = {
    "diamond": {"rows": 128, "size": 64, "tile": 128},  # one diamond
    "tiles": {"rows": 500, "size": 64, "tile": 64},     # eight, of which the last one is smaller
}
DEFAULT_CASE = "diamond"

RTOL = 1e-4
ATOL = 1e-4

__outputs__ = ["F"]


def generate_inputs(params):
    random = np.random.default_rng(42)
    rows, size = params["rows"], params["size"]
    return [
        ("A", random.uniform(1.5, 8, (rows, size)).astype(np.float32)),  # log A > 0
        ("W1", random.uniform(-1, 1, (size, size)).astype(np.float32) / 8),
        ("W2", random.uniform(-1, 1, (size, size)).astype(np.float32) / 8),
        ("F", np.zeros((rows, size), dtype=np.float32)),
        ("tile", params["tile"]),
    ]


def compute_golden(tensors, params):
    a, w1, w2 = (tensors[name].astype(np.float64) for name in ("A", "W1", "W2"))
    b = np.sqrt(np.log(a))
    tensors["F"][:] = np.exp(b @ w1 + b @ w2)
