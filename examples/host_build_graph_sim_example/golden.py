# golden.py: what does f = (a + b + 1)(a + b + 2) get, and what must come out?
#
# SPDX-License-Identifier: LGPL-2.1-or-later

import numpy as np

__outputs__ = ["f"]

RTOL = 1e-5
ATOL = 1e-5


def generate_inputs(params):
    size = 128 * 128
    return [
        ("a", np.full(size, 2.0, dtype=np.float32)),
        ("b", np.full(size, 3.0, dtype=np.float32)),
        ("f", np.zeros(size, dtype=np.float32)),
        ("size", size),
    ]


def compute_golden(tensors, params):
    c = tensors["a"] + tensors["b"]
    tensors["f"][:] = (c + 1) * (c + 2)
