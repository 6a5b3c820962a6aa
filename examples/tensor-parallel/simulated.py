#!/usr/bin/env python3
# simulated.py: how long would a step on eight chips take, with links of so many GB/s between them and the host?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The feed-forward layers of tensor_parallel.py, split over eight simulated chips in this process, each on a virtual clock
# of its own (det). The run is recorded, and its tree put on one virtual clock: links with a latency and a bandwidth, the
# allreduce with a cost. doc/time.md explains the result by hand.
import argparse
import os
import sys

import gi
import numpy as np
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
chips, layers, rows, width, hidden = 8, 3, 48, 64, 1024
LATENCY_NS, GB_PER_S, REDUCE = 2000, 56, "linear:5000:0.02"
SETTINGS = [f"link-latency={LATENCY_NS}ns", f"link-bandwidth={GB_PER_S}GB/s", f"function=allreduce={REDUCE}"]


def allreduce(args):
    """Every part becomes the sum of all."""
    parts = [args[i] for i in range(chips)]
    total = np.sum(parts, axis=0)
    for part in parts:
        part[:] = total


def step():
    """Runs it: the greatest error, and the record."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((rows, width), np.float32)
    w = [rng.standard_normal((width, hidden), np.float32) / np.float32(8) for _ in range(layers)]
    v = [rng.standard_normal((hidden, width), np.float32) / np.float32(16) for _ in range(layers)]
    expected = x
    for i in range(layers):
        expected = np.maximum(expected @ w[i], 0) @ v[i]
    w_parts = [[np.ascontiguousarray(part) for part in np.split(m, chips, axis=1)] for m in w]
    v_parts = [[np.ascontiguousarray(part) for part in np.split(m, chips, axis=0)] for m in v]
    parts = [[x.copy() for _ in range(chips)]] + [[np.zeros((rows, width), np.float32) for _ in range(chips)] for _ in range(layers)]

    with Pto.Worker(level=3, devices=chips, sub_workers=1, child_mode=Pto.ChildMode.THREAD) as host:
        for chip in range(chips):
            host.get_child(chip).set_parameter("backend", "det")
        host.set_parameter("trace", "1")
        host.set_parameter("trace-level", "4")
        layer = host.register(Pto.Callable.chip(os.path.join(here, "feed-forward")))
        reduce = host.register(allreduce)

        def graph(orch):
            for i in range(layers):
                before, after = ([Pto.Tensor.of(part) for part in parts[k]] for k in (i, i + 1))
                for chip in range(chips):
                    orch.submit_next_level(layer, [
                        before[chip].read(), Pto.Tensor.of(w_parts[i][chip]).read(),
                        Pto.Tensor.of(v_parts[i][chip]).read(), after[chip].write()], worker=chip)
                orch.submit_sub(reduce, [part.update() for part in after])

        host.run(graph)
        trace = host.ref_trace()
    return max(abs(part - expected).max() for part in parts[layers]), trace


def main():
    parser = argparse.ArgumentParser(description="runs a step on eight simulated chips, and tells how long it takes on one virtual clock")
    parser.add_argument("--record", help="save the record as it was made, in real time: .ptotrace")
    parser.add_argument("--save", help="save the trace on that clock: .ptotrace, .html, .svg, ...")
    options = parser.parse_args()
    error, trace = step()
    simulated = trace.simulate(SETTINGS)
    if options.record:
        trace.save(options.record)
    if options.save:
        simulated.save(options.save)
    ok = error < 1e-3
    print(f"{layers} layers on {chips} chips in one process, greatest error {error:.1e}; on one virtual clock: "
          f"{simulated.get_elapsed_ns() / 1000:.3f} us: {'PASS' if ok else 'FAIL'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
