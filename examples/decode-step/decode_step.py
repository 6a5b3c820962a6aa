#!/usr/bin/env python3
# decode_step.py: what does it save to write a graph down once that is run for every token?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A step of a language model of 40 layers, by shape only, is captured, and launched 100 times. The first launch is compared with
# plain Python, each launch with the same step as an orchestration.
import os
import statistics
import sys
import time

import gi
import numpy as np
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
LAYERS, HEADS, TILE, STEPS = 40, 32, 128, 100


def timed(call, *args):
    begin = time.perf_counter()
    call(*args)
    return (time.perf_counter() - begin) * 1e3


def mix(a, b, kept=0):
    """step/mix.c"""
    return (int(a) + 2 * int(b) + 1 + int(kept)) % 1024


def step_of(hidden, weights, cache):
    """step_orch.c on the first number of each tile, in place: all others stay."""
    def add_to_hidden(value, weight):  # the tiles that it is made of are all alike
        for head in range(HEADS):
            hidden[head * TILE] = mix(mix(value, value), weight, hidden[head * TILE])

    for layer, weight in enumerate(weights):
        qkv = mix(mix(hidden[0], weight), weight)
        for head in range(HEADS):
            cache[layer, head, 0] = keys = mix(qkv, weight, cache[layer, head, 0])
        add_to_hidden(mix(mix(mix(qkv, keys), weight), qkv), weight)
        gate = mix(mix(hidden[0], weight), weight)
        add_to_hidden(mix(gate, gate), weight)


def main():
    weights = np.arange(1, LAYERS + 1, dtype=np.float32)
    hidden, plain = np.zeros((2, HEADS * TILE), np.float32)
    cache, plain_cache = np.zeros((2, LAYERS, HEADS, TILE), np.float32)
    launched_ms, plain_ms = [], []
    hidden[:] = np.arange(HEADS * TILE) % 1024
    first = hidden.copy(), cache.copy()
    step_of(first[0], weights, first[1])

    with Pto.Worker(platform="a2a3sim") as chip:
        step = chip.register(Pto.Callable.chip(os.path.join(here, "step")))
        graph = chip.capture(step, hidden, weights, cache)
        for token in range(STEPS):
            hidden[:] = plain[:] = (token * 7 + np.arange(HEADS * TILE)) % 1024
            launched_ms.append(timed(chip.run, graph, hidden, weights, cache))
            plain_ms.append(timed(chip.run, step, plain, weights, plain_cache))
            same = np.array_equal(hidden, plain) and np.array_equal(cache, plain_cache)
            if token == 0:
                same = same and np.array_equal(hidden, first[0]) and np.array_equal(cache, first[1])
            if not same:
                break

    print(f"{LAYERS} layers, {graph.n_tasks} tasks, {graph.n_edges} edges, captured once, launched {len(launched_ms)} times: "
          f"{statistics.median(launched_ms):.2f} ms a step, {statistics.median(plain_ms):.2f} as an orchestration: "
          f"{'PASS' if same else 'FAIL'}")
    return 0 if same else 1


sys.exit(main())
