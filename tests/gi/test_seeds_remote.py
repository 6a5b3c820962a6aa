# test_seeds_remote.py: does a program with remote workers run with the words that seed 001 has for them?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The listings are programs as the seed's sections 2, 3 and 6 describe them; what they leave open stands before them, in the test.
import ctypes
import gc
import os
import sys
import tempfile
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import here, np, root  # noqa: E402

s = Pto.seeds
FACTOR = 3

# Memory of two remote workers, one of which has its id from the program, and a task for each.
STAYS = '''
from simpler.task_interface import *

w4 = Worker(level=4, num_sub_workers=0)
a = w4.add_remote_worker(RemoteWorkerSpec("local:", "a2a3sim", roots=root))
b = w4.add_remote_worker(RemoteWorkerSpec("local:", platform="a2a3sim", roots=root, worker_id=7))
handle = w4.register(RemoteCallable("remote_steps:add_in_place"), workers=[a, b])
w4.init()

buffers = {worker: w4.remote_malloc(worker=worker, nbytes=4096) for worker in (a, b)}
for buffer in buffers.values():
    w4.remote_copy_to(buffer, host, 4096)

def my_l4_orch(orch, args, config):
    for worker, buffer in buffers.items():
        remote = RemoteTaskArgs()
        remote.add_tensor(RemoteTensorRef(buffer, offset=1024, shape=(768,), dtype="float32"), INOUT)
        remote.add_scalar(10 + worker)
        orch.submit_next_level(handle, remote, config, worker=worker)

w4.run(my_l4_orch, TaskArgs(), CallConfig())
for worker, buffer in buffers.items():
    w4.remote_copy_from(buffer, found[worker], 4096)
    w4.remote_free(buffer)
w4.close()
'''

# A chip's orchestration, whose contents are sent, for the chips of both, and a group.
GROUP = '''
from simpler.task_interface import *

w4 = Worker(level=4)
ids = [w4.add_remote_worker(RemoteWorkerSpec("local:", roots=root, device_ids=(2 * i, 2 * i + 1))) for i in range(2)]
chip_handle = w4.register(RemoteCallable(chip, kind=CHIP_CALLABLE), workers=ids)
handle = w4.register(RemoteCallable("remote_steps:on_chip"), workers=ids)

def my_l4_orch(orch, view, config):
    members = []
    for i in range(2):
        remote = RemoteTaskArgs()
        remote.add_tensor(view.tensors[i], OUTPUT_EXISTING)
        remote.add_scalar(2.5 + i)
        members.append(remote)
    orch.submit_next_level_group(handle, members, config, workers=ids)

args = TaskArgs()
for y in ys:
    args.add_tensor(make_ct(y), OUTPUT_EXISTING)
w4.run(my_l4_orch, args, CallConfig())
w4.close()
'''


def scale(orch, args, config):
    args[1][:] = args[0] * FACTOR


def twice(args):
    args[1][:] = args[0] * 2


@unittest.skipIf(np is None, "no numpy")
class Listings(unittest.TestCase):
    def test_stays(self):
        host, found = np.arange(1024, dtype="f4"), {0: np.zeros(1024, "f4"), 7: (ctypes.c_float * 1024)()}
        names = {"root": root, "host": host, "found": found}
        exec(STAYS, names)
        self.assertEqual((names["a"], names["b"]), (0, 7))
        for worker in 0, 7:
            expected = host.copy()
            expected[256:] += 10 + worker
            self.assertEqual(list(found[worker]), list(expected))
        self.assertEqual([buffer.released for buffer in names["buffers"].values()], [True, True])
        handle = names["handle"]
        self.assertEqual((handle.get_kind(), handle.get_target_namespace()),
                         (Pto.CallableKind.ORCHESTRATION, Pto.TargetNamespace.REMOTE_TASK_DISPATCHER))

    def test_group(self):
        ys = Pto.Buffer.array((2, 100))
        chip = Pto.ChipOrchestration.new(os.path.join(here, "fill_orch.c"), None)
        chip.add_kernel(0, "fill", Pto.Callable.kernel(os.path.join(here, "fill.c"), "aiv"))
        names = {"root": root, "chip": chip, "ys": ys}
        exec(GROUP, names)
        self.assertEqual([sorted(set(y)) for y in ys], [[2.5], [3.5]])
        self.assertEqual(names["chip_handle"].get_target_namespace(), Pto.TargetNamespace.LOCAL_CHIP)


@unittest.skipIf(np is None, "no numpy")
class Words(unittest.TestCase):
    def setUp(self):
        self.w4 = s.Worker(level=4)
        self.addCleanup(self.w4.close)

    def add(self, n=2, **choices):
        return [self.w4.add_remote_worker(s.RemoteWorkerSpec("local:", roots=root, **choices)) for _ in range(n)]

    def run_one(self, handle, *tensors, worker=-1, scalars=()):
        remote = s.RemoteTaskArgs()
        for tensor, tag in tensors:
            remote.add_tensor(tensor, tag)
        for scalar in scalars:
            remote.add_scalar(scalar)
        self.w4.run(lambda orch, args, config: orch.submit_next_level(handle, remote, config, worker=worker), s.TaskArgs(), s.CallConfig())

    def test_worker(self):
        """The seeds' Worker is one of Pto, which has an address or a specification."""
        self.assertIsInstance(self.w4, Pto.Worker)
        self.assertEqual(self.add(3), [0, 1, 2])
        remote = self.w4.add_remote_worker("local:", roots=root, id=9)
        self.assertEqual((remote.get_id(), self.w4.get_child(9)), (9, remote))
        self.assertEqual(self.w4.add_remote_worker(s.RemoteWorkerSpec("local:", device_ids=(4, 5), num_sub_workers=2)), 3)
        self.assertEqual((self.w4.get_child(3).get_n_workers(), self.w4.get_child(3).get_n_sub_workers()), (2, 2))
        with self.assertRaisesRegex(GLib.Error, "the id 9 is that of L4/0/L3/9 already"):
            self.add(worker_id=9)

    def test_specification(self):
        for error, words, choices in (
                (TypeError, "RemoteWorkerSpec: endpoint=None: an address is wanted", {"endpoint": None}),
                (ValueError, "RemoteWorkerSpec: runtime='host_build_graph': chips of a remote worker run tensormap_and_ringbuffer",
                 {"runtime": "host_build_graph"}),
                (OverflowError, "RemoteWorkerSpec: device_ids: 16 is not one of 0 to 15", {"device_ids": (0, 16)}),
                (ValueError, r"RemoteWorkerSpec: device_ids=\[1, 1\]: one of them is there twice", {"device_ids": (1, 1)})):
            with self.assertRaisesRegex(error, words):
                s.RemoteWorkerSpec(**{"endpoint": "local:", **choices})
        for error, words, spec in (
                (GLib.Error, "one.example:7000", s.RemoteWorkerSpec("one.example:7000")),
                (GLib.Error, "a3", s.RemoteWorkerSpec("local:", "a3")),
                (TypeError, "unexpected keyword argument 'listen'", s.RemoteWorkerSpec("local:", listen="here"))):
            with self.assertRaisesRegex(error, words):
                self.w4.add_remote_worker(spec)
        self.assertEqual(self.w4.get_n_workers(), 0)
        with self.assertRaisesRegex(GLib.Error, "a remote worker is one of level 3, and is below one of level 4 or more, not 3"):
            s.Worker(level=3).add_remote_worker(s.RemoteWorkerSpec("local:"))

    def test_serialized(self):
        x, y = Pto.Buffer.array(4, "i8"), Pto.Buffer.array(4, "i8")
        x[:] = range(4)
        a, b = self.add(serialized_python=True, num_sub_workers=1)
        handle = self.w4.register(s.RemoteCallable(scale, kind=s.PYTHON_SERIALIZED), workers=[a, b])
        # One that could be imported here goes as bytes, too: nothing imports this module there.
        sys.modules["test_seeds_remote"] = sys.modules[__name__]
        self.addCleanup(sys.modules.pop, "test_seeds_remote")
        self.w4.get_child(b).register(s.RemoteCallable(twice, s.PYTHON_SERIALIZED, worker_type=s.SUB))

        def below(orch, args, config):
            orch.submit_sub(orch.worker.lookup("twice"), [args.get_tensor(0).read(), args.get_tensor(1).write_existing()])
        other = self.w4.register(s.RemoteCallable(below, kind=s.PYTHON_SERIALIZED), workers=[b])
        for worker in a, b:
            y[:] = 0
            self.run_one(handle, (x, s.IN), (y, s.OUTPUT_EXISTING), worker=worker)
            self.assertEqual(list(y), [0, 3, 6, 9])
        self.run_one(other, (x, s.IN), (y, s.OUTPUT_EXISTING))
        self.assertEqual(list(y), [0, 2, 4, 6])

    def test_kinds_refused(self):
        a, = self.add(1)
        for error, words, call in (
                (ValueError, "RemoteCallable: there is no kind 'JAVA': PYTHON_IMPORT, CHIP_CALLABLE, PYTHON_SERIALIZED, LIBRARY_SYMBOL are",
                 lambda: s.RemoteCallable("remote_steps:fill", kind="JAVA")),
                (ValueError, "RemoteCallable: worker_type=3: NEXT_LEVEL or SUB is wanted",
                 lambda: s.RemoteCallable("remote_steps:fill", worker_type=3)),
                (TypeError, "RemoteCallable: 5 is no text: \"module:qualname\" is wanted", lambda: s.RemoteCallable(5)),
                (TypeError, "RemoteCallable: 'remote_steps:fill' is no function of Python, which alone is sent as bytes",
                 lambda: s.RemoteCallable("remote_steps:fill", s.PYTHON_SERIALIZED)),
                (TypeError, "can not be sent to a remote worker as bytes",
                 lambda: s.RemoteCallable(lambda orch, args, config: self, s.PYTHON_SERIALIZED)),
                (GLib.Error, "/nonexistent/nowhere/pto.ini: there is no such file", lambda: s.RemoteCallable("/nonexistent/nowhere", s.CHIP_CALLABLE)),
                (GLib.Error, "/nonexistent/nowhere.so: there is no such file", lambda: s.RemoteCallable("/nonexistent/nowhere.so:f", s.LIBRARY_SYMBOL)),
                (GLib.Error, "can not be imported: write module:qualname", lambda: s.RemoteCallable("layer"))):
            with self.assertRaisesRegex(error, words):
                call()
        # Bytes have to be agreed upon.
        with self.assertRaisesRegex(GLib.Error, "is a function of this process, which local: can not be sent"):
            self.w4.register(s.RemoteCallable(scale, s.PYTHON_SERIALIZED), workers=[a])
        with self.assertRaisesRegex(GLib.Error, "L4/0 has no worker 5: the ids of its workers are 0"):
            self.w4.register(s.RemoteCallable("remote_steps:fill"), workers=[5])

    def test_no_roots(self):
        """A module is imported from declared directories only."""
        with tempfile.TemporaryDirectory() as empty:
            a = self.w4.add_remote_worker(s.RemoteWorkerSpec("local:", roots=empty))
            self.w4.register(s.RemoteCallable("remote_steps:fill"), workers=[a])
            with self.assertRaisesRegex(GLib.Error, "remote_steps is in none of the directories that this worker imports from: .*" + empty):
                self.w4.init()
        w4 = s.Worker(level=4)
        self.addCleanup(w4.close)
        a = w4.add_remote_worker(s.RemoteWorkerSpec("local:"))
        w4.register(s.RemoteCallable("remote_steps:fill"), workers=[a])
        with self.assertRaisesRegex(GLib.Error, "remote_steps:fill.*(interpreter|import)"):
            w4.init()

    def test_namespace(self):
        """Of what is on remote workers only; one of this process makes it another."""
        a, b = self.add()
        self.w4.add_worker(s.NEXT_LEVEL, s.Worker(level=3))
        remote, local = Pto.TargetNamespace.REMOTE_TASK_DISPATCHER, Pto.TargetNamespace.LOCAL_PYTHON
        which = s.RemoteCallable("remote_steps:which")
        handle = self.w4.register(which, workers=[a])
        self.assertEqual(handle.get_target_namespace(), remote)
        self.w4.register(which, workers=[b])
        self.assertEqual(handle.get_target_namespace(), remote)
        self.w4.register(which, workers=[2])
        self.assertEqual(handle.get_target_namespace(), local)
        self.assertEqual(self.w4.register(s.RemoteCallable("remote_steps:fill")).get_target_namespace(), local)

    def test_chip_callable_on_all_or_none(self):
        chip = s.RemoteCallable(os.path.join(os.environ["PTO_TEST_EXAMPLES"], "worked-example", "add"), s.CHIP_CALLABLE)
        a, b = self.add()
        self.w4.register(chip, workers=[a, b])
        for id_ in a, b:
            self.assertEqual(self.w4.get_child(id_).lookup("add_orch").get_kind(), Pto.CallableKind.CHIP)
        self.w4.add_worker(s.Worker(level=3))
        c, d = self.add()
        self.w4.get_child(d).close()
        other = s.ChipCallable.new(os.path.join(here, "fill_orch.c"), None)
        for workers, error, words in ([c, 2], ValueError, "L4/0 has no remote worker 2: "), ([c, 9], ValueError, "L4/0 has no remote worker 9: "), (
                [c, d], GLib.Error, "closed"), ([2], GLib.Error, '"fill_orch" is for chips, worker 2 of L4/0 is of level 3'):
            with self.assertRaisesRegex(error, words):
                self.w4.register(other, workers=workers)
            with self.assertRaisesRegex(GLib.Error, "fill_orch"):
                self.w4.get_child(c).lookup("fill_orch")

    def test_too_late(self):
        """What a worker has of its own it has from its start: who comes later is told so."""
        a, = self.add(1)
        self.w4.init()
        chip = s.RemoteCallable(os.path.join(os.environ["PTO_TEST_EXAMPLES"], "worked-example", "add"), s.CHIP_CALLABLE)
        for error, words, call in (
                (Pto.BusyError, "L4/0/L3/0 runs elsewhere since the worker above it was started", lambda: self.w4.register(chip, workers=[a])),
                (Pto.BusyError, "can not be added: the worker above it has started already", self.add)):
            with self.assertRaisesRegex(error, words):
                call()

    def test_args(self):
        a, = self.add(1)
        buffer = self.w4.remote_malloc(worker=a, nbytes=64)
        self.assertEqual((buffer.worker_id, buffer.nbytes, buffer.released, repr(buffer)), (0, 64, False, "<RemoteBufferHandle: 64 bytes at worker 0>"))
        here_, ref = np.zeros(3, "i4"), s.RemoteTensorRef(buffer, offset=16, shape=(2, 3), dtype=Pto.Dtype.INT16)
        args = s.RemoteTaskArgs()
        args.add_tensor(ref, s.INOUT)
        args.add_tensor(s.make_ct(here_))
        args.add_scalar(2**64 - 1)
        view = args.view()
        self.assertEqual((args.tensor_count, args.scalar_count, view.tensor_count, view.scalars), (2, 1, 2, [2**64 - 1]))
        self.assertEqual([args.tag(i) for i in range(2)], [s.INOUT, s.IN])
        self.assertEqual((args.sidecar(0), args.sidecar(1)), (ref, None))
        # As the seed has it, what is remote is a tensor without an address, and what is beside it says where it is.
        self.assertEqual([(t.shape, t.dtype, t.get_address()) for t in view.tensors],
                         [((2, 3), Pto.Dtype.INT16, 0), ((3,), Pto.Dtype.INT32, here_.ctypes.data)])
        for i in (-1, 2):
            with self.assertRaisesRegex(IndexError, f"tensor {i} of 2"):
                args.sidecar(i)
        with self.assertRaisesRegex(TypeError, "a RemoteTensorRef is memory of a remote worker, and goes into RemoteTaskArgs"):
            s.TaskArgs().add_tensor(ref, s.IN)

    def test_does_not_fit(self):
        a, = self.add(1)
        buffer = self.w4.remote_malloc(a, 64)
        ref = s.RemoteTensorRef
        for error, words, call in (
                (GLib.Error, "a tensor of 68 bytes at offset 0 does not fit in", lambda: ref(buffer, shape=(17,))),
                (GLib.Error, "a tensor of 4 bytes at offset 64 does not fit in", lambda: ref(buffer, 64, (1,))),
                (GLib.Error, "offset 2 is no multiple of the element size 4", lambda: ref(buffer, 2, (1,))),
                (OverflowError, "RemoteTensorRef: offset: -4 is not one of 0 to", lambda: ref(buffer, -4, (1,))),
                (OverflowError, "RemoteTensorRef: shape: 0 is not one of 1 to", lambda: ref(buffer, 0, (0,))),
                (TypeError, "RemoteTensorRef: it has no shape", lambda: ref(buffer)),
                (TypeError, "b'x' is no RemoteBufferHandle", lambda: ref(b"x", shape=(1,))),
                (GLib.Error, "reach beyond a buffer of 64 bytes", lambda: self.w4.remote_copy_to(buffer, bytes(65), 65)),
                (GLib.Error, "reach beyond a buffer of 64 bytes", lambda: self.w4.remote_copy_from(buffer, bytearray(65), 65)),
                (GLib.Error, "do not lie in memory of L4/0/L3/0", lambda: self.w4.remote_copy_to(buffer, np.zeros(65, "i1").ctypes.data, 65)),
                (GLib.Error, r"at address 0 \(NULL\)", lambda: self.w4.remote_copy_from(buffer, 0, 4)),
                (ValueError, "remote_copy_to: 65 bytes are wanted, and there are 64 here", lambda: self.w4.remote_copy_to(buffer, bytes(64), 65)),
                (ValueError, "remote_copy_from: 9 bytes are wanted, and there are 8 here",
                 lambda: self.w4.remote_copy_from(buffer, np.zeros(1, "i8"), 9)),
                (GLib.Error, "at least 1 is wanted", lambda: self.w4.remote_malloc(a, 0)),
                (GLib.Error, "L4/0/L3/0 has no room for", lambda: self.w4.remote_malloc(a, 1 << 60)),
                (ValueError, "L4/0 has no remote worker 1: ", lambda: self.w4.remote_malloc(1, 8)),
                (ValueError, "L4/0 has no remote worker -1: ", lambda: self.w4.remote_malloc(-1, 8))):
            with self.assertRaisesRegex(error, words):
                call()
        self.assertEqual(self.w4.remote_copy_from(buffer, back := bytearray(b"x" * 64), 64), True)
        self.assertEqual(bytes(back), bytes(64))

    def test_addresses(self):
        """Of this process, as numbers, and a part of what is there."""
        a, = self.add(1)
        buffer = self.w4.remote_malloc(a, 32)
        there, back = np.arange(4, dtype="i8"), np.zeros(4, "i8")
        self.w4.remote_copy_to(buffer, there.ctypes.data, 32)
        self.w4.remote_copy_to(buffer, np.int64([9]), 8, offset=16)
        self.w4.remote_copy_from(buffer, back.ctypes.data + 8, 24, offset=8)
        self.assertEqual(list(back), [0, 1, 9, 3])

    def test_freed(self):
        """A handle that was freed is refused, also by what was made of it before."""
        a, b = self.add()
        self.w4.get_child(a).set_parameter("arena", str(8 << 20))
        fill = self.w4.register(s.RemoteCallable("remote_steps:fill"), workers=[a, b])
        buffer = self.w4.remote_malloc(a, 64)
        ref = s.RemoteTensorRef(buffer, shape=(16,))
        self.run_one(fill, (ref, s.OUT), scalars=[1], worker=a)
        self.w4.remote_free(buffer)
        self.assertEqual((buffer.released, repr(buffer)), (True, "<RemoteBufferHandle: 64 bytes at worker 0, freed>"))
        words = r"64 bytes at remote worker 0: they were freed by remote_free\(\)"
        for call in (lambda: self.run_one(fill, (ref, s.OUT), scalars=[1], worker=a), lambda: s.RemoteTensorRef(buffer, shape=(1,)),
                     lambda: self.w4.remote_free(buffer), lambda: self.w4.remote_copy_to(buffer, bytes(4), 4),
                     lambda: self.w4.remote_copy_from(buffer, bytearray(4), 4)):
            with self.assertRaisesRegex(ValueError, words):
                call()
        # What is free is there for others.
        for _ in range(4):
            self.w4.remote_free(self.w4.remote_malloc(a, 6 << 20))
            gc.collect()

    def test_graphs(self):
        """Each keeps memory or is given some, is launched with other memory, and runs go between."""
        a, b = self.add()
        add = self.w4.register(s.RemoteCallable("remote_steps:add_in_place"), workers=[a, b])
        kept, given, other, elsewhere = (self.w4.remote_malloc(worker, 64) for worker in (a, a, a, b))

        def ref(handle):
            return s.RemoteTensorRef(handle, 16, (4,), "int64")

        def step(orch, *args):
            for tensor, value in ((ref(kept), 1), *[(arg, 10) for arg in args if arg is not None]):
                remote = s.RemoteTaskArgs()
                remote.add_tensor(tensor, s.INOUT)
                remote.add_scalar(value)
                orch.submit_next_level(add, remote, worker=a)

        def read(handle):
            self.w4.remote_copy_from(handle, found := np.zeros(8, "i8"), 64)
            return found.tolist()

        alone, both = self.w4.capture(step), self.w4.capture(step, ref(given).tensor())
        for what, *args in (alone,), (both, given), (step,), (both, other), (step, given), (alone,), (both, given):
            self.w4.run(what, *[ref(arg).tensor() for arg in args])
        self.assertEqual([read(handle) for handle in (kept, given, other)], [[0, 0, n, n, n, n, 0, 0] for n in (7, 30, 10)])
        with self.assertRaisesRegex(GLib.Error, "argument 0 of the graph is memory of L4/0/L3/1, which no other worker sees"):
            self.w4.run(both, ref(elsewhere).tensor())
        self.w4.remote_free(given)
        with self.assertRaisesRegex(ValueError, r"they were freed by remote_free\(\)"):
            self.w4.run(both, ref(given).tensor())
        again = s.RemoteBufferHandle(a, self.w4.get_child(a).import_buffer(kept.buffer.export()))
        self.w4.remote_free(kept)
        self.w4.run(alone)
        self.assertEqual(read(again), [0, 0, 8, 8, 8, 8, 0, 0])
        with self.assertRaisesRegex(ValueError, r"they were freed by remote_free\(\)"):
            self.w4.capture(step)

    def test_imported(self):
        """Another handle of the same memory, which outlasts the first."""
        a, = self.add(1)
        add = self.w4.register(s.RemoteCallable("remote_steps:add_in_place"), workers=[a])
        buffer = self.w4.remote_malloc(a, 64)
        again = s.RemoteBufferHandle(a, self.w4.get_child(a).import_buffer(buffer.buffer.export(16, 8)))
        self.w4.remote_copy_to(buffer, np.arange(16, dtype="f4"), 64)
        self.w4.remote_free(buffer)
        self.run_one(add, (s.RemoteTensorRef(again, shape=(2,)), s.INOUT), scalars=[10], worker=a)
        self.w4.remote_copy_from(again, found := np.zeros(2, "f4"), 8)
        self.assertEqual((list(found), again.nbytes), ([14, 15], 8))

    def test_for_its_worker(self):
        a, b = self.add()
        fill = self.w4.register(s.RemoteCallable("remote_steps:fill"), workers=[a, b])
        ref = s.RemoteTensorRef(self.w4.remote_malloc(b, 64), shape=(16,))
        for worker in a, -1:
            with self.assertRaisesRegex(GLib.Error, "memory of L4/0/L3/1, which no other worker sees: name worker 1 for the task"):
                self.run_one(fill, (ref, s.OUT), scalars=[1], worker=worker)
        other = s.Worker(level=4)
        self.addCleanup(other.close)
        other.add_remote_worker(s.RemoteWorkerSpec("local:", roots=root))
        with self.assertRaisesRegex(ValueError, "64 bytes at worker 1> is not of L4/[0-9]+, but of L4/0/L3/1"):
            other.remote_free(ref.handle)
        with self.assertRaisesRegex(TypeError, "5 is no RemoteBufferHandle"):
            other.remote_free(5)
        self.assertFalse(ref.handle.released)

    def test_lost(self):
        """Of a worker that was lost, and of its next life."""
        w4 = self.w4 = s.Worker(level=4, restart=Pto.Restart.ON_FAILURE)
        self.addCleanup(w4.close)
        a, b = self.add()
        fill, stop = (w4.register(s.RemoteCallable(f"remote_steps:{name}"), workers=[a, b]) for name in ("fill", "stop"))
        lost, kept = w4.remote_malloc(a, 64), w4.remote_malloc(b, 4)
        w4.remote_copy_to(kept, b"kept", 4)
        ref = s.RemoteTensorRef(lost, shape=(16,))
        with self.assertRaises(GLib.Error) as raised:
            self.run_one(stop, worker=a)
        self.assertTrue(raised.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), raised.exception.message)
        for call in (lambda: self.run_one(fill, (ref, s.OUT), scalars=[1], worker=a), lambda: w4.remote_copy_from(lost, bytearray(64), 64),
                     lambda: w4.remote_copy_to(lost, bytes(64), 64)):
            with self.assertRaises(GLib.Error) as raised:
                call()
            self.assertTrue(raised.exception.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), raised.exception.message)
        w4.remote_free(lost)
        w4.remote_copy_from(kept, back := bytearray(4), 4)
        self.assertEqual(back, b"kept")
        self.run_one(fill, (s.RemoteTensorRef(w4.remote_malloc(a, 64), shape=(16,)), s.OUT), scalars=[1], worker=a)

    def test_stays_by_make_tensor_at(self):
        """A tensor that stays for a run is an argument like a RemoteTensorRef."""
        a, b = self.add()
        fill, copy = (self.w4.register(s.RemoteCallable(f"remote_steps:{name}"), workers=[a, b]) for name in ("fill", "copy"))
        y = Pto.Buffer.array(8)

        def my_l4_orch(orch, args, config):
            x = orch.make_tensor_at(b, 8)
            for handle, tensors, scalars in (fill, ((x, s.OUT),), (4,)), (copy, ((x, s.IN), (y, s.OUTPUT_EXISTING)), ()):
                remote = s.RemoteTaskArgs()
                for tensor, tag in tensors:
                    remote.add_tensor(tensor, tag)
                for scalar in scalars:
                    remote.add_scalar(scalar)
                orch.submit_next_level(handle, remote, config, worker=b)
        self.w4.run(my_l4_orch, s.TaskArgs(), s.CallConfig())
        self.assertEqual(list(y), [4] * 8)
        self.assertEqual(self.w4.dup_statistics().get_bytes_received(), 32)


tap.main()
