# heads.py: what does a remote worker of this example do with its heads?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# It is imported there, from the directory that the worker was given.


def heads(orch, args, config):
    """x, wq, wk, wv, wo, out: a head for each of two chips, one below the other in the weights; then the sum of both."""
    x, *weights, out = (args.get_tensor(i) for i in range(6))
    on_chip = orch.worker.lookup("head_orch")
    parts = [out, orch.alloc(x.get_shape())]
    for chip, part in enumerate(parts):
        own = []
        for w in weights:
            rows, columns = w.get_shape()
            own.append(w.view([rows // 2, columns], [chip * (rows // 2), 0]).read())
        orch.submit_next_level(on_chip, [x.read(), *own, part.write_existing()], worker=chip)
    orch.allreduce(parts)
