#!/usr/bin/env python3
# worked_example.py: which way does one task take, from a Python function to a chip's cores?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A worker of level 3 with one chip below it, and an orchestration that hands its own arguments on to the chip, whose
# orchestration makes a task of each tile. Every step is spelt out; two-chips is shorter.
import os
import sys

import gi
import numpy as np
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402
from gi.repository.Pto import CallConfig, TaskArgs, Worker  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
IN, OUT = Pto.Direction.INPUT, Pto.Direction.OUTPUT
N = 10000


def main():
    a, b, c = (Pto.Buffer.array(N) for _ in range(3))
    a[:] = np.random.default_rng(3).standard_normal(N, np.float32)
    b[:] = np.random.default_rng(4).standard_normal(N, np.float32)

    args = TaskArgs()
    args.add_tensor(a, IN)
    args.add_tensor(b, IN)
    args.add_tensor(c, OUT)

    w3 = Worker(level=3, child_mode="process")
    chip_kernel_handle = w3.register(Pto.Callable.chip(os.path.join(here, "add")))

    def my_orch(orch, view, cfg):
        chip_args = TaskArgs()
        for i in range(view.tensor_count):
            chip_args.add_tensor(view.tensors[i], IN if i < 2 else OUT)
        orch.submit_next_level(chip_kernel_handle, chip_args, cfg)

    w3.add_worker(Worker(level=2))
    w3.init()  # fork chip 0 here
    w3.run(my_orch, args, CallConfig(block_dim=3))
    w3.close()

    ok = np.array_equal(c, a + b)
    print(f"c = a + b on chip 0, 3 clusters of it: {'PASS' if ok else 'FAIL'}")
    return 0 if ok else 1


sys.exit(main())
