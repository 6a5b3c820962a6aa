#!/usr/bin/env python3
# data_parallel.py: how is a model fitted by chips of two machines that share no memory?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each of two remote workers has half of the rows and two chips. A step is a task for each of them, which gives the
# gradient of its rows, and a function here that moves the weights. That a step waits for the weights of the one before,
# and the two workers not for each other, follows from what each task reads and writes. With names of machines on the
# command line (data_parallel.py ssh://one ssh://two) they are there, and this checkout has to be, too; with a cluster file
# (data_parallel.py cluster.ini) they are where that says. With --job before all of that they are the ranks of one job of
# MPI: weights and gradients stay at them, MPI adds the gradients up, and each moves its own weights.
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


def add_workers(root, words, is_job):
    if words[0].endswith(".ini"):
        return root.add_cluster(words[0])
    if is_job:
        return root.add_remote_job(words, devices=2, sub_workers=1, roots=os.path.join(here, "steps"))
    return [root.add_remote_worker(address, devices=2, sub_workers=1, roots=os.path.join(here, "steps")) for address in words]


def main(words, is_job):
    with Pto.Worker(level=4, sub_workers=1) as root:  # no process yet
        for remote in add_workers(root, words, is_job):
            remote.register(Pto.Callable.chip(os.path.join(here, "gradient")))
            remote.register(shard.add)
        gradient, update = root.register(shard.gradient), root.register(move)
        update_there, copy = root.register(shard.move), root.register(shard.copy)

        def submit_gradients(orch, x, y, w, g):
            half = rows // 2
            for i in range(2):
                orch.submit_next_level(gradient, [x[i * half:(i + 1) * half].read(), y[i * half:(i + 1) * half].read(), w[i].read(),
                                                  g[i]], worker=i)

        def graph(orch, x, y, w, g):
            for _ in range(steps):
                submit_gradients(orch, x, y, [w, w], [g[i].write_existing() for i in range(2)])
                orch.submit_sub(update, [g[0].read(), g[1].read(), w.update()])

        def graph_of_job(orch, x, y, w, g):
            far_w, far_g = ([orch.make_tensor_at(i, columns) for i in range(2)] for _ in range(2))
            for i in range(2):
                orch.submit_next_level(copy, [w.read(), far_w[i].write()], worker=i)
            for _ in range(steps):
                submit_gradients(orch, x, y, far_w, [far_g[i].write() for i in range(2)])
                orch.allreduce(far_g)
                for i in range(2):
                    orch.submit_next_level(update_there, [far_g[i].read(), far_w[i].update()], worker=i)
            orch.submit_next_level(copy, [far_w[1].read(), w.write_existing()], worker=1)

        x, y, w, g = (Pto.Buffer.array(shape) for shape in ((rows, columns), rows, columns, (2, columns)))
        dice = np.random.default_rng(1)
        x[:] = dice.standard_normal(x.shape, np.float32)
        y[:] = x @ dice.standard_normal(columns, np.float32)
        root.run(graph_of_job if is_job else graph, x, y, w, g)  # launches the workers, runs

        ok = np.allclose(w, reference(x, y), rtol=1e-3, atol=1e-4)
        error = float(np.mean((x @ w - y) ** 2))
        print(f"{steps} steps on 2 {'ranks of a job' if is_job else 'remote workers'} with 2 chips each: the mean squared error is {error:.1e}: {'PASS' if ok else 'FAIL'}")
        return 0 if ok else 1


words = [word for word in sys.argv[1:] if word != "--job"]
sys.exit(main(words or ["local:", "local:"], "--job" in sys.argv))
