#!/usr/bin/env python3
# recursion.py: how does a worker of level 4 run an orchestration on a worker of level 3?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Two levels, three processes, one SUB function at the bottom. That function notes which process it ran in; the
# reference is that it ran once, and in no process of ours.
import os
import sys

import gi
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402
from gi.repository.Pto import CallConfig, TaskArgs, Worker  # noqa: E402

notes = Pto.Buffer.array(2, "i8")


def verify_result():
    notes[0] += 1
    notes[1] = os.getpid()


def main():
    # L3 child: sub-only (no chips for this example)
    l3 = Worker(level=3, num_sub_workers=1)
    l3_sub_handle = l3.register(lambda: verify_result())

    def my_l3_orch(orch, args, config):
        orch.submit_sub(l3_sub_handle)

    # L4 parent
    w4 = Worker(level=4, num_sub_workers=0)
    l3_handle = w4.register(my_l3_orch)
    w4.add_worker(l3)
    w4.init()

    def my_l4_orch(orch, args, config):
        orch.submit_next_level(l3_handle, TaskArgs(), CallConfig())

    w4.run(my_l4_orch)
    w4.close()

    ok = notes[0] == 1 and notes[1] not in (0, os.getpid())
    print(f"L4 -> L3 -> SUB: the function ran {notes[0]} time, in another process: {'PASS' if ok else 'FAIL'}")
    return 0 if ok else 1


sys.exit(main())
