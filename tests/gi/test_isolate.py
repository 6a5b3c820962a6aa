# test_isolate.py: is a chip in a process of its own the same to a Python programmer?
# SPDX-License-Identifier: LGPL-2.1-or-later
import concurrent.futures
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Gio, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

HEAD = """\
#define _GNU_SOURCE
#include "tensor.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
volatile int *volatile bad = (volatile int *) 8;
void kernel_entry (int64_t *args)
{
  const TensorData *x = (const TensorData *) args[0], *y = (const TensorData *) args[1];
  const float *from = (const float *) x->buffer.addr + x->start_offset;
  float *to = (float *) y->buffer.addr + y->start_offset;
  (void) bad;
"""
DOUBLE = "  for (uint64_t i = 0; i < y->shapes[0]; i++)\n    to[i] = 2 * from[i];\n}\n"


@unittest.skipIf(np is None, "no numpy")
class Isolate(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-isolate-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.double = self.kernel("double", DOUBLE)
        self.worker = Pto.Worker(platform="a2a3sim", isolate=True)
        self.addCleanup(self.worker.close)

    def kernel(self, name, body):
        path = os.path.join(self.directory, name + ".c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAD + body)
        return Pto.Callable.kernel(path)

    def graph(self, orch, x, y):
        middle = orch.tensor(x.shape[0])
        orch.submit(self.double, x.read(), middle.write())
        orch.submit(self.double, middle.read(), y.write_existing())

    def test_arrays(self):
        """NumPy arrays, buffers, and both at once; views of one array are one array."""
        whole = np.arange(1000, dtype="f4")
        shared = Pto.Buffer.array(100)
        for _ in range(3):
            x, y = np.full(100, 3, "f4"), np.zeros(100, "f4")
            self.worker.run(self.graph, x, y)
            self.assertTrue((y == 12).all() and (x == 3).all())
            self.worker.run(self.graph, y, shared)
            self.assertTrue((shared == 48).all())
            self.worker.run(self.graph, shared, x)
            self.assertTrue((x == 192).all())
        self.worker.run(self.graph, whole[100:300], whole[300:500])
        self.worker.run(self.graph, whole[200:400], whole[600:800])
        expected = np.arange(1000, dtype="f4")
        expected[300:500] = 4 * expected[100:300]
        expected[600:800] = 4 * expected[200:400]
        self.assertTrue((whole == expected).all())

    def test_no_write_is_dropped(self):
        """What a kernel writes to an INPUT, or through a number, is there as it is without isolate, or an error says what is lost."""
        spoil = self.kernel("spoil", "  to[0] = from[0];\n  ((float *) from)[1] = 7;\n}\n")
        number = self.kernel("number", "  to[0] = from[0];\n  if (args[3]) ((float *) args[2])[args[3] - 1] = 5;\n}\n")
        path = os.path.join(self.directory, "orch.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write("""\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  return (PTO2OrchestrationConfig){ .expected_arg_count = 4 };
}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  PTOParam params[] = { make_input_param (pto2_rt_arg_tensor (rt, 0)), make_output_existing_param (pto2_rt_arg_tensor (rt, 1)),
                        make_scalar_param (args[2]), make_scalar_param (args[3]) };

  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 4);
  return 0;
}
""")
        chip = Pto.ChipOrchestration.new(path, None)
        chip.add_kernel(0, "number", number)
        lost = r"a kernel wrote to the address that argument 2 is as a number\. .*: give the program's as a tensor, or make it with a buffer, or set isolate to 0"

        def graph(value, writes):
            return lambda orch, x, y: orch.submit(number, x.read(), y.write_existing(), value, writes)

        for backend in "par", "det", "threads":
            for isolate in False, True:
                # What another process could have a copy of is there before it.
                x, y, other = np.ones(8, "f4"), np.zeros(8, "f4"), np.zeros(8, "f4")
                large = np.zeros(1 << 20, "f4")
                frozen = np.ones(8, "f4")
                frozen.flags.writeable = False
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                    worker.set_parameter("backend", backend)
                    for given in x, frozen:
                        worker.run(lambda orch, x, y: orch.submit(spoil, x.read(), y.write_existing()), given, y)
                        self.assertEqual(given.tolist(), [1, 7] + [1] * 6)
                    # These addresses lie in memory that is copied anyway, whatever the tasks say of it.
                    for given in x, y:
                        given[0] = 1
                        worker.run(graph(given.ctypes.data, 1), x, y)
                        self.assertEqual(given[0], 5)
                        handle = worker.register(chip)
                        given[0] = 1
                        worker.run(handle, x, y, given.ctypes.data, 1)
                        self.assertEqual(given[0], 5)
                    # These are in no such memory: a kernel may get any number, whether it is an address or not.
                    for value in other.ctypes.data, 1, 1 << 40, 0x10000:
                        worker.run(graph(value, 0), x, y)
                        worker.run(handle, x, y, value, 0)
                    for named, run in ((r"^task 0 of ring 0 \(number\), submitted at test_isolate\.py:\d+: ", lambda: worker.run(graph(other.ctypes.data, 1), x, y)),
                                       (r'^orchestration "orch": ', lambda: worker.run(handle, x, y, other.ctypes.data, 1))):
                        other[:] = 0
                        if isolate:
                            with self.assertRaisesRegex(GLib.Error, named + lost) as caught:
                                run()
                            self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.OUT_OF_BOUNDS))
                        else:
                            run()
                            self.assertEqual(other[0], 5)
                    # Also far behind the address, to the end of what was allocated there.
                    for array in other, large:
                        for i in 5, array.size - 1:
                            array[i] = 0
                            if isolate:
                                with self.assertRaisesRegex(GLib.Error, lost):
                                    worker.run(graph(array.ctypes.data, i + 1), x, y)
                            else:
                                worker.run(graph(array.ctypes.data, i + 1), x, y)
                                self.assertEqual(array[i], 5)
                    # A launched graph keeps its numbers, also where one lies in an array of the run.
                    for array in y, large[:8]:
                        worker.run(graph(large.ctypes.data, 0), x, y)
                        captured = worker.capture(graph(large.ctypes.data, 1), x, y)
                        if isolate:
                            with self.assertRaisesRegex(GLib.Error, r"^task 0 of ring 0 \(number\), submitted at test_isolate\.py:\d+: " + lost):
                                worker.run(captured, x, array)
                        else:
                            worker.run(captured, x, array)
                            self.assertEqual(large[0], 5)

    def test_number_before_its_tensor(self):
        """A number that is an address in an array of the same task becomes that of the copy, wherever it stands."""
        path = os.path.join(self.directory, "first.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAD.replace("args[0], *y = (const TensorData *) args[1]", "args[2], *y = (const TensorData *) args[3]")
                       + "  to[1] = ((const float *) args[0])[2] + from[0];\n  ((float *) args[1])[3] = 5;\n}\n")
        first = Pto.Callable.kernel(path)

        def only(orch, x, y, a, b, **how):
            orch.submit(first, a, b, x.read(), y.update(), **how)

        def grouped(orch, x, y, a, b):
            orch.submit_group([first, first], args_list=[[a, b, x.read(), y.update()] for _ in range(2)])

        def late(orch, x, y, a, b):
            orch.submit(first, a, b, y.read(), y.update())
            orch.submit(self.double, x.read(), y.update())

        for backend in "par", "det", "threads":
            for isolate in False, True:
                condition = np.ones(1, "i4")
                arrays = [np.zeros(8, "f4") for _ in range(10)]
                with self.subTest(backend=backend, isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                    worker.set_parameter("backend", backend)
                    for graph in (only, grouped, lambda *all: only(*all, priority=1), lambda *all: only(*all, block_dim=2),
                                  lambda *all: only(*all, when=(condition, 0))):
                        x, y = arrays.pop(), arrays.pop()
                        given = x, y, x.ctypes.data, y.ctypes.data
                        x[:] = range(8)
                        worker.run(graph, *given)
                        self.assertEqual(y.tolist(), [0, 2, 0, 5, 0, 0, 0, 0])
                        x[:] = range(10, 18)
                        worker.run(graph, *given)
                        self.assertEqual(y.tolist(), [0, 22, 0, 5, 0, 0, 0, 0])
                    x[:], y[:] = range(8), 0
                    # A task that runs before its tensor is known cannot be right.
                    if isolate:
                        with self.assertRaisesRegex(GLib.Error, r"argument 0 of task 0 of ring 0, submitted at test_isolate\.py:\d+, is a number, the address of memory that is given as a tensor only now. "
                                                    "The chip's process had other memory there: give that task the tensor as well, or set isolate to 0"):
                            worker.run(late, *given)
                    else:
                        worker.run(late, *given)
                        self.assertEqual(y.tolist(), (2 * x).tolist())

    def test_orchestration_and_arrays(self):
        """What an orchestration itself reads and writes in the arrays of its run, as the page on foreign code says."""
        path = os.path.join(self.directory, "itself.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write("""\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  return (PTO2OrchestrationConfig){ .expected_arg_count = 3 };
}
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  Tensor x = pto2_rt_arg_tensor (rt, 1), y = pto2_rt_arg_tensor (rt, 2);
  PTOParam params[] = { make_input_param (x), make_output_existing_param (y) };

  ((float *) x.buffer.addr)[0] = ((const float *) args[0])[1] + 100;
  pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 2);
  return 0;
}
""")
        chip = Pto.ChipOrchestration.new(path, None)
        chip.add_kernel(0, "double", self.double)
        for isolate in False, True:
            x, y = np.arange(4, dtype="f4"), np.zeros(4, "f4")
            with self.subTest(isolate=isolate), Pto.Worker(isolate=isolate) as worker:
                handle = worker.register(chip)
                # The number before the tensor that it is the address of.
                worker.run(handle, x.ctypes.data, x, y)
                self.assertEqual((x.tolist(), y.tolist()), ([101, 1, 2, 3], [202, 2, 4, 6]))

                def graph(orch, a, b):
                    x[0] = 5
                    orch.submit(self.double, a.read(), b.write_existing())
                    seen.append(orch.get_element(b, [0]))
                    orch.submit(self.double, b.read(), a.write_existing())

                seen = []
                worker.run(graph, x, y)
                self.assertEqual((seen, y.tolist(), x.tolist()), ([10], [10, 2, 4, 6], [20, 4, 8, 12]))

    def test_property(self):
        self.assertTrue(self.worker.props.isolate)
        self.assertEqual(self.worker.dup_parameter("isolate"), "1")
        other = Pto.Worker(platform="a2a3sim")
        other.set_parameter("isolate", True)
        self.assertTrue(other.get_isolate())
        with self.assertRaisesRegex(GLib.Error, "processes already"):
            Pto.Worker(level=3, sub_workers=1, isolate=True).init()

    def test_hangs_while_it_loads(self):
        """A constructor that does not return: the call that waits for it does."""
        path = os.path.join(self.directory, "hangs.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAD + DOUBLE + "__attribute__ ((constructor)) static void hang (void)\n{\n"
                                       f"  while (getpid () != {os.getpid()})\n    pause ();\n}}\n")
        hangs = Pto.Callable.kernel(path)
        self.worker.set_parameter("timeout", 500)
        self.worker.start()
        with self.assertRaisesRegex(GLib.Error, r'"hangs": the chip\'s process was ended: it did not answer within the timeout'):
            self.worker.register(hangs)
        x, y = Pto.Buffer.array(4), Pto.Buffer.array(4)
        x[:] = 3
        self.worker.run(self.graph, x, y)
        self.assertEqual(list(y), [12] * 4)

    def test_crashes(self):
        """The program lives, the kernel is named, the next run works."""
        x, y = np.ones(10, "f4"), np.zeros(10, "f4")
        for i, body in enumerate(("_exit (4);", "signal (SIGSEGV, SIG_DFL); *bad = 1;", "pthread_exit (0);",
                                  "pthread_t t; pthread_create (&t, 0, (void *(*) (void *)) 8, 0); pause ();")):
            kernel = self.kernel(f"evil{i}", "  (void) from; (void) to; " + body + "\n}\n")
            with self.assertRaisesRegex(GLib.Error, rf"task 0 of ring 0 \(evil{i}.*\) on core AIV"):
                self.worker.run(lambda orch, a, b: orch.submit(kernel, a.read(), b.write_existing()), x, y)
            self.worker.run(self.graph, x, y)
            self.assertTrue((y == 4).all())

    def test_signal_handlers(self):
        """What a kernel sets for a signal lasts until its run ends, in the chip's process, too."""
        sets = self.kernel("sets", "  signal (SIGUSR1, SIG_IGN);\n  signal (SIGTERM, SIG_IGN);\n  to[0] = from[0];\n}\n")
        looks = self.kernel("looks", "  struct sigaction usr1, term;\n  sigaction (SIGUSR1, 0, &usr1);\n  sigaction (SIGTERM, 0, &term);\n"
                                     "  to[0] = from[0] + (usr1.sa_handler == SIG_IGN) + (term.sa_handler == SIG_IGN);\n}\n")

        def graph(kernel):
            return lambda orch, a, b: orch.submit(kernel, a.read(), b.write_existing())

        def both(orch, a, b):
            middle = orch.tensor(1)
            orch.submit(sets, a.read(), middle.write())
            orch.submit(looks, middle.read(), b.write_existing())

        x, y = Pto.Buffer.array(1), Pto.Buffer.array(1)
        x[0] = 3
        for backend in "par", "det", "threads":
            with self.subTest(backend=backend), Pto.Worker(platform="a2a3sim", isolate=True) as worker:
                worker.set_parameter("backend", backend)
                for run, expected in (both, 5), (graph(looks), 3), (graph(sets), 3), (graph(looks), 3):
                    worker.run(run, x, y)
                    self.assertEqual(y[0], expected)

    def test_no_descriptor_left(self):
        """A kernel that takes a while is watched as before: its thread is not taken for one that has ended. What can not be known
        then of memory fails the run, which would lose what is written there."""
        x, y = np.ones(10, "f4"), np.zeros(10, "f4")
        path = os.path.join(self.directory, "slow.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#define _GNU_SOURCE\n#include <unistd.h>\nvoid kernel_entry (long *args)\n{\n"
                       "  for (int i = 0; i < 50; i++)\n    usleep (10000);\n}\n")
        slow = Pto.Callable.kernel(path)
        self.worker.run(lambda orch: orch.submit(slow))
        self.worker.run(self.graph, x, y)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            self.worker.run(lambda orch: orch.submit(slow))
            with self.assertRaisesRegex(GLib.Error, "whether the chip's process sees 40 bytes at 0x[0-9a-f]+ can not be known: .*ulimit -n"):
                self.worker.run(self.graph, y, x)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.worker.run(self.graph, y, x)
        self.assertTrue((x == 16).all())

    def test_exception(self):
        """Of the function itself; the run before and after it works."""
        x, y = np.ones(10, "f4"), np.zeros(10, "f4")

        def graph(orch, a, b):
            self.graph(orch, a, b)
            raise KeyError("lost")

        with self.assertRaises(KeyError):
            self.worker.run(graph, x, y)
        self.worker.run(self.graph, x, y)
        self.assertTrue((y == 4).all())

    def test_busy_threads(self):
        """The process is begun by Python's own fork, whatever its other threads do."""
        stop = threading.Event()
        threads = [threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(stop.is_set, True)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                with Pto.Worker(isolate=True) as worker:
                    x, y = np.ones(10, "f4"), np.zeros(10, "f4")
                    worker.run(self.graph, x, y)
                    self.assertTrue((y == 4).all())
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def test_first_runs_at_once(self):
        """Each of the threads finds a new worker, one makes its process; nobody takes the function from it that forks."""
        n, fork = 8, os.fork

        def slow_fork():
            while len(entered) < n:
                time.sleep(0.001)
            time.sleep(0.05)  # the others come as far as they can
            return fork()

        def run(x, y):
            entered.append(None)
            self.worker.run(self.graph, x, y)

        entered, pairs = [], [(np.ones(10, "f4"), np.zeros(10, "f4")) for _ in range(n)]
        with unittest.mock.patch("os.fork", slow_fork), concurrent.futures.ThreadPoolExecutor(n) as threads:
            for done in [threads.submit(run, *pair) for pair in pairs]:
                done.result()
        self.assertTrue(all((y == 4).all() for _, y in pairs))

    def test_fork_that_raises(self):
        """Too many processes: the program is told, and does not go on as a child of its own."""
        program = ("import errno, os, gi; gi.require_version('Pto', '1')\n"
                   "from gi.repository import GLib, Pto\n"
                   "def fork(): raise BlockingIOError(errno.EAGAIN, 'too many')\n"
                   "os.fork = fork\n"
                   "for worker in (Pto.Worker(isolate=True), Pto.Worker(level=3, sub_workers=1)):\n"
                   "    try: worker.init()\n"
                   "    except GLib.Error as error: print(error)\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout.splitlines()),
                         (0, [f"{path} can not be started: fork: no reason was given"
                              for path in ("L2/0", "L3/0/sub0")]))
        self.assertEqual(done.stderr.count("BlockingIOError: [Errno 11] too many"), 2)

    def test_cancel(self):
        kernel = self.kernel("wait", "  (void) from; (void) to; sigset_t all; sigfillset (&all);\n"
                             "  sigprocmask (SIG_SETMASK, &all, 0); for (;;) pause ();\n}\n")
        x, y = np.ones(10, "f4"), np.zeros(10, "f4")
        self.worker.run(self.graph, x, y)
        cancellable = Gio.Cancellable()
        timer = threading.Timer(0.1, cancellable.cancel)
        timer.start()
        with self.assertRaises(GLib.Error) as raised:
            self.worker.run(lambda orch, a, b: orch.submit(kernel, a.read(), b.write_existing()), x, y,
                            cancellable=cancellable)
        self.assertTrue(raised.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))
        self.worker.run(self.graph, x, y)

    def test_same_numbers(self):
        """On the virtual clock everything is the same, the trace byte by byte."""
        results = []
        for isolate in (False, True):
            with Pto.Worker(isolate=isolate) as worker:
                worker.set_parameter("backend", "det")
                worker.set_parameter("trace", 1)
                x, y = np.arange(1000, dtype="f4"), np.zeros(1000, "f4")

                def graph(orch, a, b):
                    for _ in range(50):
                        with orch.scope():
                            self.graph(orch, a, b)

                worker.run(graph, x, y)
                path = os.path.join(self.directory, f"{isolate}.json")
                worker.ref_trace().save_json(path)
                with open(path, "rb") as file:
                    results.append((file.read(), worker.dup_statistics().get_virtual_ns(), y.tobytes()))
        self.assertEqual(results[0], results[1])


tap.main()
