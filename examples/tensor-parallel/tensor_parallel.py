#!/usr/bin/env python3
# tensor_parallel.py: how do two chips share the layers of a feed-forward network?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Layer by layer: chip i computes max(x W[:, i], 0) V[i, :] with its half of the weights, then an allreduce adds the two
# partial results, and the sum is what the next layer of both chips begins with. The reference is the same in NumPy.
import os
import sys

import gi
import numpy as np
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
chips, layers, rows, width, hidden = 2, 3, 48, 64, 256


def shared(array):
    """A copy where child processes see it."""
    copy = Pto.Buffer.array(array.shape, array.dtype)
    copy[:] = array
    return copy


def allreduce(args):
    """Every part becomes the sum of all."""
    parts = [args[i] for i in range(chips)]
    total = np.sum(parts, axis=0)
    for part in parts:
        part[:] = total


def main():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((rows, width), np.float32)
    w = [rng.standard_normal((width, hidden), np.float32) / np.float32(8) for _ in range(layers)]
    v = [rng.standard_normal((hidden, width), np.float32) / np.float32(16) for _ in range(layers)]

    expected = x
    for i in range(layers):
        expected = np.maximum(expected @ w[i], 0) @ v[i]

    # Columns of W and rows of V, a chip each: contiguous, and shared before the children begin.
    w_parts = [[shared(part) for part in np.split(m, chips, axis=1)] for m in w]
    v_parts = [[shared(part) for part in np.split(m, chips, axis=0)] for m in v]
    inputs = [shared(x) for _ in range(chips)]
    outputs = [Pto.Buffer.array((rows, width)) for _ in range(chips)]

    with Pto.Worker(level=3, devices=chips, sub_workers=1) as host:
        layer = host.register(Pto.Callable.chip(os.path.join(here, "feed-forward")))
        reduce = host.register(allreduce)

        def graph(orch, *arrays):
            here_now, results = list(arrays[:chips]), arrays[chips:]
            for i in range(layers):
                last = i == layers - 1
                parts = list(results) if last else [orch.tensor((rows, width)) for _ in range(chips)]
                for chip in range(chips):
                    orch.submit_next_level(layer, [
                        here_now[chip].read(), Pto.Tensor.of(w_parts[i][chip]).read(),
                        Pto.Tensor.of(v_parts[i][chip]).read(), parts[chip].write()],
                        worker=chip)
                orch.submit_sub(reduce, [part.update() for part in parts])
                here_now = parts

        host.run(graph, *inputs, *outputs)
        tasks = host.dup_statistics().get_tasks()

    ok = all(np.allclose(out, expected, rtol=1e-3, atol=1e-4) for out in outputs)
    print(f"{layers} layers on {chips} chips, {tasks} tasks, greatest error "
          f"{max(abs(out - expected).max() for out in outputs):.1e}: {'PASS' if ok else 'FAIL'}")
    return 0 if ok else 1


sys.exit(main())
