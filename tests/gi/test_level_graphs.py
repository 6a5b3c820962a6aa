# test_level_graphs.py: are orchestrations of workers above chips captured, and launched with other arguments?
# SPDX-License-Identifier: LGPL-2.1-or-later
import asyncio
import os
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

here = os.path.dirname(os.path.abspath(__file__))
N = 8


def double(args):
    """The second = 2 * the first + a number."""
    np.asarray(args[1])[:] = 2 * np.asarray(args[0]) + args[2]


def new():
    return Pto.Buffer.array(N, "i8")


@unittest.skipIf(np is None, "no numpy")
class LevelGraphs(unittest.TestCase):
    def refused(self, words, call, *args, **more):
        with self.assertRaisesRegex(Exception, words):
            call(*args, **more)

    def test_two_tasks(self):
        """The same numbers, statistics and names, a hundred times, with other arguments."""
        with Pto.Worker(level=3, sub_workers=2) as worker:
            worker.set_parameter("trace", 1)
            handle = worker.register(double)

            def function(orch, x, y):
                made = orch.tensor(N, "i8")
                orch.submit_sub(handle, [x.read(), made.write(), 1])
                orch.submit_sub(handle, [made.read(), y.write_existing(), 2])
            x, y = new(), new()
            x[:] = range(N)
            graph = worker.capture(function, x, y)
            self.assertEqual(y.tolist(), [0] * N)
            self.assertEqual(str(graph), "<Pto.Graph: 2 tasks of 1 callable, 2 arguments>")
            self.assertEqual((graph.n_tasks, graph.n_edges, graph.n_arguments), (2, 1, 2))
            worker.run(function, x, y)
            self.assertEqual(y.tolist(), [4 * i + 4 for i in range(N)])
            for i in range(100):
                other, result = (new(), new()) if i % 10 == 0 else (other, result)
                other[:] = i
                worker.run(graph, other, result)
                self.assertEqual(result.tolist(), [4 * i + 4] * N)
                self.assertEqual(worker.statistics.tasks, 2)
                self.assertEqual([task.name for task in worker.trace.list_tasks()], ["double"] * 2)
            result[:] = 0
            asyncio.run(worker.run_async(graph, x, result))
            self.assertEqual(result.tolist(), y.tolist())


tap.main()
