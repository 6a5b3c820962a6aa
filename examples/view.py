#!/usr/bin/env python3
# view.py: how does a program look at the trace of a run?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A line for each core that worked, drawn from the trace's lists of tasks, edges and cores.
# Not installed: meson devenv -C build --workdir "$PWD" /usr/bin/python3 examples/view.py

import os

import gi
gi.require_version("Pto", "1")
from gi.repository import Pto

WIDTH = 60


def view(trace):
    tasks, edges, cores = list(trace.list_tasks()), list(trace.list_edges()), list(trace.list_cores())
    elapsed = max(trace.get_elapsed_ns(), 1)
    for number, core in enumerate(cores):
        line = [" "] * WIDTH
        for task in tasks:
            for member in task.list_members():
                if member.get_core() == number:
                    first, last = (time * WIDTH // elapsed for time in (member.get_start_ns(), member.get_end_ns()))
                    line[first:last + 1] = (task.get_name()[0] if task.is_critical() else "-") * (min(last, WIDTH - 1) - first + 1)
        if core.get_busy_ns() > 0:
            print(f"{core.get_path()} {core.get_name():>6} |{''.join(line)}| {100 * core.get_busy_ns() / elapsed:3.0f} %")
    waits = [tasks[edge.get_consumer()].get_start_ns() - tasks[edge.get_producer()].get_end_ns()
             for edge in edges if edge.get_producer() >= 0]
    print(f"{len(tasks)} tasks, {len(edges)} edges, {sum(waits) / max(len(waits), 1) / 1000:.3f} us from a task's end to "
          "the start of one that waited for it")
    for kind, name in (Pto.TraceCoreKind.AIC, "AIC"), (Pto.TraceCoreKind.AIV, "AIV"):
        busy = [core.get_busy_ns() for core in cores if core.get_kind() == kind]
        if busy:
            print(f"{len(busy)} {name} busy {100 * sum(busy) / len(busy) / elapsed:.0f} %")


if __name__ == "__main__":
    kernels = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vector", "kernels")
    add = Pto.Kernel.new(Pto.CoreType.AIV, os.path.join(kernels, "add.c"), "kernel_entry")
    buffers = [Pto.Buffer.new(4 * 1024) for _ in range(8)]
    tensors = [Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [1024]) for buffer in buffers]

    def graph(orchestrator, *rest):
        """Eight vectors become one: four additions side by side, then two, then one."""
        step = 1
        while step < len(tensors):
            for i in range(0, len(tensors), 2 * step):
                args = Pto.TaskArgs.new()
                args.add_tensor(tensors[i], Pto.Direction.INPUT)
                args.add_tensor(tensors[i + step], Pto.Direction.INPUT)
                args.add_tensor(tensors[i], Pto.Direction.OUTPUT_EXISTING)
                orchestrator.submit(add, args)
            step *= 2
        return True

    chip = Pto.Worker.new_chip("a2a3sim")
    for name, value in ("backend", "det"), ("clusters", "3"), ("trace", "1"):
        chip.set_parameter(name, value)
    chip.start(None)
    chip.run(graph, None, None, None, None)
    view(chip.ref_trace())
    print(chip.ref_trace().summarize(), end="")
    chip.close()
