#!/usr/bin/env python3
# group.py: how do four workers compute together, each needing the others while it works?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Running sums of a vector: out[i] = x[0] + ... + x[i]. Each of four members adds up its quarter, tells the others, waits
# until it has the sums of all quarters before its own, and writes its part of the result. That can only end when all four
# run at the same time, which is what a group is.
import sys
import time

import gi
import numpy as np
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

members, elements = 4, 4096
quarter = elements // members
untold = np.iinfo("i8").min


def running_sum(args):
    """x, out: a member's quarters; board: the sums of all quarters, as members tell them; which member this is."""
    x, out, board, member = args
    board[member] = x.sum()
    while (board[:member] == untold).any():
        if args.is_cancelled():  # somebody else has failed instead of telling
            raise RuntimeError("another member has failed")
        time.sleep(20e-6)
    out[:] = np.cumsum(x) + board[:member].sum()


def main():
    with Pto.Worker(level=3, sub_workers=members) as host:
        handle = host.register(running_sum)

        def graph(orch, x, out, board):
            parts = [(x.view([quarter], [i * quarter]), out.view([quarter], [i * quarter])) for i in range(members)]
            # One task with four members. The board is no_dep: the members order themselves there.
            orch.submit_sub_group(handle, [[part.read(), result.write_existing(), board.no_dep(), i]
                                           for i, (part, result) in enumerate(parts)])

        x, out, board = (Pto.Buffer.array(n, "i8") for n in (elements, elements, members))
        x[:] = np.arange(elements) % 7 - 2
        board[:] = untold
        host.run(graph, x, out, board)

    ok = np.array_equal(out, np.cumsum(x))
    print(f"running sums by a group of {members}: the last of {elements} is {out[-1]}: {'PASS' if ok else 'FAIL'}")
    return 0 if ok else 1


sys.exit(main())
