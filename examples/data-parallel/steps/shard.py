# shard.py: what does a remote worker of this example do with its part of the rows?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# It is imported there, from the directory that the worker was given.


def add(args):
    a, b, g = args
    g[:] = a + b


def gradient(orch, args, config):
    """x, y, w, g: half of the rows for each of two chips, then their sum."""
    x, y, w, g = (args.get_tensor(i) for i in range(4))
    on_chip = orch.worker.lookup("gradient_orch")
    rows, columns = x.get_shape()
    half = rows // 2
    halves = [orch.alloc(columns) for _ in range(2)]
    for chip, part in enumerate(halves):
        orch.submit_next_level(on_chip, [x.view([half, columns], [chip * half, 0]).read(), y.view([half], [chip * half]).read(),
                                         w.read(), part.write()], worker=chip)
    orch.submit_sub(orch.worker.lookup("add"), [halves[0].read(), halves[1].read(), g.write_existing()])


def move(orch, args, config):
    """g, w: where the weights stay at the workers, each moves its own."""
    g, w = args
    w -= 1e-3 * g


def copy(orch, args, config):
    args[1][:] = args[0]
