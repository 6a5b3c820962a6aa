#!/usr/bin/env python3
# remote_attention.py: how do chips of two machines that share no memory split the heads of attention?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each of two remote workers has two chips, each chip one head of every layer. The chips of a worker add up their partial
# results there, the two workers' are added here: an allreduce at each level, whose result the next layer begins with.
# With names of machines on the command line (remote_attention.py ssh://one ssh://two) they are there, and this checkout has
# to be, too.
import os
import sys

import gi
import numpy as np
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "steps"))
import heads  # noqa: E402

workers, chips, layers, rows, width, head = 2, 2, 2, 64, 48, 16


def reference(x, weights):
    for wq, wk, wv, wo in weights:
        total = np.zeros_like(x)
        for i in range(workers * chips):
            part = slice(i * width, (i + 1) * width)
            q, k, v = x @ wq[part], x @ wk[part], x @ wv[part]
            scores = q @ k.T / np.sqrt(head)
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            total += p / p.sum(axis=1, keepdims=True) @ v @ wo[i * head:(i + 1) * head]
        x = total
    return x


def main(addresses):
    with Pto.Worker(level=4, sub_workers=1) as root:  # no process yet
        for address in addresses:
            remote = root.add_remote_worker(address, devices=chips, sub_workers=1, roots=os.path.join(here, "steps"))
            remote.register(Pto.Callable.chip(os.path.join(here, "heads")))
        attend = root.register(heads.heads)

        # Heads lie one below the other: a worker's are rows that follow each other.
        shapes = [(workers * chips * width, head)] * 3 + [(workers * chips * head, width)]
        weights = [[Pto.Buffer.array(shape) for shape in shapes] for _ in range(layers)]
        results = [[Pto.Buffer.array((rows, width)) for _ in range(workers)] for _ in range(layers)]
        x = Pto.Buffer.array((rows, width))
        dice = np.random.default_rng(1)
        for array in x, *(w for layer in weights for w in layer):
            array[:] = dice.standard_normal(array.shape, np.float32) / 4

        def graph(orch):
            before = [x] * workers
            for layer, after in zip(weights, results):
                for i in range(workers):
                    own = [Pto.Tensor.of(w[i * len(w) // workers:(i + 1) * len(w) // workers]).read() for w in layer]
                    orch.submit_next_level(attend, [Pto.Tensor.of(before[i]).read(), *own, Pto.Tensor.of(after[i]).write_existing()], worker=i)
                orch.allreduce(after)
                before = after

        root.run(graph)  # launches the workers, runs

        expected = reference(x.astype(np.float64), [[w.astype(np.float64) for w in layer] for layer in weights])
        error = max(np.abs(result - expected).max() for result in results[-1])
        ok = error < 1e-4
        print(f"{layers} layers of {workers * chips} heads on {workers} remote workers with {chips} chips each, "
              f"greatest error {error:.1e}: {'PASS' if ok else 'FAIL'}")
        return 0 if ok else 1


sys.exit(main(sys.argv[1:] or ["local:", "local:"]))
