#!/usr/bin/env python3
# two_chips.py: how do two chips and a Python function share one sum?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each chip adds up half of a vector; a function in a process of its own adds the two results. That it waits for both
# chips, and that they do not wait for each other, follows from what each task reads and writes.
import os
import sys

import gi
import numpy as np
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
elements = 1 << 16


def main():
    with Pto.Worker(level=3, devices=2, sub_workers=1) as host:  # no process yet
        part = host.register(Pto.Callable.chip(os.path.join(here, "partial-sum")))
        total = host.register(lambda args: np.add(args[0], args[1], out=args[2]))

        def graph(orch, x, out):
            half = elements // 2
            a, b = orch.alloc(1), orch.alloc(1)
            orch.submit_next_level(part, [x.view([half], [0]).read(), a.write()], worker=0)
            orch.submit_next_level(part, [x.view([half], [half]).read(), b.write()], worker=1)
            orch.submit_sub(total, [a.read(), b.read(), out.write_existing()])

        x, out = Pto.Buffer.array(elements), Pto.Buffer.array(1)  # memory that children see
        x[:] = np.random.default_rng(1).random(elements, np.float32)
        host.run(graph, x, out)  # starts three processes, runs

        expected = x.sum(dtype=np.float64)
        ok = np.isclose(out[0], expected, rtol=1e-5)
        print(f"two chips and a SUB worker: {out[0]:.3f}, expected {expected:.3f}: {'PASS' if ok else 'FAIL'}")
        return 0 if ok else 1


sys.exit(main())
