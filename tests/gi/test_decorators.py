# test_decorators.py: does a function that is decorated stand for a kernel, or for what SUB workers call?
# SPDX-License-Identifier: LGPL-2.1-or-later
import asyncio
import importlib.util
import itertools
import os
import sys
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

# args[1] = %s * args[0], float32, or that of an integer that is given.
SCALE = """\
#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *in = (const TensorData *) args[0], *out = (const TensorData *) args[1];
  const float *x = (const float *) in->buffer.addr + in->start_offset;
  float *y = (float *) out->buffer.addr + out->start_offset;

  for (uint64_t i = 0; i < in->shapes[0]; i++)
    y[i] = (float) (%s) * x[i];
}
"""

MODULE = """\
from gi.repository import Pto

@Pto.kernel("scale.c", args=3)
def scale(x, y, factor=2):
    '''y = factor * x.'''
    return x.read(), y.write_existing(), factor

@Pto.kernel("edited.c")
def edited(x, y):
    return [x.read(), y.write_existing()]

@Pto.kernel("scale.c")
def nothing(x):
    pass

@Pto.kernel("scale.c")
def pair(x):
    return x.read()

@Pto.sub
def total(a, b, out, factor=1):
    out[0] = factor * (a.sum() + b.sum())
"""


@unittest.skipUnless(np, "no NumPy")
class Decorators(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.times = itertools.count(10**12)
        self.write("scale.c", SCALE % "args[2]")
        self.write("edited.c", SCALE % "2")
        self.write("decorated_here.py", MODULE)
        spec = importlib.util.spec_from_file_location("decorated_here", os.path.join(self.directory, "decorated_here.py"))
        self.module = importlib.util.module_from_spec(spec)
        sys.modules["decorated_here"] = self.module
        self.addCleanup(sys.modules.pop, "decorated_here")
        spec.loader.exec_module(self.module)
        self.x, self.y = np.arange(8, dtype="f4"), np.zeros(8, "f4")

    def write(self, name, text):
        """Some time ago, each time a little later: what is written while a compiler reads it is not known."""
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        os.utime(path, ns=(0, next(self.times) * 10**6))

    def test_kernel(self):
        scale = self.module.scale
        self.assertEqual((scale.__name__, scale.__doc__), ("scale", "y = factor * x."))
        self.assertIn("scale.c", repr(scale))
        z = np.zeros(8, "f4")

        def graph(orch, x, y, z):
            first = scale(orch, x, y)
            self.assertEqual(first, orch.last_task)
            scale(orch, y, z, factor=3, after=[first], priority=1)
            orch.submit(scale, z[0:4], x[4:8], 10, priority=2)

        with Pto.Worker(platform="a2a3sim") as chip:
            chip.run(graph, self.x, self.y, z)
            self.assertEqual(chip.statistics.tasks, 3)
            one = chip.capture(lambda orch, x, y: scale(orch, x, y, 5), self.x, self.y)
            chip.run(one, z, self.y)
            graph = Pto.Graph()
            a, b = graph.add_argument(8), graph.add_argument(8)
            scale(graph, a, b, 7)
            chip.run(graph, z, self.x)
        begin = np.arange(8, dtype="f4")
        self.assertEqual(z.tolist(), (6 * begin).tolist())
        self.assertEqual(self.y.tolist(), (30 * begin).tolist())
        self.assertEqual(self.x.tolist(), (42 * begin).tolist())

    def test_an_edited_source(self):
        """Is built anew for the next run, on the same worker; what was captured stays."""
        edited = self.module.edited
        with Pto.Worker(platform="a2a3sim") as chip:
            def run():
                chip.run(lambda orch, x, y: [edited(orch, x[i:i + 4], y[i:i + 4]) for i in (0, 4)] and None, self.x, self.y)
                return self.y[1]
            self.assertEqual(run(), 2)
            first = edited.kernel
            self.assertIs(edited.kernel, first)
            before = chip.capture(lambda orch, x, y: edited(orch, x, y), self.x, self.y)
            self.write("edited.c", SCALE % "30")
            self.assertIsNot(edited.kernel, first)
            self.assertEqual(run(), 30)
            self.write("edited.c", "an error;")
            with self.assertRaises(Pto.CompileError):
                run()
            self.write("edited.c", SCALE % "400")
            self.assertEqual(run(), 400)
            chip.run(before, self.x, self.y)
            self.assertEqual(self.y[1], 2)
            os.unlink(os.path.join(self.directory, "edited.c"))
            with self.assertRaises(Pto.NotFoundError):
                run()

    def test_an_edited_header(self):
        """As an edited source, wherever the header is included from."""
        edited = self.module.edited
        self.write("factor.h", '#include "number.h"\n#define FACTOR NUMBER\n')
        self.write("number.h", "#define NUMBER 5\n")
        self.write("edited.c", '#include "factor.h"\n' + SCALE % "FACTOR")
        with Pto.Worker(platform="a2a3sim") as chip:
            def run():
                chip.run(lambda orch, x, y: edited(orch, x, y) and None, self.x, self.y)
                return self.y[1]
            self.assertEqual(run(), 5)
            first = edited.kernel
            self.assertIs(edited.kernel, first)
            self.assertLessEqual({os.path.join(self.directory, name) for name in ("edited.c", "factor.h", "number.h")}, set(first.files))
            self.write("number.h", "#define NUMBER 7\n")
            self.assertTrue(first.is_edited())
            self.assertEqual(run(), 7)
            self.assertIs(edited.kernel, edited.kernel)
            self.write("number.h", "#error no number\n")
            for _ in range(2):
                with self.assertRaisesRegex(Pto.CompileError, "no number"):
                    run()
            self.write("number.h", "#define NUMBER 5\n")
            self.assertEqual(run(), 5)

    def test_refused(self):
        with self.assertRaisesRegex(TypeError, "the source of the kernel is missing"):
            Pto.kernel(len)
        with self.assertRaisesRegex(TypeError, "stands before one"):
            Pto.sub("x")
        with self.assertRaisesRegex(TypeError, r"scale\(orch, \.\.\.\) submits"):
            self.module.scale(self.x, self.y)
        with Pto.Worker(platform="a2a3sim") as chip:
            for call, text in ((lambda orch, x: self.module.nothing(orch, x), "such as .x.read.*: it has given None"),
                               (lambda orch, x: self.module.pair(orch, x), "gives the arguments of its task"),
                               (lambda orch, x: self.module.scale(orch, x), "missing 1 required positional argument: 'y'"),
                               (lambda orch, x: self.module.scale(orch, x, x, fctor=1), "unexpected keyword argument 'fctor'"),
                               (lambda orch, x: orch.submit_group([self.module.scale], x.read()), r"its \.kernel is one")):
                with self.assertRaisesRegex(TypeError, text):
                    chip.run(call, self.x)

    def test_sub(self):
        """Known by workers that start later, wherever they are; it has arrays, and stays a function."""
        total = self.module.total
        out = np.zeros(1)
        total(np.ones(2), np.ones(3), out)
        self.assertEqual(out[0], 5)
        a, b, shared = Pto.Buffer.array(4), Pto.Buffer.array(4), Pto.Buffer.array(2)
        a[:], b[:] = 1, 2

        def graph(orch, a, b, out):
            total(orch, a.read(), b.read(), out[0:1].write_existing())
            orch.submit_sub(total, [a.read(), a.read(), out[1:2].write_existing(), 10])

        for level in 3, 4:
            shared[:] = 0
            with Pto.Worker(level=3, sub_workers=1) as host:
                if level == 3:
                    host.run(graph, a, b, shared)
                    self.assertEqual(shared.tolist(), [12, 80])
                    shared[:] = 0
                    asyncio.run(host.run_async(graph, a, b, shared))
                    self.assertEqual(shared.tolist(), [12, 80])
                    self.assertIs(total.handle_for(host), total.handle_for(host))
                    continue
                with Pto.Worker(level=4) as top:
                    below = top.register(lambda orch, args: graph(orch, *args.tensors))
                    top.add_worker(host)
                    top.run(lambda orch, *x: orch.submit_next_level(below, [t.update() for t in x]), a, b, shared)
            self.assertEqual(shared.tolist(), [12, 80])

    def test_sub_that_can_not_be_imported(self):
        """Goes along when the processes are made: none is made anew for it when it is wanted."""
        @Pto.sub
        def first(out):
            out[0] = os.getpid()

        @Pto.sub
        def second(out, number):
            out[1:] = os.getpid(), number

        out = Pto.Buffer.array(3, "i8")
        with Pto.Worker(level=3, sub_workers=1) as host:
            host.run(lambda orch, out: first(orch, out.update()), out)
            host.run(lambda orch, out: second(orch, out.update(), 5), out)
        self.assertNotIn(out[0], (0, os.getpid()))
        self.assertEqual(out.tolist(), [out[0], out[0], 5])

    def test_sub_that_is_registered(self):
        with Pto.Worker(level=3, sub_workers=1) as host:
            handle = host.register(self.module.total)
            a, out = Pto.Buffer.array(4), Pto.Buffer.array(1)
            a[:] = 3
            host.run(lambda orch, a, out: orch.submit_sub(handle, [a.read(), a.read(), out.write_existing()]), a, out)
        self.assertEqual(out[0], 24)

    def test_sub_of_an_import(self):
        """A worker that has started already has its children import it, as they do any function."""
        self.write("decorated_late.py", "from gi.repository import Pto\n\n@Pto.sub\ndef seven(out):\n    out[0] = 7\n")
        sys.path.insert(0, self.directory)
        self.addCleanup(sys.path.remove, self.directory)
        self.addCleanup(sys.modules.pop, "decorated_late", None)
        with Pto.Worker(level=3, sub_workers=1) as host:
            host.start()
            seven = importlib.import_module("decorated_late").seven
            out = Pto.Buffer.array(1)
            host.run(lambda orch, out: seven(orch, out.write_existing()), out)
        self.assertEqual(out[0], 7)


tap.main()
