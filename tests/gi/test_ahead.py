# test_ahead.py: are kernels compiled before the clock of a run begins?
# SPDX-License-Identifier: LGPL-2.1-or-later
import gc
import json
import os
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

SOURCE = """#include "tensor.h"
const char unique[] = "%s";
#ifndef BY
#define BY 2
#endif
void
kernel_entry (int64_t *args)
{
  const TensorData *x = (const TensorData *) args[0];
  const TensorData *y = (const TensorData *) args[1];

  *(float *) y->buffer.addr = BY * *(const float *) x->buffer.addr;
}
"""


@unittest.skipUnless(np, "no NumPy")
class Ahead(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.events = []
        self.x, self.y = np.ones(1, "f4"), np.zeros(1, "f4")

    def kernel(self, name, source=SOURCE):
        """A source that no cache has seen."""
        path = os.path.join(self.directory.name, name + ".c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source % GLib.uuid_string_random() if "%s" in source else source)
        kernel = Pto.Callable.kernel(path)
        kernel.set_name(name)
        return kernel

    def worker(self, **parameters):
        worker = Pto.Worker(platform="a2a3sim")
        for name, value in parameters.items():
            worker.set_parameter(name, value)
        worker.connect("progress", lambda worker, done, total, name, cached: self.events.append((name, cached)))
        return worker

    def graph(self, *kernels):
        def graph(orch, x, y):
            self.events.append("begin")
            for kernel in kernels:
                orch.submit(kernel, x.read(), y.write_existing())
        return graph

    def run_graph(self, worker, *kernels):
        """What was compiled before the function was called, and while it ran."""
        self.events.clear()
        worker.run(self.graph(*kernels), self.x, self.y)
        at = self.events.index("begin")
        return sorted(self.events[:at]), self.events[at + 1:]

    def test_before_the_run(self):
        for parameters in {"backend": "par"}, {"backend": "det"}, {"backend": "threads"}, {"isolate": "1"}:
            with self.subTest(**parameters), self.worker(trace="1", **parameters) as worker:
                first, second = self.kernel("first"), self.kernel("second")
                self.assertEqual(self.run_graph(worker, first, second),
                                 ([('kernel "first"', False), ('kernel "second"', False)], []))
                self.assertEqual(self.y[0], 2)
                # Then the worker has them.
                self.assertEqual(self.run_graph(worker, first, second), ([], []))
                events = json.loads(worker.trace.to_json())["traceEvents"]
                self.assertEqual(sorted(e["name"] for e in events if e.get("cat") == "kernel"), ["first", "second"])

    def test_another_worker(self):
        """One that was used is looked for in the cache before each worker's first run."""
        used = self.kernel("used")
        for cached in False, True, True:
            with self.worker() as worker:
                self.assertEqual(self.run_graph(worker, used), ([('kernel "used"', cached)], []))

    def test_graph(self):
        """A graph that was captured elsewhere: its kernels are compiled before its launch begins, too."""
        used = self.kernel("used")
        with self.worker() as worker:
            step = worker.capture(lambda orch, x, y: orch.submit(used, x.read(), y.write_existing()), self.x, self.y)
        during = []
        with self.worker() as worker:
            worker.connect("progress", lambda worker, *_: during.append(worker.progress is not None))
            worker.run(step, self.x, self.y)
            self.assertEqual(during, [False])
            # As it is told while the run lasts.
            during.clear()
            worker.run(lambda orch, x, y: orch.submit(self.kernel("inner"), x.read(), y.write_existing()), self.x, self.y)
            self.assertEqual(during, [True])

    def test_not_used(self):
        """One that no function submits is compiled once; later by the submit, if there is one."""
        used, spare = self.kernel("used"), self.kernel("spare")
        with self.worker() as worker:
            self.assertEqual(self.run_graph(worker, used), ([('kernel "spare"', False), ('kernel "used"', False)], []))
            self.assertEqual(self.run_graph(worker, used), ([], []))
            self.assertEqual(self.run_graph(worker, spare), ([], [('kernel "spare"', True)]))
        with self.worker() as worker:
            self.assertEqual(self.run_graph(worker, spare), ([('kernel "spare"', True), ('kernel "used"', True)], []))

    def test_gone(self):
        used, gone = self.kernel("used"), self.kernel("gone")
        del gone
        gc.collect()
        with self.worker() as worker:
            self.assertEqual(self.run_graph(worker, used), ([('kernel "used"', False)], []))

    def test_made_inside(self):
        """A function may make its kernels itself: their submits compile them."""
        def graph(orch, x, y):
            self.events.append("begin")
            orch.submit(self.kernel("inner"), x.read(), y.write_existing())
        with self.worker() as worker:
            worker.run(graph, self.x, self.y)
        self.assertEqual(self.events, ["begin", ('kernel "inner"', False)])
        self.assertEqual(self.y[0], 2)

    def test_broken(self):
        """It does not keep others from being compiled, and is an error of who submits it."""
        broken, good = self.kernel("broken", "int x = ;\n"), self.kernel("good")
        with self.worker() as worker:
            before, inside = self.run_graph(worker, good)
            self.assertIn(('kernel "good"', False), before + [(name, False) for name, _ in before])
            self.assertEqual(inside, [])
            self.assertEqual(self.y[0], 2)
            with self.assertRaisesRegex(GLib.Error, r'kernel "broken": .*broken\.c:1'):
                worker.run(self.graph(broken), self.x, self.y)

    def test_other_flags(self):
        """What it is compiled with may change until it is submitted."""
        kernel = self.kernel("scaled")

        def graph(orch, x, y):
            kernel.set_compiler_flags(["-DBY=3"])
            orch.submit(kernel, x.read(), y.write_existing())
        with self.worker() as worker:
            worker.run(graph, self.x, self.y)
        self.assertEqual(self.y[0], 3)

    def test_another_source(self):
        """What was compiled before one run is not taken for what the source says at another."""
        used, later = self.kernel("used"), self.kernel("later")
        with self.worker() as worker:
            self.run_graph(worker, used)
            with open(os.path.join(self.directory.name, "later.c"), "w", encoding="utf-8") as file:
                file.write("#define BY 5\n" + SOURCE % "")
            self.run_graph(worker, later)
        self.assertEqual(self.y[0], 5)


if __name__ == "__main__":
    tap.main()
