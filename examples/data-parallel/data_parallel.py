#!/usr/bin/env python3
# data_parallel.py: how is a model fitted by chips of two machines that share no memory?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each of two remote workers has half of the rows and two chips. A step is a task for each of them, which gives the
# gradient of its rows, and a function here that moves the weights. That a step waits for the weights of the one before,
# and the two workers not for each other, follows from what each task reads and writes. With names of machines on the
# command line (data_parallel.py ssh://one ssh://two) they are there, and this checkout has to be, too; with a cluster file
# (data_parallel.py cluster.ini) they are where that says.
import os
import sys

import gi
import numpy as np
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "steps"))
import shard  # noqa: E402

rows, columns, steps, rate = 512, 16, 30, 1e-3


def move(args):
    a, b, w = args
    w -= rate * (a + b)


def reference(x, y):
    w = np.zeros(columns, np.float32)
    for _ in range(steps):
        w -= rate * x.T @ (x @ w - y)
    return w


def add_workers(root, words):
    if words[0].endswith(".ini"):
        return root.add_cluster(words[0])
    return [root.add_remote_worker(address, devices=2, sub_workers=1, roots=os.path.join(here, "steps")) for address in words]


def main(words):
    with Pto.Worker(level=4, sub_workers=1) as root:  # no process yet
        for remote in add_workers(root, words):
            remote.register(Pto.Callable.chip(os.path.join(here, "gradient")))
            remote.register(shard.add)
        gradient, update = root.register(shard.gradient), root.register(move)

        def graph(orch, x, y, w, g):
            half = rows // 2
            for _ in range(steps):
                for i in range(2):
                    orch.submit_next_level(gradient, [x[i * half:(i + 1) * half].read(), y[i * half:(i + 1) * half].read(), w.read(),
                                                      g[i].write_existing()], worker=i)
                orch.submit_sub(update, [g[0].read(), g[1].read(), w.update()])

        x, y, w, g = (Pto.Buffer.array(shape) for shape in ((rows, columns), rows, columns, (2, columns)))
        dice = np.random.default_rng(1)
        x[:] = dice.standard_normal(x.shape, np.float32)
        y[:] = x @ dice.standard_normal(columns, np.float32)
        root.run(graph, x, y, w, g)  # launches the workers, runs

        ok = np.allclose(w, reference(x, y), rtol=1e-3, atol=1e-4)
        error = float(np.mean((x @ w - y) ** 2))
        print(f"{steps} steps on 2 remote workers with 2 chips each: the mean squared error is {error:.1e}: {'PASS' if ok else 'FAIL'}")
        return 0 if ok else 1


sys.exit(main(sys.argv[1:] or ["local:", "local:"]))
