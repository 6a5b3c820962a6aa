# remote_collectives.py: what does a remote worker of test_collectives.py run?
# SPDX-License-Identifier: LGPL-2.1-or-later


def below(orch, args, config):
    x = args.get_tensor(0)
    n = x.get_shape()[0]
    orch.allreduce([x.view([n // 2], [i * (n // 2)]) for i in range(2)])
