# golden.py: what does the vector example get, and what must come out?
#
# SPDX-License-Identifier: LGPL-2.1-or-later

import ctypes

import numpy as np

ALL_CASES = {
    "five": {"size": 128 * 128, "tasks": 5},
    "four": {"size": 128 * 128, "tasks": 4},
}
DEFAULT_CASE = "five"

RTOL = 1e-5
ATOL = 1e-5

__outputs__ = ["f"]


def generate_inputs(params):
    size = params["size"]
    return [
        ("a", np.full(size, 2.0, dtype=np.float32)),
        ("b", np.full(size, 3.0, dtype=np.float32)),
        ("f", np.zeros(size, dtype=np.float32)),
        ("size", ctypes.c_uint64(size)),
        ("tasks", ctypes.c_uint64(params["tasks"])),
    ]


def compute_golden(tensors, params):
    c = tensors["a"] + tensors["b"]
    f = (c + 1) * (c + 2)
    tensors["f"][:] = f + c if params["tasks"] == 5 else f
