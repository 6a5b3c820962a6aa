# test_checks.py: can one run ask that its kernels are checked, on any worker, and what does it find there?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from sources_helper import one_task  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

HEAD = """\
#include "tensor.h"
#define AT(i, k) ((float *) (uintptr_t) T (i)->buffer.addr)[T (i)->start_offset + (k)]
#define T(i) ((const TensorData *) (uintptr_t) args[i])
"""

# args[1] = args[0] + args[2].
ADD = HEAD + """\
void kernel_entry (int64_t *args)
{
  for (uint64_t i = 0; i < T (0)->shapes[0]; i++)
    AT (1, i) = AT (0, i) + (float) args[2];
}
"""

# The same, and the second element of args[0] is spoilt.
SPOIL = ADD.replace("}\n", "  AT (0, 1) += 1;\n}\n")

# args[1] is what it was, and args[0].
FOLD = ADD.replace("AT (1, i) = ", "AT (1, i) += ")

# Runs a kernel, whose file is given, three times, the last two checked.
PROGRAM = """if True:
    import sys, gi
    gi.require_version("Pto", "1")
    from gi.repository import GLib, Pto
    import numpy as np
    x = np.zeros(8, "f4")
    kernel = Pto.Callable.kernel(sys.argv[1])
    with Pto.Worker() as worker:
        for config in None, Pto.CallConfig(enable_access_check=1), Pto.CallConfig(enable_access_check=1):
            try:
                worker.run(lambda orch, x, y: orch.submit(kernel, x.read(), y.write(), 1), x, x.copy(), config=config)
                print("well")
            except GLib.Error as error:
                print(error.message)
            TURN
    """

WROTE = r"wrote to bytes 4 to 7 of its argument 0 \(INPUT, float32, from element 1\): give it as INOUT"
CHECKED = Pto.CallConfig(enable_access_check=1)


@unittest.skipIf(np is None, "no NumPy")
class Checks(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-test-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.cache = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "libpto")
        for name, text in ("add", ADD), ("spoil", SPOIL), ("fold", FOLD), ("chip", one_task(1)):
            self.write(name, text)
        for name in "add", "spoil", "fold":
            setattr(self, name, Pto.Callable.kernel(self.path(name)))
        # More than a page apart, so that what lies beside one of them is not the other one.
        memory = np.zeros(4096, "f4")
        self.x, self.y = memory[1024:1032], memory[3072:3080]
        self.x[:] = range(8)

    def path(self, name):
        return os.path.join(self.directory, name + ".c")

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def program(self, text, *args, **environment):
        return subprocess.run([sys.executable, "-c", text, *args], capture_output=True, text=True,
                              env=dict(os.environ, G_MESSAGES_DEBUG="Pto", **environment), check=False)

    def chip(self, kernel):
        chip = Pto.ChipOrchestration.new(self.path("chip"), None)
        chip.add_kernel(0, kernel.get_name(), kernel)
        return chip

    def everywhere(self, test):
        for isolate in False, True:
            for backend in "par", "det", "threads":
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                    worker.set_parameter("backend", backend)
                    test(worker)

    def finds(self, words, run, *args, **more):
        with self.assertRaisesRegex(GLib.Error, words) as caught:
            run(*args, **more)
        self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.ACCESS), caught.exception)
        return caught.exception.message

    def one(self, kernel):
        return lambda orch, x, y: orch.submit(kernel, x.read(), y.write(), 1)

    def test_value(self):
        config = Pto.CallConfig()
        self.assertEqual(config.enable_access_check, 0)
        config.enable_access_check = 1
        self.assertEqual((config.enable_access_check, config.copy().enable_access_check), (1, 1))
        self.assertEqual(config.to_string(), "enable_access_check=1")
        for value in 2, -1:
            with Pto.Worker() as worker, self.assertRaisesRegex(GLib.Error, rf"enable_access_check is {value}: it must be 0 \(off\) or 1"):
                worker.run(lambda orch: None, config=Pto.CallConfig(enable_access_check=value))

    def test_one_run(self):
        """Only those that ask for it, in whatever order; all see the kernel that they should, and what it computes."""
        def test(worker):
            for turn in range(2):
                worker.run(self.one(self.spoil), self.x, self.y)
                message = self.finds(WROTE, worker.run, self.one(self.spoil), self.x, self.y, config=CHECKED)
                self.assertRegex(message, r"task 0 of ring 0 \(spoil\), submitted at test_checks.py:\d+, " + WROTE)
                worker.run(self.one(self.add), self.x, self.y, config=CHECKED)
                self.assertEqual(self.y.tolist(), (self.x + 1).tolist())
            if not worker.get_property("isolate"):
                self.assertRegex(worker.dup_last_writer(self.y.ctypes.data), r"^task 0 of ring 0 \(add\)")
                worker.run(self.one(self.add), self.x, self.y)
                self.assertIsNone(worker.dup_last_writer(self.y.ctypes.data))

        self.everywhere(test)

    def test_pairs(self):
        """What is in no order, though the first is long over when the second is submitted; a run that is not checked forgets."""
        def test(worker):
            def graph(orch, x, y):
                orch.submit(self.add, x.read(), y.no_dep(), 1)
                for _ in range(100):
                    orch.submit(self.add, x.read(), orch.make_tensor([8], "f4").write(), 1)
                orch.submit(self.add, y.no_dep(), orch.make_tensor([8], "f4").write(), 1)

            message = self.finds("are in no order and touch the same bytes", worker.run, graph, self.x, self.y, config=CHECKED)
            self.assertRegex(message, r"the first writes bytes 0 to 31 of its argument 1 \(NO_DEP.*the second reads bytes 0 to 31 of its argument 0 \(NO_DEP.*give argument")
            worker.run(graph, self.x, self.y)

        self.everywhere(test)

    def test_registered(self):
        def test(worker):
            spoil, add = worker.register(self.chip(self.spoil)), worker.register(self.chip(self.add))
            worker.run(spoil, self.x, self.y)
            self.finds(r"task 0 of ring 0 \(spoil\), submitted at .*chip.c:11, " + WROTE, worker.run, spoil, self.x, self.y, config=CHECKED)
            worker.run(add, self.x, self.y, config=CHECKED)
            self.assertEqual(self.y.tolist(), (self.x + 1).tolist())

        self.everywhere(test)

    def graph(self, kernel, read="read", write="write"):
        graph = Pto.Graph()
        x, y = (graph.add_argument(8, name=name) for name in "xy")
        graph.add_task(kernel, getattr(x, read)(), getattr(y, write)(), 1)
        return graph

    def test_launched(self):
        """Tags of graphs are known, by whom ever they were made: function, registered orchestration, hand."""
        def test(worker):
            for kernel in self.spoil, self.add:
                handle = worker.register(self.chip(kernel))
                graphs = (worker.capture(self.one(kernel), self.x, self.y, config=CHECKED), worker.capture(handle, self.x, self.y),
                          self.graph(kernel))
                for graph in graphs:
                    worker.run(graph, self.x, self.y)
                    if kernel is self.add:
                        worker.run(graph, self.x, self.y, config=CHECKED)
                        self.assertEqual(self.y.tolist(), (self.x + 1).tolist())
                    else:
                        self.finds(r"task 0 of ring \d \(spoil\)" + ".*" + WROTE, worker.run, graph, self.x, self.y, config=CHECKED)
                # A second worker has got neither the kernel nor what is checked of it.
                with Pto.Worker() as other:
                    other.run(graphs[0], self.x, self.y) if kernel is self.add else self.finds(
                        WROTE, other.run, graphs[0], self.x, self.y, config=CHECKED)

        self.everywhere(test)

    def test_tags_by_hand(self):
        def test(worker):
            for lie, words in (
                    (self.graph(self.fold), r"task 0 of ring 0 \(fold\).* read bytes 0 to 31 of its argument 1 \(OUTPUT, float32, from element "
                     r"0\) before it had written there: give it as INOUT"),
                    (self.graph(self.add, write="read"), r"wrote to bytes 0 to 31 of its argument 1 \(INPUT")):
                self.finds(words, worker.run, lie, self.x, self.y, config=CHECKED)
            worker.run(self.graph(self.fold, write="update"), self.x, self.y, config=CHECKED)
            # One tensor, described once for both, is not two of the first one's tag.
            graph = Pto.Graph()
            x, y = graph.add_argument(8), graph.add_argument(8)
            graph.add_successor(graph.add_task(self.add, y.read(), y.update(), 1), graph.add_task(self.add, y.read(), x.write(), 1))
            worker.run(graph, self.x.copy(), self.y, config=CHECKED)
            # In no order; as what takes turns, or has copies, they are.
            for how, words in (("update", "task 0 of ring 0 .* and task 1 of ring 0 .* are in no order .*: add task 1 of ring 0 as a successor of task 0 of ring 0 to the graph"),
                               ("commute", None), ("reduce", None)):
                graph = Pto.Graph()
                x, y = graph.add_argument(8), graph.add_argument(8)
                for _ in range(2):
                    graph.add_task(self.fold, x.read(), y.reduce("sum") if how == "reduce" else getattr(y, how)(), 1)
                if words is None:
                    before = self.y.copy()
                    worker.run(graph, self.x, self.y, config=CHECKED)
                    self.assertEqual(self.y.tolist(), (before + 2 * self.x + 2).tolist())
                else:
                    self.finds(words, worker.run, graph, self.x, self.y, config=CHECKED)

        self.everywhere(test)

    def test_recorded(self):
        """What is recorded of a launch has the tags that the tasks were given."""
        def test(worker):
            for graph in self.graph(self.add), worker.capture(self.one(self.add), self.x, self.y):
                prefix = os.path.join(tempfile.mkdtemp(dir=self.directory), "")
                worker.run(graph, self.x, self.y, config=Pto.CallConfig(enable_dump_tensor=1, output_prefix=prefix))
                with open(prefix + "dump.json", encoding="utf-8") as file:
                    tensors = json.load(file)["tensors"]
                self.assertEqual([(tensor["tag"], tensor["when"]) for tensor in tensors], [("INPUT", "before"), ("OUTPUT", "after")])

        self.everywhere(test)

    def copies(self, name, text, suffix=".c"):
        path = os.path.join(self.directory, name + suffix)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return Pto.Callable.kernel(path)

    def test_copies(self):
        """What the compiler makes of copies of constant sizes, also where it makes instructions of them."""
        entry = 'extern "C" void kernel_entry (int64_t *args)\n{\n  float b[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };\n  float *x = &AT (0, 0), *y = &AT (1, 0);\n  %s;\n}\n'
        plain = HEAD + entry.replace('extern "C" ', "")
        cxx = "#include <algorithm>\n#include <cstring>\n" + HEAD + entry
        wrote = r"wrote to bytes 0 to %d of its argument 0 \(INPUT"
        for number, (text, lie, twin, suffix, words) in enumerate((
                (cxx, "std::copy (b, b + 8, x)", "std::copy (b, b + 8, y)", ".cc", wrote % 31),
                (cxx, "std::copy (b, b + 4, x)", "std::copy (b, b + 4, y)", ".cc", wrote % 15),
                (cxx, "std::copy_n (x + 8, 8, y)", "std::copy_n (x, 8, y)", ".cc", r"read bytes 32 to 63 of the memory of its argument 0"),
                (cxx, "std::fill_n (x, 8, 0.0f)", "std::fill_n (y, 8, 0.0f)", ".cc", wrote % 31),
                (cxx, "std::memcpy (x, b, 24)", "std::memcpy (y, x, 24)", ".cc", wrote % 23),
                (plain, "__builtin_memset (x, 0, 32)", "__builtin_memset (y, 0, 32)", ".c", wrote % 31),
                (plain, "__builtin_memcpy (x, b, 8)", "__builtin_memcpy (y, x, 8)", ".c", wrote % 7),
                (plain, "__builtin_memmove (x, b, 20)", "__builtin_memmove (y, x, 20)", ".c", wrote % 19),
                (plain, "struct s { float a[8]; }; *(struct s *) x = *(struct s *) b", "struct s { float a[8]; }; *(struct s *) y = *(struct s *) x", ".c",
                 wrote % 31))):
            with self.subTest(lie=lie), Pto.Worker() as worker:
                worker.set_parameter("backend", "det")
                right, wrong = (self.copies(f"{kind}{number}", text % (code + "; (void) b; (void) x; (void) y"), suffix) for kind, code in (("right", twin), ("wrong", lie)))
                worker.run(lambda orch, x, y, k=right: orch.submit(k, x.read(), y.write_existing()), self.x, self.y, config=CHECKED)
                self.finds(words, worker.run, lambda orch, x, y, k=wrong: orch.submit(k, x.read(), y.write_existing()), self.x, self.y, config=CHECKED)

    def test_machine(self):
        """The checked form is compiled for the same machine: what the kernel's source asks is answered alike."""
        text = HEAD + "void kernel_entry (int64_t *args)\n{\n  AT (1, 0) = VALUE;\n}\n"
        asked = "".join(f"#ifdef {macro}\n#define V{i} {1 << i}\n#else\n#define V{i} 0\n#endif\n" for i, macro in enumerate(
            ("__SSE4_2__", "__AVX__", "__AVX2__", "__AVX512F__", "__FMA__", "__ARM_FEATURE_SVE", "__ARM_FEATURE_DOTPROD")))
        kernel = self.copies("machine", asked + text.replace("VALUE", "(float) (1000 + V0 + V1 + V2 + V3 + V4 + V5 + V6)"))
        with Pto.Worker() as worker:
            worker.run(self.one(kernel), self.x, self.y)
            plain = self.y[0]
            self.y[0] = 0
            worker.run(self.one(kernel), self.x, self.y, config=CHECKED)
            self.assertGreaterEqual(plain, 1000)
            self.assertEqual(self.y[0], plain)

    def test_built_before(self):
        """A kernel without a source is taken at its word: that is said once, and the run goes well."""
        path = os.path.join(self.directory, "spoil.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-I", os.environ["PTO_API_DIR"], "-o", path, self.path("spoil")], check=True)
        result = self.program(PROGRAM.replace("TURN", ""), path)
        self.assertEqual((result.returncode, result.stdout.count("well")), (0, 3), result.stderr)
        said = (result.stdout + result.stderr).count("spoil.so: it was not compiled to be checked: it is taken to touch what its arguments say")
        self.assertEqual(said, 1, result.stderr)

    def test_unwritten(self):
        """What a task leaves out of memory that the runtime made reads NaN, or 0xa5 in each byte, in checked runs, also between tasks of level 3."""
        code = HEAD + "void kernel_entry (int64_t *args)\n{\n  %s\n}\n"
        part = self.copies("part", code % "for (int i = 0; i < 3; i++) ((int *) &AT (0, 0))[i] = i;")
        show = self.copies("show", code % "for (int i = 0; i < 8; i++) ((int *) &AT (1, 0))[i] = ((int *) &AT (0, 0))[i];")
        integers = [0, 1, 2] + [-0x5a5a5a5b] * 5

        def graph(orch, y, z):
            for out, dtype in (y, "f4"), (z, "i4"):
                made = orch.tensor(8, dtype=dtype)
                orch.submit(part, made.write())
                orch.submit(show, made.read(), out.write_existing())

        def test(worker):
            y, z = np.zeros(8, "f4"), np.zeros(8, "i4")
            self.finds("which no task has written", worker.run, graph, y, z, config=CHECKED)
            self.assertEqual((np.isnan(y).tolist(), z.tolist()), ([False] * 3 + [True] * 5, integers))

        self.everywhere(test)
        half = self.copies("half", code % "for (int i = 0; i < 3; i++) AT (1, i) = AT (0, i);")
        for mode in Pto.ChildMode.PROCESS, Pto.ChildMode.THREAD:
            with self.subTest(mode=mode), self.levels(3, child_mode=mode, num_sub_workers=1) as worker:
                def above(orch, x, y):
                    made = orch.tensor(8)
                    orch.submit_next_level(chip, Pto.TaskArgs(x.read(), made.write()))
                    orch.submit_sub(look, [made.read(), y.write_existing()])

                chip = worker.register(self.chip(half))
                look = worker.register(lambda args: np.copyto(np.asarray(args[1]), np.asarray(args[0])))
                x, y = Pto.Buffer.array(8, "f4"), Pto.Buffer.array(8, "f4")
                worker.run(above, x, y, config=CHECKED)
                self.assertEqual(np.isnan(np.asarray(y)).tolist(), [False] * 3 + [True] * 5)

    def test_past_a_buffer(self):
        """A task that writes past a buffer, or before it, is named, whatever it says of it, and no later one; with and without a check."""
        over = self.copies("over", HEAD + "void kernel_entry (int64_t *args)\n{\n  AT (0, args[1]) = 1;\n}\n")

        def test(worker):
            # Arrays of the library, which are shared with a process of the chip's own, and have guards.
            x, y = Pto.Buffer.array(8, "f4"), Pto.Buffer.array(8, "f4")
            for tag, at in [(tag, at) for tag in ("read", "no_dep", "update") for at in (8, -1)]:
                def graph(orch, x, y):
                    orch.submit(over, getattr(x, tag)(), at)
                    orch.submit(self.add, y.read(), x.update(), 1)

                where = "past" if at > 0 else "before"
                with self.assertRaisesRegex(GLib.Error, rf"^task 0 of ring 0 \(over\).* wrote at least 4 bytes {where} the buffer of 32 bytes of argument 0") as caught:
                    worker.run(graph, x, y)
                self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.OUT_OF_BOUNDS))
                # The check tells all that it has found, and what the guards have found.
                with self.assertRaisesRegex(GLib.Error, rf"^task 0 of ring 0 \(over\).*\n(.*\n)*task 0 of ring 0 \(over\).* wrote at least 4 bytes {where}") as caught:
                    worker.run(graph, x, y, config=CHECKED)
                self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.ACCESS))
                self.assertNotIn("(add)", caught.exception.message)
                worker.run(lambda orch, x, y: orch.submit(self.add, y.read(), x.update(), 1), x, y)

        self.everywhere(test)
        # Chips below level 3 find it as well.
        x, y = Pto.Buffer.array(8, "f4"), Pto.Buffer.array(8, "f4")
        for mode in Pto.ChildMode.PROCESS, Pto.ChildMode.THREAD:
            for where, at in ("past", 8), ("before", -1):
                with self.subTest(mode=mode, where=where), self.levels(3, child_mode=mode) as worker:
                    stray = self.copies(where, HEAD + f"void kernel_entry (int64_t *args)\n{{\n  AT (0, {at}) = 1;\n}}\n")
                    chip = worker.register(self.chip(stray))
                    with self.assertRaisesRegex(GLib.Error, rf"on L3/0/L2/0 failed: task 0 of ring 0 \({where}\).* wrote at least 4 bytes {where} the buffer of 32 bytes of argument 0") as caught:
                        worker.run(lambda orch, x, y: orch.submit_next_level(chip, Pto.TaskArgs(x.read(), y.write_existing())), x, y)
                    self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.OUT_OF_BOUNDS))

    def test_before_new_memory(self):
        """What lies before the first memory of a ring, whatever that is: mostly the runtime's own."""
        before = self.copies("before", HEAD + "volatile float seen;\nvoid kernel_entry (int64_t *args)\n{\n  for (int i = 0; i < 8; i++) AT (0, i) = 1;\n"
                             "  seen = AT (0, -args[1]);\n}\n")

        def graph(orch, ring, at):
            with contextlib.ExitStack() as scopes:
                for _ in range(ring):
                    scopes.enter_context(orch.scope())
                orch.submit(before, orch.tensor(8).write(), at)

        for isolate in False, True:
            for window in 4, 1024, 16384, 65536:
                with self.subTest(isolate=isolate, window=window), Pto.Worker(isolate=isolate) as worker:
                    worker.set_parameter("backend", "det")
                    worker.set_parameter("task-window", window)
                    for ring in range(4):
                        worker.run(graph, ring, 0, config=CHECKED)
                        for at in 1, 10, 900:
                            # Where nothing is mapped, the kernel crashes as well.
                            with self.assertRaisesRegex(GLib.Error, rf"task 0 of ring {ring} \(before\), .*, read {4 * at} bytes before the memory of its argument 0 \(OUTPUT\)"):
                                worker.run(graph, ring, at, config=CHECKED)

    def test_cache(self):
        """It is compiled when a run first needs it, once, and kept beside the other."""
        program = PROGRAM.replace("TURN", "print(sum(name.endswith(\".so\") for _, _, files in os.walk(sys.argv[2]) for name in files))").replace("import sys", "import os, sys")
        cache = os.path.join(self.directory, "cache")
        os.mkdir(cache)
        for isolate, expected in ("0", [1, 2, 2]), ("1", [2, 2, 2]):
            result = self.program(program, self.path("add"), cache, PTO_ISOLATE=isolate, XDG_CACHE_HOME=cache)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual([int(line) for line in result.stdout.split() if line.isdigit()], expected)

    def test_source(self):
        """It is compiled as it was registered, from what it is by then."""
        self.write("flags", ADD.replace("+ (float) args[2]", "+ PLUS"))
        kernel = Pto.Callable.kernel(self.path("flags"), flags=["-DPLUS=4"])
        def test(worker):
            kernel.set_compiler_flags(["-DPLUS=4"])
            worker.register(kernel)
            kernel.set_compiler_flags(["-DPLUS=5"])
            worker.run(self.one(kernel), self.x, self.y, config=CHECKED)
            self.assertEqual(self.y.tolist(), (self.x + 4).tolist())

        self.everywhere(test)
        # In a process of its own the same is said there.
        for isolate in "01":
            program = PROGRAM.replace("TURN", f"open(sys.argv[1], 'a').write('int more{isolate};')")
            result = self.program(program, self.path("spoil"), PTO_ISOLATE=isolate)
            self.assertEqual((result.returncode, result.stdout.count("well")), (0, 1), result.stderr)
            self.assertRegex(result.stderr, 'kernel "spoil": .*/spoil.c has changed since it was registered: what is checked is what it is now')
            self.assertIn("wrote to bytes 4 to 7", result.stdout)
        gone = Pto.Callable.kernel(self.path("add"))
        with Pto.Worker() as worker:
            worker.run(self.one(gone), self.x, self.y)
            os.remove(self.path("add"))
            with self.assertRaisesRegex(GLib.Error, 'kernel "add": .*add.c is gone, and has to be compiled once more') as caught:
                worker.run(self.one(gone), self.x, self.y, config=CHECKED)
            self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.NOT_FOUND))
            worker.run(self.one(gone), self.x, self.y)

    def levels(self, level, **more):
        """A worker of that level, with one worker of each below it."""
        worker = Pto.Worker(level=level, **more)
        if level == 3:
            worker.add_worker(Pto.Worker(level=2))
        else:
            worker.add_worker(self.levels(level - 1, **more))
        return worker

    def test_level_3(self):
        """A task's own configuration, the run's, and the parameter; the error names the worker below."""
        for mode in Pto.ChildMode.PROCESS, Pto.ChildMode.THREAD:
            for backend in "par", "det", "threads":
                with self.subTest(mode=mode, backend=backend), self.levels(3, child_mode=mode) as worker:
                    worker.get_child(0).set_parameter("backend", backend)
                    spoil, add = worker.register(self.chip(self.spoil)), worker.register(self.chip(self.add))
                    x, y = Pto.Buffer.array(8, "f4"), Pto.Buffer.array(8, "f4")

                    def graph(handle, config=None):
                        return lambda orch, x, y: orch.submit_next_level(handle, Pto.TaskArgs(x.read(), y.write()), config)

                    worker.run(graph(spoil), x, y)
                    named = r"on L3/0/L2/0 failed: task 0 of ring 0 \(spoil\), submitted at .*chip.c:11, " + WROTE
                    self.finds(named, worker.run, graph(spoil, CHECKED), x, y)
                    worker.run(graph(spoil), x, y)
                    self.finds(named, worker.run, graph(spoil), x, y, config=CHECKED)
                    worker.run(graph(spoil), x, y)
                    worker.run(graph(add), x, y, config=CHECKED)
                    self.assertEqual(np.asarray(y).tolist(), (np.asarray(x) + 1).tolist())
                    launched = worker.capture(graph(spoil), x, y)
                    worker.run(launched, x, y)
                    self.finds(named, worker.run, launched, x, y, config=CHECKED)
                    self.finds(named, worker.run, worker.capture(graph(spoil, CHECKED), x, y), x, y)

    def test_parameter(self):
        """Of the worker that is run, for all below it, or of the chip alone; callables were registered without."""
        for above in True, False:
            with self.subTest(above=above), self.levels(3) as worker:
                (worker if above else worker.get_child(0)).set_parameter("check", "access")
                spoil, add = worker.register(self.chip(self.spoil)), worker.register(self.chip(self.add))
                x, y = Pto.Buffer.array(8, "f4"), Pto.Buffer.array(8, "f4")

                def graph(handle):
                    return lambda orch, x, y: orch.submit_next_level(handle, Pto.TaskArgs(x.read(), y.write()))

                self.finds(r"on L3/0/L2/0 failed: task 0 of ring 0 \(spoil\), submitted at .*chip.c:11, " + WROTE, worker.run, graph(spoil), x, y)
                worker.run(graph(add), x, y)

    def test_level_4(self):
        with self.levels(4) as worker:
            spoil = worker.get_child(0).register(self.chip(self.spoil))

            def below(orch, args, config):
                orch.submit_next_level(spoil, Pto.TaskArgs(args.get_tensor(0).read(), args.get_tensor(1).write()))

            middle = worker.register(below)
            x, y = Pto.Buffer.array(8, "f4"), Pto.Buffer.array(8, "f4")

            def graph(config=None):
                return lambda orch, x, y: orch.submit_next_level(middle, Pto.TaskArgs(x.read(), y.write()), config)

            worker.run(graph(), x, y)
            named = r"on L4/0/L3/0/L2/0 failed: task 0 of ring 0 \(spoil\), submitted at .*chip.c:11, " + WROTE
            self.finds(named, worker.run, graph(), x, y, config=CHECKED)
            worker.run(graph(), x, y)
            self.finds(named, worker.run, graph(CHECKED), x, y)


tap.main()
