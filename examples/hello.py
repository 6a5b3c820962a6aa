#!/usr/bin/env python3
# hello.py: how does a Python function run a task graph on a simulated chip?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Not installed: meson devenv -C build --workdir "$PWD" /usr/bin/python3 examples/hello.py

import os
import struct

import gi
gi.require_version("Pto", "1")
from gi.repository import GLib, Pto

kernels = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vector", "kernels")
add = Pto.Kernel.new(Pto.CoreType.AIV, os.path.join(kernels, "add.c"), "kernel_entry")
chip = Pto.Worker.new_chip("a2a3sim")
chip.start(None)
buffers = [chip.alloc_buffer(4 * 1024) for _ in range(3)]
for buffer, value in zip(buffers, (2.0, 3.0, 0.0)):
    buffer.write(0, GLib.Bytes.new(struct.pack("1024f", *[value] * 1024)))
a, b, f = [Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [1024]) for buffer in buffers]


def graph(orchestrator, args, config, *user_data):
    c = orchestrator.make_tensor(Pto.Dtype.FLOAT32, [1024])
    for x, y, out in (a, b, c), (c, b, f):
        task = Pto.TaskArgs.new()
        task.add_tensor(x, Pto.Direction.INPUT)
        task.add_tensor(y, Pto.Direction.INPUT)
        task.add_tensor(out, Pto.Direction.OUTPUT)
        orchestrator.submit(add, task)
    return True


chip.run(graph, None, None, None, None)
print("2 + 3 + 3 =", struct.unpack_from("f", buffers[2].read(0, 4).get_data())[0])
chip.close()
