# test_remote_job.py: do remote workers that are ranks of one MPI job exchange what stays at them, and nobody hangs?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import glob
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Gio, GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import np, remote_steps, root, until  # noqa: E402

RANKS = 4
DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
OPERATIONS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum} if np else {}

if not shutil.which("mpirun"):
    missing = "no mpirun: install openmpi-bin"
elif not os.path.exists(os.path.join(os.path.dirname(os.environ["PTO_REMOTE"]), "pto-mpi-rank")):
    missing = "this libpto was built without MPI: install libopenmpi-dev"
else:
    missing = None if np else "no NumPy"

# Who runs the tests may be root, in a container; what MPI leaves behind is looked for there.
os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
if sys.argv[1:2] != ["--program"]:
    scratch = tempfile.mkdtemp(prefix="pto-job-")
    os.environ["TMPDIR"] = scratch


def tree(parts, combine):
    """((0 1) (2 3)), as doc/levels.md says."""
    parts = [part.copy() for part in parts]
    distance = 1
    while distance < len(parts):
        for i in range(0, len(parts) - distance, 2 * distance):
            parts[i] = combine(parts[i], parts[i + distance])
        distance *= 2
    return parts[0]


def bits_of_bfloat(floats):
    """The nearest, the even one of two; what is no number stays none."""
    bits = floats.astype("f4").view("u4")
    return np.where(np.isnan(floats), 0x7fc0, (bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("u2")


def float_of_bfloat(bits):
    return (bits.astype("u4") << 16).view("f4")


def descendants(process):
    found = {process}
    with contextlib.suppress(OSError):
        for path in glob.glob(f"/proc/{process}/task/*/children"):
            with open(path, encoding="ascii") as file:
                for child in file.read().split():
                    found |= descendants(int(child))
    return found


def find(name, process=None):
    """Descendants of that name, by their numbers."""
    found = []
    for pid in sorted(descendants(process or os.getpid())):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as file:
            if file.read().strip() == name:
                found.append(pid)
    return found


def count_switches(pid):
    """Who waits for others in a collective looks again and again; who is idle sleeps."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("voluntary")).split()[1])


def is_gone(pid):
    """With all of its threads. Whoever is not reaped yet counts."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        return bool(select.select([fd], [], [], 0)[0])
    finally:
        os.close(fd)


class Job:
    """A worker above RANKS others, and what they can run."""
    def __init__(self, **options):
        self.worker = Pto.Worker(level=4, restart=Pto.Restart.ON_FAILURE, **options)
        self.ranks = self.worker.add_remote_job(["local:"] * RANKS, roots=root)
        self.copy, self.fill, self.which = (self.worker.register(f) for f in (remote_steps.copy, remote_steps.fill, remote_steps.which))
        self.worker.start()

    def place(self, orch, inputs):
        """Each at its rank."""
        tensors = []
        for rank, given in enumerate(inputs):
            tensor = orch.make_tensor_at(rank, given.get_shape(), given.get_dtype())
            orch.submit_next_level(self.copy, [given.read(), tensor.write()], worker=rank)
            tensors.append(tensor)
        return tensors

    def take(self, orch, tensors, out):
        for rank, tensor in enumerate(tensors):
            orch.submit_next_level(self.copy, [tensor.read(), out[rank].write_existing()], worker=rank)

    def run(self, exchange, parts, cancellable=None):
        """What becomes of parts: exchange(orch, tensors) gives the tensors that are looked at."""
        inputs = [Pto.Buffer.array(part.shape, part.dtype) for part in parts]
        for given, part in zip(inputs, parts):
            given[...] = part
        out = Pto.Buffer.array((RANKS, *parts[0].shape), parts[0].dtype)

        def graph(orch, out, *given):
            self.take(orch, exchange(orch, self.place(orch, given)), out)

        self.worker.run(graph, out, *inputs, **({"cancellable": cancellable} if cancellable else {}))
        return np.array(out)

    def reduce(self, parts, operation="sum", **options):
        return self.run(lambda orch, tensors: [orch.allreduce(tensors, operation), tensors][1], parts, **options)


@unittest.skipIf(missing, missing)
class RemoteJob(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.job = Job()

    @classmethod
    def tearDownClass(cls):
        cls.job.worker.close()

    def test_allreduce(self):
        """Every type and operation, bit by bit as by the tree."""
        for dtype in DTYPES:
            for operation, combine in OPERATIONS.items():
                if np.dtype(dtype).kind == "f":
                    parts = [np.random.default_rng(i).normal(1, 0.5, 37).astype(dtype) for i in range(RANKS)]
                else:
                    parts = [np.random.default_rng(i).integers(0, 120, 37).astype(dtype) for i in range(RANKS)]
                with self.subTest(dtype=dtype, operation=operation), np.errstate(over="ignore"):
                    out = self.job.reduce(parts, operation)
                    for row in out:
                        np.testing.assert_array_equal(row, tree(parts, combine))
                        self.assertEqual(row.tobytes(), tree(parts, combine).tobytes())


    def test_allreduce_of_many(self):
        """More than goes in one message of MPI: floats are combined in the same order."""
        parts = [np.random.default_rng(i).normal(0, 1, 300_001).astype("f4") for i in range(RANKS)]
        expected = tree(parts, np.add)
        self.assertFalse(np.array_equal(expected, parts[0] + (parts[1] + (parts[2] + parts[3]))))
        for row in self.job.reduce(parts):
            np.testing.assert_array_equal(row, expected)
        parts = [np.random.default_rng(i).integers(-2**31, 2**31, 300_001).astype("i4") for i in range(RANKS)]
        for row in self.job.reduce(parts):
            np.testing.assert_array_equal(row, tree(parts, np.add))

    def test_broadcast(self):
        parts = [np.full(1000, i, "i2") for i in range(RANKS)]
        for root in range(RANKS):
            out = self.job.run(lambda orch, tensors, root=root: [orch.broadcast(tensors, root), tensors][1], parts)
            np.testing.assert_array_equal(out, np.full((RANKS, 1000), root))

    def test_alltoall(self):
        parts = [np.arange(RANKS * 3, dtype="f8").reshape(RANKS, 3) + 100 * i for i in range(RANKS)]

        def exchange(orch, tensors):
            to = [orch.make_tensor_at(rank, (RANKS, 3), "f8") for rank in range(RANKS)]
            orch.alltoall(tensors, to)
            return to

        out = self.job.run(exchange, parts)
        for to in range(RANKS):
            np.testing.assert_array_equal(out[to], [parts[rank][to] for rank in range(RANKS)])

    def test_the_order_is_that_of_ranks(self):
        parts = [np.random.default_rng(i).normal(0, 1, 16).astype("f4") for i in range(RANKS)]
        out = self.job.run(lambda orch, tensors: [orch.allreduce(tensors[::-1]), tensors][1], parts)
        for row in out:
            np.testing.assert_array_equal(row, tree(parts, np.add))

    def test_nothing_goes_through_the_parent(self):
        n = 1 << 18
        out = Pto.Buffer.array(RANKS, "i4")

        def graph(orch, out):
            tensors = [orch.make_tensor_at(rank, n, "i4") for rank in range(RANKS)]
            for rank, tensor in enumerate(tensors):
                orch.submit_next_level(self.job.fill, [tensor.write(), rank + 1], worker=rank)
            for _ in range(3):
                orch.allreduce(tensors)
            orch.barrier(tensors)
            for rank, tensor in enumerate(tensors):
                orch.submit_next_level(self.job.copy, [tensor[n - 1:].read(), out[rank:rank + 1].write_existing()], worker=rank)

        self.job.worker.run(graph, out)
        self.assertEqual(out.tolist(), [10 * 4 * 4] * RANKS)
        run = self.job.worker.dup_statistics()
        self.assertEqual((run.get_bytes_sent(), run.get_bytes_received()), (4 * RANKS, 4 * RANKS))

    def test_a_graph(self):
        out = Pto.Buffer.array(RANKS, "i4")

        def graph(orch, out):
            tensors = [orch.make_tensor_at(rank, 1, "i4") for rank in range(RANKS)]
            for rank, tensor in enumerate(tensors):
                orch.submit_next_level(self.job.fill, [tensor.write(), rank + 1], worker=rank)
            orch.allreduce(tensors, "max")
            self.job.take(orch, tensors, [out[rank:rank + 1] for rank in range(RANKS)])

        captured = self.job.worker.capture(graph, out)
        for _ in range(2):
            out[:] = 0
            self.job.worker.run(captured, out)
            self.assertEqual(out.tolist(), [RANKS] * RANKS)

    def test_refusals(self):
        x = Pto.Buffer.array(4, "f4")
        texts = []

        def graph(orch, x):
            at = [orch.make_tensor_at(rank, 4, "f4") for rank in range(RANKS)]
            for what in (lambda: orch.allreduce(at[:3]), lambda: orch.allreduce(at[:3] + [x]), lambda: orch.allreduce([x] + at[:3]),
                         lambda: orch.broadcast(at[:3] + [orch.make_tensor_at(0, 4, "f4")], 0),
                         lambda: orch.alltoall(at, [orch.make_tensor_at(RANKS - 1 - rank, 4, "f4") for rank in range(RANKS)])):
                with self.assertRaises(GLib.Error) as raised:
                    what()
                self.assertTrue(raised.exception.matches(Pto.Error.quark(), Pto.Error.INVALID_ARGS), raised.exception.message)
                texts.append(raised.exception.message)

        self.job.worker.run(graph, x)
        one = "where one stays at a worker (make_tensor_at), there is one at each rank of one job (add_remote_job), and no other"
        self.assertEqual(texts, [f"allreduce: tensor 0 of 3: {one}", f"allreduce: tensor 3 of 4: {one}", f"allreduce: tensor 0 of 4: {one}",
                                 f"broadcast: tensor 3 of 4: {one}",
                                 "alltoall: tensors 3 to read and to write stay at different workers"])

    def test_what_is_no_job(self):
        host = Pto.Worker(level=4)
        for addresses, text in (([], "a job has no ranks: give an address for each"),
                                (["local:", "nowhere"], '"nowhere" is no address of a remote worker'),
                                (["local:", "tls://one:1"], "tls://one:1 wants to know who connects")):
            with self.assertRaises(GLib.Error) as raised:
                host.add_remote_job(addresses)
            self.assertIn(text, raised.exception.message)
        with self.assertRaises(GLib.Error) as raised:
            super(Pto.Worker, host).add_remote_job(["local:"] * 2, GLib.Variant("a{sv}", {"id": GLib.Variant("u", 3)}))
        self.assertIn("the option id is for one worker", raised.exception.message)
        options = GLib.Variant("a{sv}", {"certificates": GLib.Variant("s", "/nonexistent/nowhere")})
        with self.assertRaises(GLib.Error) as raised:
            super(Pto.Worker, host).add_remote_job(["tls://one:1"], options)
        self.assertIn("tls://one:1 is no rank of a job: mpirun begins nothing where pto-remote listens", raised.exception.message)
        for addresses, text in ((["local:", None], "addresses: None is not a text"), ([None, "local:"], "addresses: None is not a text"),
                                (["local:", 3], "addresses: 3 is not a text"), (None, "addresses: None is not a list of texts")):
            with self.assertRaisesRegex(TypeError, text):
                host.add_remote_job(addresses)
        for options, text in (({"launcher": ["ssh", None]}, "launcher: None is not a text"), ({"launcher": "ssh"}, "launcher: 'ssh' is not a list of texts"),
                              ({"roots": ["/tmp", None]}, "roots: None is not a path"), ({"roots": 3}, "roots: 3 is not a list of paths")):
            with self.assertRaisesRegex(TypeError, text):
                host.add_remote_job(["own://one"], **options)
        self.assertEqual(host.get_n_workers(), 0)
        with self.assertRaises(GLib.Error) as raised:
            Pto.Worker(level=3).add_remote_job(["local:"])
        self.assertIn("is below one of level 4 or more", raised.exception.message)
        host.close()

    # --- what ends in between ---

    def hold(self):
        """One process of MPI stands still, so that a collective does not come to its end; and one that waits for it."""
        self.job.reduce(self.ones)
        ranks = find("pto-mpi-rank")
        self.assertEqual(len(ranks), RANKS)
        os.kill(ranks[2], signal.SIGSTOP)
        return ranks[2], ranks[0], count_switches(ranks[0])

    ones = [np.ones(8, "i4")] * RANKS if np else []

    def interrupt(self, do, **options):
        """A collective during which do(process) is called; its error."""
        stopped, waits, before = self.hold()

        def later():
            until(lambda: count_switches(waits) > before + 50)
            do(stopped)

        thread = threading.Thread(target=later)
        thread.start()
        with self.assertRaises(GLib.Error) as raised:
            self.job.reduce(self.ones, **options)
        thread.join()
        return raised.exception

    def expect_all_is_well(self):
        for row in self.job.reduce(self.ones):
            self.assertEqual(row.tolist(), [RANKS] * 8)
        until(lambda: len(find("pto-mpi-rank")) == RANKS and len(find("mpirun")) == 1)

    def test_a_process_of_mpi_is_killed(self):
        workers = find("python3") + find("pto-remote")
        error = self.interrupt(lambda process: os.kill(process, signal.SIGKILL))
        self.assertTrue(error.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), error.message)
        self.assertIn("the MPI job has ended during the collective", error.message)
        self.expect_all_is_well()
        self.assertEqual(find("python3") + find("pto-remote"), workers)

    def test_mpirun_is_killed(self):
        error = self.interrupt(lambda process: os.kill(find("mpirun")[0], signal.SIGKILL))
        self.assertIn("the MPI job has ended during the collective", error.message)
        self.expect_all_is_well()

    def test_a_worker_is_killed(self):
        pids = Pto.Buffer.array(RANKS, "i8")

        def ask(orch, pids):
            for rank in range(RANKS):
                orch.submit_next_level(self.job.which, [pids[rank:rank + 1].write_existing()], worker=rank)

        self.job.worker.run(ask, pids)
        victim = int(pids[1])
        error = self.interrupt(lambda process: os.kill(victim, signal.SIGKILL))
        self.assertTrue(error.matches(Pto.Error.quark(), Pto.Error.WORKER_LOST), error.message)
        # Whichever is heard of first: its end, or that of the collective on another rank.
        self.assertRegex(error.message, "L4/0/L3/1|the MPI job has ended during the collective")
        self.expect_all_is_well()

    def test_a_run_is_cancelled(self):
        cancellable = Gio.Cancellable()
        error = self.interrupt(lambda process: cancellable.cancel(), cancellable=cancellable)
        self.assertTrue(error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED), error.message)
        self.expect_all_is_well()

    def test_one_ends_while_nothing_runs(self):
        """Told by nobody, found by the next."""
        for name in "pto-mpi-rank", "mpirun":
            self.job.reduce(self.ones)
            old = find("pto-mpi-rank") + find("mpirun")
            os.kill(find(name)[-1], signal.SIGKILL)
            until(lambda old=old: all(is_gone(pid) for pid in old))
            self.expect_all_is_well()

    def test_idle_is_idle(self):
        self.job.reduce(self.ones)
        ranks = find("pto-mpi-rank")
        out, other = Pto.Buffer.array(8, "i4"), Pto.Buffer.array(8, "i4")

        def graph(orch, out, other):  # of the workers alone
            for _ in range(50):
                orch.submit_next_level(self.job.copy, [out.read(), other.write_existing()], worker=0)

        def is_idle():
            before = [count_switches(pid) for pid in ranks]
            self.job.worker.run(graph, out, other)
            return [count_switches(pid) for pid in ranks] == before

        until(is_idle)  # the first time they may be on their way to sleep

    def test_nothing_is_left_behind(self):
        """By a program that closes its worker, by one that is interrupted in a collective, and by one that is killed in it."""
        for how in "close", "interrupt", "kill":
            with self.subTest(how=how), tempfile.TemporaryDirectory() as directory, subprocess.Popen([sys.executable, os.path.abspath(__file__), "--program", how],
                                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                         start_new_session=True, env={**os.environ, "TMPDIR": directory}) as program:
                self.assertEqual(program.stdout.readline(), b"ready\n")
                ranks = find("pto-mpi-rank", program.pid)
                self.assertEqual(len(ranks), RANKS)
                for pid in ranks:
                    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
                        shared = {line.split(None, 5)[5].strip() for line in maps if "vader_segment." in line}
                    # What they share with each other has no name, so nobody has to remove it.
                    self.assertEqual((len(shared), all(path.endswith(" (deleted)") for path in shared)), (RANKS, True), shared)
                family = descendants(program.pid) - {program.pid}
                if how != "close":
                    os.kill(ranks[1], signal.SIGSTOP)
                    before = count_switches(ranks[0])
                program.stdin.write(b"go on\n")
                program.stdin.flush()
                if how != "close":
                    until(lambda first=ranks[0], before=before: count_switches(first) > before + 50)
                    os.killpg(program.pid, signal.SIGINT if how == "interrupt" else signal.SIGKILL)
                program.communicate(timeout=60)
                self.assertEqual(program.returncode, {"close": 0, "interrupt": -signal.SIGINT, "kill": -signal.SIGKILL}[how])
                until(lambda family=family: all(is_gone(pid) for pid in family))
                self.assertEqual(glob.glob(directory + "/**", recursive=True)[1:], [])

    def test_bfloat_and_what_is_no_number(self):
        """What NumPy and MPI do not have."""
        parts = [np.array([rank + 1, 1.0078125 * (rank + 1), 3e38, np.nan, -0.0, 256], "f4") for rank in range(RANKS)]
        bits = [(part.view("u4") >> 16).astype("u2") for part in parts]
        buffers = [Pto.Buffer.new(12) for _ in range(2 * RANKS)]
        tensors = [Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.BFLOAT16, [6]) for buffer in buffers]
        views = [np.asarray(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.UINT16, [6])) for buffer in buffers]
        for view, part in zip(views, bits):
            view[:] = part

        def graph(orch):
            at = self.job.place(orch, tensors[:RANKS])
            orch.allreduce(at)
            self.job.take(orch, at, tensors[RANKS:])

        self.job.worker.run(graph)
        wanted = tree([float_of_bfloat(part) for part in bits], lambda a, b: float_of_bfloat(bits_of_bfloat(a + b)))
        self.assertEqual(wanted.tolist()[:2], [10, 10.125])
        for row in views[RANKS:]:
            np.testing.assert_array_equal(float_of_bfloat(row), wanted)
            self.assertTrue(np.signbit(float_of_bfloat(row)[4]))
        nan = [np.array([np.nan, 1, 2], "f8"), np.array([0, np.nan, 3], "f8"), np.ones(3, "f8"), np.ones(3, "f8")]
        for operation, last in ("min", 1), ("max", 3):
            for row in self.job.reduce(nan, operation):
                np.testing.assert_array_equal(row, [np.nan, np.nan, last])

    def launch(self, addresses, **options):
        """A sum by workers that are launched so, and mpirun is told their hosts."""
        host = Pto.Worker(level=4)
        host.add_remote_job(addresses, roots=root, python=sys.executable, program=os.environ["PTO_REMOTE"], **options)
        return self.add_up(host)

    def add_up(self, host):
        """By the first two workers, which are a job."""
        fill, copy = host.register(remote_steps.fill), host.register(remote_steps.copy)
        out = Pto.Buffer.array(2, "i4")

        def graph(orch, out):
            tensors = [orch.make_tensor_at(rank, 4, "i4") for rank in range(2)]
            for rank in range(2):
                orch.submit_next_level(fill, [tensors[rank].write(), rank + 1], worker=rank)
            orch.allreduce(tensors)
            for rank in range(2):
                orch.submit_next_level(copy, [tensors[rank][3:].read(), out[rank:rank + 1].write_existing()], worker=rank)

        host.run(graph, out)
        host.close()
        return out.tolist()

    def test_a_cluster_file(self):
        """Its job is one, beside workers that are none; and of two that are not together nothing is added up."""
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "c.ini")
            for text, wrong in ("[job fit]\nworkers=2\n[worker alone]\n", None), ("[job fit]\n[job other]\n", "one at each rank of one job"):
                with open(file, "w", encoding="ascii") as out:
                    out.write(f"[default]\nroots={root}\npython={sys.executable}\n" + text)
                host = Pto.Worker(level=4)
                host.add_cluster(file)
                if wrong is None:
                    self.assertEqual(self.add_up(host), [3, 3])
                    continue
                with self.assertRaisesRegex(GLib.Error, wrong):
                    self.add_up(host)
                host.close()

    def test_launched_by_others(self):
        self.assertEqual(self.launch(["local:", "mpirun://localhost"]), [3, 3])
        self.assertEqual(self.launch(["any://me@localhost"] * 2, launcher=["env", "WHERE=%h"]), [3, 3])

    def test_a_program_that_is_a_rank(self):
        self.assertEqual(subprocess.run(["mpirun", "-n", "1", sys.executable, os.path.abspath(__file__), "--program", "close"],
                                        input=b"go on\n", check=False, stdout=subprocess.DEVNULL, timeout=120).returncode, 0)


@unittest.skipIf(missing, missing)
class WithoutMpi(unittest.TestCase):
    """What is said where it can not be begun."""
    def get_refusal(self):
        job = Job()
        try:
            with self.assertRaises(GLib.Error) as raised:
                job.reduce([np.ones(8, "i4")] * RANKS)
        finally:
            job.worker.close()
        return raised.exception.message

    def test_no_mpirun(self):
        before = os.environ["PATH"]
        with tempfile.TemporaryDirectory() as directory:
            for program in "python3", os.path.basename(sys.executable):
                with contextlib.suppress(FileExistsError):
                    os.symlink(sys.executable, os.path.join(directory, program))
            os.environ["PATH"] = directory
            try:
                self.assertIn("collectives of a job need MPI, and mpirun can not be launched: there is no such program (install Open MPI)",
                              self.get_refusal())
            finally:
                os.environ["PATH"] = before

    def test_an_mpirun_that_fails(self):
        before = os.environ["PATH"]
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "mpirun"), "w", encoding="ascii") as file:
                file.write("#!/bin/sh\necho -----\necho 'no slots, today' >&2\nexit 3\n")
            os.chmod(os.path.join(directory, "mpirun"), 0o755)
            os.environ["PATH"] = directory + ":" + before
            try:
                self.assertIn("mpirun has not begun the ranks of the job: no slots, today", self.get_refusal())
            finally:
                os.environ["PATH"] = before


def program(how):
    """What is begun, interrupted and killed."""
    job = Job()
    ones = [np.ones(8, "i4")] * RANKS
    job.reduce(ones)
    print("ready", flush=True)
    sys.stdin.readline()
    if how != "close":
        job.reduce(ones)
    job.worker.close()


if sys.argv[1:2] == ["--program"]:
    program(sys.argv[2])
    sys.exit()
if missing is None:
    unittest.addModuleCleanup(shutil.rmtree, scratch, ignore_errors=True)
else:
    shutil.rmtree(scratch)
tap.main()
