# test_errors.py: is what a call raises of the class of its code, and does all that was written before still catch it?
# SPDX-License-Identifier: LGPL-2.1-or-later
import asyncio
import copy
import os
import pickle
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock as mock
import xml.etree.ElementTree as ElementTree

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

CORE = "{http://www.gtk.org/introspection/core/1.0}"
C = "{http://www.gtk.org/introspection/c/1.0}"
HERE = os.path.dirname(os.path.abspath(__file__))
FILL = os.path.join(HERE, "fill.c")


def fail(args):
    raise Pto.TamperedError("first line\nsecond line: \u00e9")


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.namespace = ElementTree.parse(os.environ["PTO_TEST_GIR"]).getroot().find(CORE + "namespace")

    def test_a_class_for_each_code(self):
        enumeration = self.namespace.find(f"{CORE}enumeration[@name='Error']")
        members = {member.get("name").upper(): member for member in enumeration.findall(CORE + "member")}
        self.assertGreater(len(members), 30)
        classes = {type_.CODE: type_ for type_ in (*Pto.Error.__subclasses__(), *Pto.Deadlock.__subclasses__())}
        self.assertEqual(len(classes), len(members))
        for name, member in members.items():
            code = getattr(Pto.Error, name)
            self.assertEqual(int(code), int(member.get("value")))
            type_ = classes[code]
            self.assertIs(getattr(Pto, type_.__name__), type_)
            said = " ".join(member.find(CORE + "doc").text.split())
            self.assertEqual(type_.__doc__.lower(), said.lower() + ".")
        self.assertIs(classes[Pto.Error.SCOPE_DEADLOCK], Pto.Deadlock)
        self.assertEqual({type_.__name__ for type_ in Pto.Deadlock.__subclasses__()},
                         {"DepPoolError", "HeapRingError", "TaskRingError"})
        self.assertIs(classes[Pto.Error.COMPILE], Pto.CompileError)
        self.assertIs(classes[Pto.Error.KERNEL_FAULT], Pto.KernelFaultError)

    def test_what_is_raised(self):
        with self.assertRaises(Pto.NotFoundError) as caught:
            Pto.Callable.kernel("/nonexistent/nowhere/x.c").build()
        error = caught.exception
        self.assertIsInstance(error, Pto.Error)
        self.assertIsInstance(error, GLib.Error)
        self.assertEqual((error.domain, error.code, error.message),
                         ("pto-error-quark", 204, "/nonexistent/nowhere/x.c: there is no such file"))
        self.assertTrue(error.matches(Pto.error_quark(), Pto.Error.NOT_FOUND))
        self.assertFalse(error.matches(Pto.error_quark(), Pto.Error.BUSY))
        self.assertEqual(str(error), "/nonexistent/nowhere/x.c: there is no such file")
        self.assertEqual(repr(error), "Pto.NotFoundError('/nonexistent/nowhere/x.c: there is no such file')")
        try:
            Pto.Platform.lookup("nope")
        except GLib.Error as old:
            self.assertIs(type(old), Pto.NotFoundError)
        with self.assertRaises(Pto.NotFoundError):
            Pto.platform_lookup("nope")  # of no type
        with self.assertRaises(Pto.NotFoundError):
            Pto.Worker.new_chip("nope")  # a constructor

    @unittest.skipUnless(np, "no NumPy")
    def test_line_of_the_submit(self):
        """What a kernel does wrong is told with it, in this process, in a child and in a graph; and the source of an object."""
        kernels = {"crash": (Pto.KernelFaultError, "volatile int *p = (int *) args[1]; *p = 1;"),
                   "hang": (Pto.KernelHangError, "for (volatile int i = 1; i;);"),
                   "past": (Pto.OutOfBoundsError, "const TensorData *t = (const TensorData *) args[0];"
                                                  "((volatile char *) t->buffer.addr)[t->buffer.size] = 1;")}
        with tempfile.TemporaryDirectory() as directory:
            for name, (error, body) in kernels.items():
                path = os.path.join(directory, name + ".c")
                with open(path, "w") as file:
                    file.write(f'#include "tensor.h"\nvoid kernel_entry (int64_t *args) {{ {body} }}\n')
                kernel = Pto.Callable.kernel(path)

                def graph(orch, x):
                    orch.submit(kernel, orch.tensor(4).write(), 8)
                line = graph.__code__.co_firstlineno + 1
                for isolate in False, True:
                    with self.subTest(name=name, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                        worker.set_parameter("timeout", 300)
                        x = np.ones(4, np.float32)
                        captured = worker.capture(graph, x)
                        for program in graph, captured:
                            with self.assertRaisesRegex(error, rf"\({name}\) on core AIV\d+, submitted at test_errors\.py:{line}: the kernel"):
                                worker.run(program, x)
            source, built, nothing = (os.path.join(directory, name) for name in ("source.c", "built.so", "nothing.c"))
            with open(nothing, "w") as file:
                file.write('#include "tensor.h"\nvoid kernel_entry (int64_t *args) { (void) args; }\n')
            with open(source, "w") as file:
                file.write('#include "pto_orchestration_api.h"\nPTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *a, int n)\n'
                           '{ return (PTO2OrchestrationConfig){ 0 }; }\nint aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *a, int n)\n{\n'
                           '  PTO2_SCOPE (rt)\n    pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, NULL, 0);\n  *(volatile int *) 0 = 0;\n  return 0;\n}\n')
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-I" + os.environ["PTO_API_DIR"], "source.c", "-o", built],
                           cwd=directory, check=True)
            for path, named in (source, source), (built, "source.c"):
                chip = Pto.ChipOrchestration.new(path, None)
                chip.add_kernel(0, "nothing", Pto.Kernel.new(Pto.CoreType.AIV, nothing, None))
                with Pto.Worker() as worker, self.assertRaises(Pto.KernelFaultError) as caught:
                    worker.run(worker.register(chip))
                self.assertIn(f": after the submit at {named}:7 it crashed", caught.exception.message)

    # What a kernel does wrong, and its class. Its stack is used up where it is alone to be found.
    FAULTS = {"crash": (Pto.KernelFaultError, "*(volatile int *) 8 = 1;"),
              "hang": (Pto.KernelHangError, "for (volatile int i = 1; i;);"),
              "past": (Pto.OutOfBoundsError, "const TensorData *t = (const TensorData *) (uintptr_t) args[0];"
                                             "((volatile char *) (uintptr_t) t->buffer.addr)[t->buffer.size] = 1;"),
              "stack": (Pto.KernelFaultError, "use (1 << 30);")}
    DEATH_HEAD, DEATH = "#include <signal.h>\n#include <unistd.h>\n", "kill (getpid (), SIGKILL); pause ();"

    def test_line_of_the_submit_below(self):
        """A fault of a chip below levels 3 and 4 names the line of the submit at each level; in C and in C++."""
        with tempfile.TemporaryDirectory() as directory, mock.patch.dict(os.environ, PTO_TIMEOUT="500"):
            for suffix, name, at_top in (("c", "crash", 4), ("cc", "hang", 3), ("cc", "past", 4), ("c", "stack", 3)):
                with self.subTest(suffix=suffix, name=name, level=at_top):
                    error, body = self.FAULTS[name]
                    self.chip_below(at_top, self.faulty_chip(directory, suffix, name, body), error, f"{name}_{suffix}.{suffix}:10")

    def faulty_chip(self, directory, suffix, name, body):
        begin = 'extern "C" ' if suffix == "cc" else ""
        kernel, source = (os.path.join(directory, f"{part}{name}_{suffix}.{suffix}") for part in ("kernel_", ""))
        with open(kernel, "w") as file:
            file.write(f'#include "tensor.h"\n{self.DEATH_HEAD}int use (int n) {{ volatile char x[256]; x[0] = (char) n; return n == 0 ? 0 : use (n - 1) + x[0]; }}\n'
                       f'{begin}void kernel_entry (int64_t *args) {{ (void) args; {body} }}\n')
        with open(source, "w") as file:
            file.write(f"""#include "pto_orchestration_api.h"
{begin}PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *, int) {{ return (PTO2OrchestrationConfig){{ 0 }}; }}
{begin}int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *, int)
{{
  uint64_t shape[1] = {{ 16 }};
  pto2_rt_init_tensor_pool (rt);
  PTO2_SCOPE (rt)
  {{
    PTOParam params[] = {{ make_output_param (make_tensor (shape, 1, (DataType) PTO_DTYPE_FLOAT32)) }};
    pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 1);
  }}
  return 0;
}}
""".replace("uint64_t *,", "uint64_t *args,").replace("int)", "int n)"))
        chip = Pto.ChipOrchestration.new(source, None)
        chip.add_kernel(0, "bad", Pto.Kernel.new(Pto.CoreType.AIV, kernel, None))
        return chip

    @unittest.skipUnless(np, "no NumPy")
    def test_line_in_its_own_process(self):
        """The line is also told of faults that are found when the chip's process is dead, or its run over."""
        with tempfile.TemporaryDirectory() as directory:
            def kernel(name, body):
                path = os.path.join(directory, name + ".c")
                with open(path, "w") as file:
                    file.write(f'#include "tensor.h"\n{self.DEATH_HEAD}void kernel_entry (int64_t *args) {{ {body} }}\n')
                return Pto.Callable.kernel(path)

            nothing, death, past, number = (kernel(name, body) for name, body in (
                ("nothing", ""), ("death", self.DEATH), ("past", self.FAULTS["past"][1]), ("number", "*(volatile int *) args[1] = 1;")))
            other = np.zeros(4, np.int32)  # the chip's process has a copy of it

            def dies(orch, x):
                orch.submit(death, x.update())

            def writes_past(orch, x):
                orch.submit(past, x.update())

            def one_writes_past(orch, x):
                orch.submit(nothing, x.update())
                orch.submit(past, x.update())

            def writes_to_number(orch, x):
                orch.submit(number, x.update(), other.ctypes.data)

            for graph, error, said in (
                    (dies, Pto.KernelFaultError, r"^task 0 of ring 0 \(death\) on core AIV\d+, submitted at test_errors\.py:{0}: the kernel's process died"),
                    (writes_past, Pto.OutOfBoundsError, r"^task 0 of ring 0 \(past\), submitted at test_errors\.py:{0}: the kernel wrote at least 1 byte past"),
                    (one_writes_past, Pto.OutOfBoundsError, r"^one of 2 tasks that have it, from task 0 of ring 0, submitted at test_errors\.py:{0}, "
                                                            r"to task 1 of ring 0 \(past\), submitted at test_errors\.py:{1}: the kernel wrote at least 1 byte past"),
                    (writes_to_number, Pto.OutOfBoundsError, r"^task 0 of ring 0 \(number\), submitted at test_errors\.py:{0}: a kernel wrote to the address")):
                line = graph.__code__.co_firstlineno + 1
                with self.subTest(said=said), Pto.Worker(isolate=True) as worker:
                    x = np.ones(4, np.float32)
                    with self.assertRaisesRegex(error, said.format(line, line + 1)):
                        worker.run(graph, x)
                    if graph in (dies, writes_to_number):  # of a captured graph the core tells the others
                        with self.assertRaisesRegex(error, said.format(line)):
                            worker.run(worker.capture(graph, x), x)
            for suffix in "c", "cc":
                chip = self.faulty_chip(directory, suffix, "death", self.DEATH)
                with self.subTest(suffix=suffix), Pto.Worker(isolate=True) as worker:
                    with self.assertRaisesRegex(Pto.KernelFaultError, rf"\(bad\) on core AIV\d+, submitted at death_{suffix}\.{suffix}:10: the kernel's process died"):
                        worker.run(worker.register(chip))
                for level in 3, 4:
                    with self.subTest(suffix=suffix, level=level):
                        self.chip_below(level, chip, Pto.WorkerLostError, None)

    def chip_below(self, top, chip, error, place):
        host = Pto.Worker(level=3, devices=1)
        part = host.register(chip)

        def on_host(orch):
            orch.submit_next_level(part, [])
        lines = [on_host.__code__.co_firstlineno + 1]
        worker, graph = host, on_host
        if top == 4:
            worker = Pto.Worker(level=4)
            below = worker.register(lambda orch, args, config: on_host(orch))
            worker.add_worker(host)

            def graph(orch):
                orch.submit_next_level(below)
            lines.insert(0, graph.__code__.co_firstlineno + 1)
        for each in {worker, host}:
            each.set_parameter("timeout", 60000)  # that of the chip is over first
        with worker, self.assertRaises(error) as caught:
            worker.run(graph)
        told = [rf"submitted at test_errors\.py:{line}, on L[34]/0[L/0-9]* failed: .*" for line in lines]
        if place is None:  # the chip's process is gone
            told[-1] = rf'L2/0 died \(signal 9, Killed\) while running ".*", submitted at test_errors\.py:{lines[-1]}; '
        else:
            told.append(rf"\(bad\) on core AIV\d+, submitted at {re.escape(place)}: the kernel ")
        self.assertRegex(str(caught.exception), "".join(told))

    def test_did_you_mean(self):
        """The name that is near to what was written, if one is."""
        worker, config = Pto.Worker(), Pto.CallConfig()
        for make, error, said in (
                (lambda: Pto.Worker(platfrom="a2a3sim"), TypeError, 'Pto.Worker has no property platfrom; did you mean "platform"?'),
                (lambda: Pto.Worker(level=3, sub_worker=1), TypeError, 'Pto.Worker has no property sub_worker; did you mean "sub_workers"?'),
                (lambda: Pto.Worker(colour=1), TypeError, "Pto.Worker has no property colour"),
                (lambda: Pto.CallConfig(block_dmi=2), AttributeError, 'CallConfig.block_dmi does not exist; did you mean "block_dim"?'),
                (lambda: setattr(config, "enable_pmuu", 1), AttributeError, 'CallConfig.enable_pmuu does not exist; did you mean "enable_pmu"?'),
                (lambda: worker.set_parameter("task-windw", 4), Pto.InvalidArgsError,
                 'there is no parameter "task-windw" (pto info lists them); did you mean "task-window"?'),
                (lambda: worker.set_parameter("speed-of-light", 4), Pto.InvalidArgsError,
                 'there is no parameter "speed-of-light" (pto info lists them)')):
            with self.assertRaises(error) as caught:
                make()
            self.assertEqual(str(caught.exception), said)
        with self.assertRaises(Pto.NotFoundError) as caught:
            worker.dup_parameter("dep_pool")
        self.assertTrue(str(caught.exception).endswith('; did you mean "dep-pool"?'), caught.exception)

    def test_what_is_suggested_is_taken(self):
        """Each suggestion of another word for an argument of a Worker, at levels that have different parameters."""
        parameters = Pto.Worker.list_parameters()
        names = [*parameters, *(each.name for each in Pto.Worker.list_properties())]
        n = 0
        for level in 2, 3:
            for name in names:
                value = Pto.Worker(level=level).dup_parameter(name) if name in parameters else 1
                for wrong in name[:3] + name[4:], name.replace("-", ""), name + "x":
                    if wrong in names:
                        continue
                    with self.assertRaises(TypeError) as caught:
                        Pto.Worker(level=level, **{wrong: value})
                    said = str(caught.exception)
                    if found := re.search(r'; did you mean "(\w+)"\?$', said):
                        try:
                            Pto.Worker(level=level, **{found[1]: value})
                        except (TypeError, ValueError) as error:  # a value of the wrong type is one
                            self.assertNotRegex(str(error), "no property|is a parameter|not writable")
                    elif found := re.search(r"worker\.set_parameter\(\"([\w-]+)\", \"(.*)\"\)\?$", said):
                        Pto.Worker(level=level).set_parameter(found[1], found[2])
                    n += found is not None
        self.assertGreater(n, 100)
        for make, said in (
                (lambda: Pto.Worker(back_end="det"),
                 'Pto.Worker has no property back_end; did you mean the parameter: after this, worker.set_parameter("backend", "det")?'),
                (lambda: Pto.Worker(level=3, back_end="det"), "Pto.Worker has no property back_end"),
                (lambda: Pto.Worker(level=3, backend="det"), "backend is a parameter: parameter backend has no effect on a worker of level 3: "),
                (lambda: Pto.Worker(backend="fast"), 'backend is a parameter: backend: "fast" is not '),
                (lambda: Pto.Worker(task_window=[16]), "task_window is a parameter: the parameter task-window: [16]: one value is wanted"),
                (lambda: Pto.Worker(stat=1), "Pto.Worker has no property stat")):
            with self.assertRaises(TypeError) as caught:
                make()
            self.assertTrue(str(caught.exception).startswith(said), caught.exception)
        for level, name, meant in (3, "back-end", False), (2, "back-end", True), (2, "task-timeot", False), (3, "task-timeot", True):
            with self.assertRaises(Pto.InvalidArgsError) as caught:
                Pto.Worker(level=level).set_parameter(name, "1")
            self.assertEqual("; did you mean" in str(caught.exception), meant, caught.exception)
        with self.assertRaises(AttributeError) as caught:  # it can only be read
            Pto.Trace().task_s = 1
        self.assertNotIn("did you mean", str(caught.exception))

    def test_did_you_mean_an_argument(self):
        """Functions in Python and those of the library; in Python from 3.13 on the former are Python's own words."""
        seen = []

        def graph(orch):
            for call, name, meant in ((lambda: orch.submit_sub(None, [], workr=1), "workr", "worker"),
                                      (lambda: orch.submit_next_level(None, [], confg=1), "confg", "config"),
                                      (lambda: orch.alloc(1, dtyp="float32"), "dtyp", "dtype"),
                                      (lambda: orch.alloc(1, colour="red"), "colour", None)):
                self.suggests(call, name, meant)
                seen.append(name)

        with Pto.Worker(level=3, sub_workers=1) as worker:
            self.suggests(lambda: worker.run(graph, confg=1), "confg", "config")
            worker.run(graph)
            self.suggests(lambda: worker.show_progress(intervall=1), "intervall", "interval")
        self.assertEqual(len(seen), 4)
        self.suggests(lambda: Pto.Buffer.array(4, dtyp="float32"), "dtyp", "dtype")  # a static function
        self.suggests(lambda: Pto.kernel(arg=3), "arg", "args")  # a function of no class
        self.suggests(lambda: Pto.Platform.lookup(nam="a2a3sim"), "nam", "name")  # one of the library
        self.suggests(lambda: Pto.Platform.lookup("a2a3sim", nam="a5sim"), "nam", None)  # it is given already
        if sys.version_info < (3, 13):  # Python itself suggests what is given already, too
            self.suggests(lambda: Pto.Buffer.array(4, "float32", dtyp="int8"), "dtyp", None)
            self.suggests(lambda: Pto.Buffer.array(4, sel=1), "sel", None)
        self.suggests(lambda: Pto.Tensor.new_external(4096, Pto.Dtype.FLOAT32, [4], n_dim=1), "n_dim", None)  # no length has a name
        # An error of what a function calls is its own.
        with self.assertRaises(TypeError) as caught, Pto.Worker(level=3, sub_workers=1) as worker:
            worker.run(lambda orch: (lambda worker: None)(workr=1))
        self.assertIn("got an unexpected keyword argument 'workr'", str(caught.exception))
        self.assertNotIn("; did you mean", str(caught.exception))

    def suggests(self, call, name, meant):
        with self.assertRaises(TypeError) as caught:
            call()
        end = f"got an unexpected keyword argument '{name}'" + (f"(; did you mean \"{meant}\"\\?|. Did you mean '{meant}'\\?)" if meant else "")
        self.assertRegex(str(caught.exception), end + "$")

    def test_several_lines(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "bad.c")
            with open(path, "w") as file:
                file.write("void kernel_entry (long *args) { first (); \n second }\n")
            with self.assertRaises(Pto.CompileError) as caught:
                Pto.Callable.kernel(path).build()
        self.assertGreater(caught.exception.message.count("\n"), 1)
        self.assertIn("second", caught.exception.message)

    @unittest.skipUnless(np, "no NumPy")
    def test_runs(self):
        fill = Pto.Callable.kernel(FILL)

        def busy(orch):
            chip.run(busy)

        def stuck(orch, x):
            for _ in range(100):
                orch.submit(fill, x.update(), 1.0)

        def own(orch):
            raise mine

        x = Pto.Buffer.array(16)
        mine = Pto.ExplicitError("mine")
        with Pto.Worker(platform="a2a3sim") as chip:
            chip.set_parameter("task-window", 16)
            with self.assertRaises(Pto.BusyError) as caught:
                chip.run(busy)
            self.assertTrue(caught.exception.matches(Pto.error_quark(), Pto.Error.BUSY))
            with self.assertRaises(Pto.ExplicitError) as caught:
                chip.run(own)
            self.assertIs(caught.exception, mine)
            with self.assertRaises(Pto.Deadlock) as caught:
                chip.run(stuck, x)
            self.assertIs(type(caught.exception), Pto.TaskRingError)
            with self.assertRaises(Pto.Deadlock):
                asyncio.run(chip.run_async(stuck, x))
            loop, raised = GLib.MainLoop(), []

            def done(worker, result):
                try:
                    worker.run_finish(result)
                except GLib.Error as error:
                    raised.append(error)
                loop.quit()

            chip.run_async(stuck, x, callback=done)
            loop.run()
            self.assertEqual([type(error) for error in raised], [Pto.TaskRingError])
        with self.assertRaises(Pto.ClosedError):
            chip.run(own)

    def test_of_children(self):
        with Pto.Worker(level=3, sub_workers=1) as host:
            sub = host.register(fail)
            with self.assertRaises(Pto.TamperedError) as caught:
                host.run(lambda orch: orch.submit_sub(sub))
        self.assertIn("first line\nsecond line: \u00e9", caught.exception.message)

    def test_every_function_that_throws(self):
        """None of them is PyGObject's own, which would raise a plain GLib.Error."""
        seen = 0
        for element in self.namespace.iter():
            if element.get("throws") != "1" or element.get("introspectable") == "0" or element.get("moved-to"):
                continue
            if element.tag in (CORE + "callback", CORE + "virtual-method"):
                continue
            owner = next((kind for kind in self.namespace if element in list(kind)), None)
            of = Pto if owner is None else getattr(Pto, owner.get("name"))
            if element.get("shadowed-by") is None:
                function = getattr(of, element.get("shadows", element.get("name")))
                self.assertFalse(hasattr(function, "can_throw_gerror"), element.get(C + "identifier"))
                seen += 1
        self.assertGreater(seen, 60)

    def test_other_domains(self):
        """GLib.Error is everybody's: it stays as it was."""
        with self.assertRaises(GLib.Error) as caught:
            Gio.File.new_for_path("/nonexistent/nowhere/x").load_contents(None)
        self.assertIs(type(caught.exception), GLib.Error)
        with self.assertRaises(GLib.Error) as caught:
            Pto.Trace.new_from_file("/nonexistent/nowhere/x")
        self.assertIs(type(caught.exception), GLib.Error)
        program = """if True:
            from gi.repository import GLib
            before = dict(vars(GLib.Error)), GLib.Error
            import gi
            gi.require_version("Pto", "1")
            from gi.repository import Pto
            Pto.Worker
            assert (dict(vars(GLib.Error)), GLib.Error) == before"""
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

    def test_codes_as_before(self):
        self.assertEqual(Pto.Error.BUSY, 206)
        self.assertEqual(Pto.Error.BUSY.value_nick, "busy")
        self.assertEqual(Pto.Error.quark(), Pto.error_quark())
        self.assertIs(type(Pto.Error(206)), type(Pto.Error.BUSY))
        self.assertEqual(Pto.Error(206), Pto.Error.BUSY)
        self.assertIn(206, Pto.Error.__enum_values__)

    def test_pickled_and_copied(self):
        with self.assertRaises(Pto.NotFoundError) as caught:
            Pto.Platform.lookup("no\nplatform")
        cases = [caught.exception, Pto.BusyError("two\nlines"), Pto.Error("a number of its own", code=9999)]
        for error in cases:
            for same in copy.copy(error), copy.deepcopy(error), error.copy(), pickle.loads(pickle.dumps(error)):
                self.assertIsNot(same, error)
                self.assertIs(type(same), type(error))
                self.assertEqual((same.message, same.domain, same.code), (error.message, error.domain, error.code))
        self.assertEqual(cases[2].code, 9999)
        program = ("import gi, pickle, sys\ngi.require_version('Pto', '1')\n"
                   "error = pickle.load(sys.stdin.buffer)\nprint(type(error).__name__, error.code, repr(error.message))")
        told = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(cases[1]), check=True, timeout=60,
                              capture_output=True)
        self.assertEqual(told.stdout.decode(), "BusyError 206 'two\\nlines'\n")


tap.main()
