#!/usr/bin/env python3
# scale.py: how many hosts does one submitter keep busy, and what does another level mend?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A model on a clock of its own, since no tree of 1000 hosts is at hand and a worker has at most 256 children: each worker
# submits to those below it one after the other, each task waits for its link and its worker, chips take their tasks in
# turn. doc/scale.md tells what is modelled, which numbers were measured, and what follows.
import argparse
import random
import sys
import time

CHIPS = 8
TREES = {"1000 x 8": (1000,), "25 x 40 x 8": (25, 40), "10 x 10 x 10 x 8": (10, 10, 10)}
COLOURS = ("#0072b2", "#d55e00", "#009e73")
TASKS_US = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


class Costs:
    """Microseconds; bytes."""
    def __init__(self, submit=0.8, trip=90.0, bridge=38.0, cores=32, bandwidth=12500.0, size=4096, per_chip=8, jitter=0.05):
        self.submit = submit  # of one task, and its completion, by whoever submits
        self.trip = trip  # of a remote task that does nothing: there and back
        self.bridge = bridge  # of a CPU where it is submitted, for each remote task
        self.cores = cores  # that share this
        self.bandwidth = bandwidth  # of a machine's link, bytes/us
        self.size = size  # that go to each host for each of its tasks
        self.per_chip = per_chip  # tasks that a host's task is for each chip
        self.jitter = jitter  # tasks of a chip are longer or shorter by so much


def begin_next(costs, hosts_below):
    """How long a worker is busy with one task for a child: its submit, its bridge on some core, or its bytes on the link."""
    return max(costs.submit, costs.bridge / costs.cores, costs.size * hosts_below / costs.bandwidth)


def host_time(task, costs):
    """Of a host's task, as those who submit it see it."""
    return costs.trip + max(costs.per_chip * task + CHIPS * costs.submit, CHIPS * costs.per_chip * costs.submit + task)


def hosts_at_most(task, costs):
    """That one submitter keeps busy."""
    return host_time(task, costs) / begin_next(costs, 1)


def below(tree, level):
    """Hosts below one child of that level."""
    hosts = 1
    for fan in tree[level + 1:]:
        hosts *= fan
    return hosts


def simulate(tree, task, costs, rounds=3, seed=1):
    """Each host's task is per_chip tasks for each of its chips; the root submits one for each child and round. Gives the part
    of all chips' time that was work, and how many tasks of chips there were."""
    dice = random.Random(seed).random
    shortest, spread = task * (1 - costs.jitter), 2 * task * costs.jitter
    busy = count = 0

    def host(start):
        nonlocal busy, count
        now = start + costs.trip / 2
        free = [now] * CHIPS
        for _ in range(costs.per_chip):
            for chip in range(CHIPS):
                now += costs.submit
                took = shortest + spread * dice()
                free[chip] = (now if now > free[chip] else free[chip]) + took
                busy += took
        count += costs.per_chip * CHIPS
        return max(free) + costs.trip / 2

    def worker(level, start):
        if level == len(tree):
            return host(start)
        now = start + costs.trip / 2
        step = begin_next(costs, below(tree, level))
        end = now
        for _ in range(tree[level]):
            now += step
            end = max(end, worker(level + 1, now))
        return end + costs.trip / 2

    now = 0.0
    step = begin_next(costs, below(tree, 0))
    free = [0.0] * tree[0]
    for _ in range(rounds):
        for child in range(tree[0]):
            now += step
            free[child] = worker(1, max(now, free[child]))
    hosts = tree[0] * below(tree, 0)
    return busy / (max(free) * hosts * CHIPS), count


def on_paper(tree, task, costs, rounds=3):
    """The same by a formula, for tasks that are all as long."""
    took = host_time(task, costs)
    for level in range(len(tree) - 1, 0, -1):
        took += costs.trip + tree[level] * begin_next(costs, below(tree, level))
    first = tree[0] * begin_next(costs, below(tree, 0))
    whole = first + took + (rounds - 1) * max(first, took)
    return rounds * costs.per_chip * task / whole


def find_task(tree, wanted, costs, rounds=1000):
    """The shortest task of a chip, in us, with which so much of the chips' time is work in the long run; None: none is."""
    low, high = 0.1, 1e7
    if on_paper(tree, high, costs, rounds) < wanted:
        return None
    while high / low > 1.0001:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if on_paper(tree, middle, costs, rounds) >= wanted else (middle, high)
    return high


def table(costs):
    lines = ["| a chip's task | " + " | ".join(TREES) + " | hosts of one submitter |", "|---|" + "---:|" * (len(TREES) + 1)]
    for task in TASKS_US:
        cells = [f"{100 * simulate(tree, task, costs)[0]:.1f} % ({100 * on_paper(tree, task, costs):.1f})" for tree in TREES.values()]
        lines.append(f"| {task} us | " + " | ".join(cells) + f" | {hosts_at_most(task, costs):.0f} |")
    cells = []
    for tree in TREES.values():
        found = find_task(tree, 0.5, costs), find_task(tree, 0.9, costs)
        cells.append(", ".join("never" if one is None else f"{one:.0f} us" for one in found))
    lines.append("| half, nine tenths in the long run, from | " + " | ".join(cells) + " | |")
    return lines


def chart(costs):
    """Tasks of TASKS_US from left to right, evenly; 0 to 100 % from below."""
    width, height, left, bottom = 640, 360, 50, 310
    step = (width - left - 20) / (len(TASKS_US) - 1)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
             "<title>The part of 8000 chips' time that is work, by how long their tasks are</title>"]
    for percent in range(0, 101, 25):
        y = bottom - percent * 2.8
        lines.append(f'<line x1="{left}" y1="{y:g}" x2="{width - 20}" y2="{y:g}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{y + 4:g}" text-anchor="end">{percent} %</text>')
    for i, task in enumerate(TASKS_US):
        text = f"{task} us" if task < 1000 else f"{task // 1000} ms"
        lines.append(f'<text x="{left + i * step:.1f}" y="{bottom + 18}" text-anchor="middle">{text}</text>')
    for k, (name, tree) in enumerate(TREES.items()):
        parts = [simulate(tree, task, costs)[0] for task in TASKS_US]
        points = " ".join(f"{left + i * step:.1f},{bottom - 280 * part:.1f}" for i, part in enumerate(parts))
        lines.append(f'<polyline fill="none" stroke="{COLOURS[k]}" stroke-width="2" points="{points}"/>')
        for i, (task, part) in enumerate(zip(TASKS_US, parts)):
            lines.append(f'<circle cx="{left + i * step:.1f}" cy="{bottom - 280 * part:.1f}" r="3" fill="{COLOURS[k]}">'
                         f"<title>{name}, {task} us: {100 * part:.1f} %</title></circle>")
        lines.append(f'<text x="{left + 12}" y="{44 + 16 * k}" fill="{COLOURS[k]}">{name}</text>')
    return lines + ["</svg>"]


def main():
    parser = argparse.ArgumentParser(description="tells how busy 1000 hosts with 8 chips each are, by the shape of their tree")
    defaults = Costs()
    for name, what in (("submit", "us of a submit and its completion"), ("trip", "us of an empty remote task"),
                       ("bridge", "us of a CPU of who submits it"), ("cores", "of a machine that submits"),
                       ("bandwidth", "of a machine's link, bytes/us"), ("size", "bytes for each task of a host"),
                       ("per-chip", "tasks for each chip in a task of a host"), ("jitter", "of a chip's tasks, a part of them")):
        default = getattr(defaults, name.replace("-", "_"))
        parser.add_argument("--" + name, type=type(default), default=default, help=f"{what}; {default:g}")
    parser.add_argument("--svg", help="save the chart there")
    parser.add_argument("--speed", action="store_true", help="tell how many tasks of chips are simulated in a second")
    options = parser.parse_args()
    costs = Costs(options.submit, options.trip, options.bridge, options.cores, options.bandwidth, options.size, options.per_chip, options.jitter)
    if min(costs.submit, costs.trip, costs.bandwidth, costs.cores) <= 0 or min(costs.size, costs.bridge) < 0 or costs.per_chip < 1 or not 0 <= costs.jitter < 1:
        parser.error("submit, trip, bandwidth and cores are above 0, bridge and size not below, per-chip is 1 or more, jitter from 0 to below 1")
    print("\n".join(table(costs)))
    if options.svg:
        with open(options.svg, "w", encoding="utf-8") as file:
            file.write("\n".join(chart(costs)) + "\n")
    if options.speed:
        begin = time.perf_counter()
        count = simulate(TREES["1000 x 8"], 100, costs)[1]
        print(f"{count / (time.perf_counter() - begin):.0f} tasks a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
