# test_remote_graphs.py: do captured graphs work on memory of remote workers, and tell when it is gone?
# SPDX-License-Identifier: LGPL-2.1-or-later
import gc
import os
import random
import tempfile
import threading
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import np, remote_steps, root  # noqa: E402

I64 = Pto.Dtype.INT64
N = 24  # elements of a piece of memory


def over(buffer, n=N, offset=0):
    return Pto.Tensor.new_for_buffer(buffer, 8 * offset, I64, [n])


def mix(args):
    remote_steps.mix(None, args, None)


@unittest.skipIf(np is None, "no numpy")
class RemoteGraphs(unittest.TestCase):
    def setUp(self):
        self.host = Pto.Worker(level=4, sub_workers=1, restart=Pto.Restart.ON_FAILURE)
        self.remotes = [self.host.add_remote_worker("local:", roots=root) for _ in range(2)]
        self.add, self.copy, self.fill, self.far, self.stop = (
            self.host.register(f) for f in (remote_steps.add_in_place, remote_steps.copy, remote_steps.fill, remote_steps.mix, remote_steps.stop))
        self.here = self.host.register(mix)

    def tearDown(self):
        self.host.close()

    def take(self, worker=0, values=range(N)):
        buffer = self.remotes[worker].alloc_buffer(8 * N)
        self.write(buffer, values)
        return buffer

    def write(self, buffer, values):
        buffer.write(0, GLib.Bytes.new(np.array(list(values), "i8").tobytes()))

    def read(self, buffer):
        return np.frombuffer(buffer.read(0, buffer.get_size()).get_data(), "i8").tolist()

    def lose(self, worker=0):
        """Its next life has begun when this returns."""
        token = Pto.Buffer.array(1, "i8")
        with self.assertRaises(Pto.WorkerLostError):
            self.host.run(lambda orch: orch.submit_next_level(self.stop, [Pto.Tensor.of(token).write_existing()], worker=worker) and None)
        self.host.run(lambda orch: orch.submit_next_level(self.fill, [Pto.Tensor.of(token).write(), 1], worker=worker) and None)

    def refused(self, call, *words, error=Pto.InvalidArgsError):
        with self.assertRaises(error) as caught:
            call()
        for word in words:
            self.assertIn(word, caught.exception.message)

    def count(self):
        run = self.host.dup_statistics()
        return run.get_bytes_sent(), run.get_bytes_received()

    def step(self, orch, x, value=1, worker=0):
        orch.submit_next_level(self.add, [x.update(), value], worker=worker)

    def test_dumps(self):
        """Memory of a remote worker cannot be dumped. The submit says so, or the end of a launch. A filter leaves it out."""
        x, here = self.take(), Pto.Buffer.array(N, "i8")

        def by_address(orch):
            self.step(orch, over(x))

        def staying(orch):
            t = orch.make_tensor_at(0, N, "i8")
            orch.submit_next_level(self.fill, [t.write(), 3], worker=0)

        def both(orch):
            orch.submit_next_level(self.copy, [over(x).read(), Pto.Tensor.of(here).write_existing()], worker=0)

        with tempfile.TemporaryDirectory() as directory:
            def config(dump_filter=None):
                return Pto.CallConfig(enable_dump_tensor=1, output_prefix=os.path.join(directory, ""), dump_filter=dump_filter)

            for function in by_address, staying, both:
                self.refused(lambda function=function: self.host.run(function, config=config()),
                             'argument 0 stays in the memory of a remote worker, which a dump of tensors (enable_dump_tensor) cannot read')
            graph = self.host.capture(by_address)
            self.refused(lambda: self.host.run(graph, config=config()),
                         "tensor dump: task 0 of ring 0 (add_in_place): argument 0 is in the memory of a remote worker")
            self.assertEqual([name for name in os.listdir(directory) if name.endswith(".npy")], [])
            self.host.run(both, config=config("copy.1"))
            [name] = [name for name in os.listdir(directory) if name.endswith(".npy")]
            self.assertTrue(name.endswith("dump-0-0-copy-arg1-after.npy"), name)
            self.assertEqual(np.load(os.path.join(directory, name)).tolist(), self.read(x))

    def test_memory_that_the_graph_keeps(self):
        """It is no argument; each launch goes on with what the one before has left there, and so does a run between them."""
        x = self.take()

        def function(orch):
            self.step(orch, over(x), 1)
            self.step(orch, over(x, 4, 2), 10)

        graph = self.host.capture(function)
        self.assertEqual((graph.get_n_arguments(), graph.get_n_tasks(), graph.get_n_edges()), (0, 2, 1))
        self.assertEqual(graph.to_string(), "2 tasks of 1 callable, 0 arguments")
        self.assertEqual(self.read(x), list(range(N)))  # nothing has run
        expected = np.arange(N)
        for what in graph, graph, function, graph:
            self.host.run(what)
            expected += 1
            expected[2:6] += 10
            self.assertEqual(self.read(x), expected.tolist())
            self.assertEqual(self.count(), (0, 0))
        self.refused(lambda: self.host.run(graph, over(x)), "the graph takes 0 arguments, but 1 is given")

    def test_memory_that_launches_are_given(self):
        """The same, another piece, a part of one, or one that is named by its address."""
        x, y, number = self.take(), self.take(), self.remotes[0].malloc(8 * N)
        graph = self.host.capture(lambda orch, x: self.step(orch, x, 5) or self.step(orch, x[1:3], 100), over(x, 6))
        self.assertEqual((graph.get_n_arguments(), graph.dup_argument_name(0)), (1, "x"))
        wanted = {}
        for buffer in x, y:
            wanted[buffer] = np.arange(N)
        self.remotes[0].copy_to(number, GLib.Bytes.new(np.arange(N).tobytes()))
        at = np.arange(N)
        for buffer, offset in ((x, 0), (y, 0), (x, 7), (x, 9), (y, N - 6), (None, 0), (None, 3)):
            given = over(buffer, 6, offset) if buffer else Pto.Tensor.new_external(number + 8 * offset, I64, [6])
            self.host.run(graph, given)
            self.assertEqual(self.count(), (0, 0))
            expected = wanted[buffer] if buffer else at
            expected[offset:offset + 6] += 5
            expected[offset + 1:offset + 3] += 100
        self.assertEqual([self.read(buffer) for buffer in wanted], [array.tolist() for array in wanted.values()])
        self.assertEqual(np.frombuffer(self.remotes[0].copy_from(number, 8 * N).get_data(), "i8").tolist(), at.tolist())

    def test_memory_there_and_here(self):
        """One graph has arguments of both kinds, memory that it keeps, tensors that stay, and a task in a function here."""
        there, kept, other = self.take(), self.take(values=[7] * N), self.take(1)
        here = Pto.Buffer.array(N, "i8")

        def function(orch, there, here):
            t = orch.make_tensor_at(0, N, "i8")
            orch.submit_next_level(self.copy, [there.read(), t.write()], worker=0)
            orch.submit_next_level(self.far, [t.read(), over(kept).read(), there.update(), 2], worker=0)
            orch.submit_next_level(self.copy, [there.read(), here.write_existing()], worker=0)
            orch.submit_sub(self.here, [here[:2].read(), here[2:4].read(), here[4:].update(), 3])
            orch.submit_next_level(self.add, [over(other).update(), 1], worker=1)
            orch.submit_next_level(self.copy, [here.read(), over(kept).write_existing()], worker=0)

        def plain(there, here, kept):
            remote_steps.mix(None, (there.copy(), kept, there, 2), None)
            here[:] = there
            mix((here[:2], here[2:4], here[4:], 3))
            kept[:] = here

        graph = self.host.capture(function, over(there), here)
        arrays = np.arange(N), np.zeros(N, "i8"), np.full(N, 7)
        for i in range(4):
            self.host.run((graph, function)[i == 2], over(there), here)
            plain(*arrays)
            self.assertEqual([self.read(there), here.tolist(), self.read(kept)], [array.tolist() for array in arrays])
        self.assertEqual(self.read(other), [i + 4 for i in range(N)])

    def test_captured_here_and_launched_there(self):
        """Each launch asks which memory is a worker's. A task that only writes finds zeros, and NO_DEP goes neither way."""
        x, y, here = self.take(), self.take(1), Pto.Buffer.array(N, "i8")

        def function(orch, x):
            orch.submit_next_level(self.fill, [x[4:8].write(), 9], worker=0)
            orch.submit_next_level(self.add, [x[:6].update(), 1], worker=0)

        expected = np.arange(N)
        for first, second in (here, over(x)), (over(x), here):
            graph = self.host.capture(function, first)
            here[:] = range(N)
            self.write(x, range(N))
            for given, moved in (second, first is not here), (first, first is here), (second, first is not here):
                self.host.run(graph, given)
                self.assertEqual(self.count() == (0, 0), not moved)
            for _ in range(2):
                expected[4:8] = 9
                expected[:6] += 1
            once = np.arange(N)
            once[4:8] = 9
            once[:6] += 1
            twice, once = expected.tolist(), once.tolist()
            self.assertEqual((here.tolist(), self.read(x)), (twice, once) if second is here else (once, twice))
            expected = np.arange(N)
            self.refused(lambda: self.host.run(graph, over(y)), 'task 0 of the graph ("fill"): argument 0 ("x") of the graph is memory of L4/0/L3/1, '
                         "which no other worker sees", "capture a graph whose task names worker 1")
        self.write(x, range(N))
        for first in here, over(x):
            unsaid = self.host.capture(lambda orch, x: orch.submit_next_level(self.add, [x.no_dep(), 1], worker=0), first)
            self.host.run(unsaid, over(x))
            self.refused(lambda: self.host.run(unsaid, here), "its tag (NO_DEP) does not say what is to be copied", error=GLib.Error)
        self.assertEqual(self.read(x), [i + 2 for i in range(N)])

    def test_it_is_for_its_worker(self):
        """By its argument, or the task that has it, is told what goes elsewhere."""
        x, y, here = self.take(), self.take(1), Pto.Buffer.array(N, "i8")
        words = "is memory of L4/0/L3/0, which no other worker sees. Give memory of the worker that the task names"
        anywhere = self.host.capture(lambda orch, x: orch.submit_next_level(self.add, [x.update(), 1]), here)
        self.refused(lambda: self.host.run(anywhere, over(x)), 'task 0 of the graph ("add_in_place"): argument 0 ("x") of the graph ' + words)
        sub = self.host.capture(lambda orch, a, b: orch.submit_sub(self.here, [a[:2].read(), a[2:4].read(), b.update(), 1]), here, Pto.Buffer.array(N, "i8"))
        self.refused(lambda: self.host.run(sub, here, over(x)), 'task 0 of the graph ("mix"): argument 1 ("b") of the graph ' + words)
        group = self.host.capture(lambda orch, *x: orch.submit_next_level_group(self.add, [[t.update(), 3] for t in x], workers=[0, 1]),
                                  over(x), over(y))
        self.refused(lambda: self.host.run(group, over(x), over(self.take())), "argument 1 of the graph " + words)
        for _ in range(3):
            self.host.run(group, over(x), over(y))
        self.assertEqual([self.read(x), self.read(y)], [[i + 9 for i in range(N)]] * 2)
        for call in (lambda orch, x: orch.submit_next_level(self.add, [x.update(), 1]), lambda orch, x: self.step(orch, x, 1, 1)):
            for given in ((), (over(x),)):
                self.refused(lambda: self.host.capture(lambda orch, *given: call(orch, over(x)), *given),
                             'task of "add_in_place": argument 0 is memory of L4/0/L3/0, which no other worker sees: name worker 0')

    def test_what_was_given_back(self):
        """Memory that has a number only; in its place there may be another one."""
        number = self.remotes[0].malloc(8 * N)

        def tensor():
            return Pto.Tensor.new_external(number, I64, [N])

        kept, given = self.host.capture(lambda orch: self.step(orch, tensor())), self.host.capture(self.step, tensor())
        self.host.run(kept)
        self.host.run(given, tensor())
        self.assertEqual(np.frombuffer(self.remotes[0].copy_from(number, 8 * N).get_data(), "i8").tolist(), [2] * N)
        self.remotes[0].free(number)
        words = f"0x{number:x}", "no memory of a remote worker below L4/0", "it was given back, or it is that of a worker elsewhere"
        self.refused(lambda: self.host.run(kept), 'task 0 of the graph ("add_in_place"): it was captured with', "Capture anew", *words)
        self.refused(lambda: self.host.run(given, tensor()), 'argument 0 ("x") of the graph is', *words)

    def test_the_graph_keeps_a_buffer(self):
        """As long as it is there itself; of an argument it keeps nothing."""
        self.remotes[0].set_parameter("arena", 8 << 20)
        size, out = 5 << 20, Pto.Buffer.array(4, "i8")
        x = self.remotes[0].alloc_buffer(size)

        def function(orch, out):
            orch.submit_next_level(self.add, [over(x, 4).update(), 3], worker=0)
            orch.submit_next_level(self.copy, [over(x, 4).read(), out.write_existing()], worker=0)

        def full():
            self.refused(lambda: self.remotes[0].alloc_buffer(size), "no room", error=Pto.NoMemoryError)

        graph = self.host.capture(function, out)
        del x, function
        gc.collect()
        for i in range(3):
            full()
            self.host.run(graph, out)
            self.assertEqual(out.tolist(), [3 * (i + 1)] * 4)
        del graph
        gc.collect()
        x = self.remotes[0].alloc_buffer(size)
        graph = self.host.capture(lambda orch, x: self.step(orch, x), over(x, 4))
        self.host.run(graph, over(x, 4))
        full()
        del x
        gc.collect()
        x = self.remotes[0].alloc_buffer(size)
        self.host.run(graph, over(x, 4))
        self.assertEqual(np.frombuffer(x.read(0, 40).get_data(), "i8").tolist(), [1] * 4 + [0])

    def test_what_was_lost(self):
        """Memory of an earlier life of its worker is told of, and that of the next one is good for the graph that is given it."""
        x, y = self.take(), self.take(1)
        kept = self.host.capture(lambda orch: self.step(orch, over(y), 1, 1) or self.step(orch, over(x)))
        given = self.host.capture(lambda orch, y, x: self.step(orch, y, 1, 1) or self.step(orch, x), over(y), over(x))
        self.lose(0)
        words = "is of life 1 of L4/0/L3/0, which was lost, and all of its memory with it; this is its life 2"
        self.refused(lambda: self.host.run(kept), 'task 1 of the graph ("add_in_place"): it was captured with memory that is lost, so capture anew',
                     words, error=Pto.WorkerLostError)
        self.refused(lambda: self.host.run(given, over(y), over(x)), 'argument 1 ("x") of the graph: memory', words, error=Pto.WorkerLostError)
        self.assertEqual(self.read(y), list(range(N)))  # nothing of either was run
        x = self.take()
        self.host.run(given, over(y), over(x))
        self.assertEqual((self.read(x), self.read(y)), ([i + 1 for i in range(N)],) * 2)

    def test_it_dies_in_the_midst(self):
        """Tasks of the graph that come after that find nothing there."""
        x, y, token = self.take(), self.take(1), Pto.Buffer.array(1, "i8")

        def function(orch, token):
            self.step(orch, over(y), 1, 1)
            orch.submit_next_level(self.stop, [token.write_existing()], worker=0)
            self.step(orch, over(x))

        graph = self.host.capture(function, token)
        self.refused(lambda: self.host.run(graph, token), "L4/0/L3/0", error=Pto.WorkerLostError)
        self.assertEqual(self.read(y), [i + 1 for i in range(N)])
        self.refused(lambda: self.read(x), "life 1 of L4/0/L3/0", error=Pto.WorkerLostError)

    def test_another_tree(self):
        """Which has no such memory; a graph that is given its own runs there."""
        x = self.take()
        self.callable = Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, "remote_steps:add_in_place")
        self.add = self.host.register(self.callable)
        kept, given = self.host.capture(lambda orch: self.step(orch, over(x))), self.host.capture(self.step, over(x))
        with Pto.Worker(level=4) as other:
            remote = other.add_remote_worker("local:", roots=root)
            add = other.register(self.callable)
            y = remote.alloc_buffer(8 * N)
            elsewhere = "no memory of a remote worker below L4/0", "a worker elsewhere"
            self.refused(lambda: other.run(kept), 'task 0 of the graph ("add_in_place"): it was captured with', *elsewhere)
            self.refused(lambda: other.run(given, over(x)), 'argument 0 ("x") of the graph is', *elsewhere)
            self.refused(lambda: self.host.run(given, over(y)), 'argument 0 ("x") of the graph is', *elsewhere)
            for _ in range(2):
                other.run(given, over(y))
            self.assertEqual(self.read(y), [2] * N)
            other.unregister(add)
            del y, remote, add

    def test_what_overlaps(self):
        """Arguments lie as they did, to each other and to what the graph keeps and a task writes."""
        x = self.take()

        def function(orch, a):
            orch.submit_next_level(self.copy, [a.read(), over(x, 4, 8).write_existing()], worker=0)
            orch.submit_next_level(self.copy, [over(x, 4, 16).read(), a.write_existing()], worker=0)

        graph = self.host.capture(function, over(x, 4))
        expected = np.arange(N)
        for at in 0, 4, 12, 20:
            self.host.run(graph, over(x, 4, at))
            expected[8:12] = expected[at:at + 4]
            expected[at:at + 4] = expected[16:20]
        self.assertEqual(self.read(x), expected.tolist())
        for at, task in (5, 0), (8, 0), (11, 0), (13, 1), (19, 1):
            self.refused(lambda: self.host.run(graph, over(x, 4, at)), f'argument 0 ("a") of the graph overlaps memory that task {task} has '
                         "from its capture, and lay elsewhere then")
        self.assertEqual(self.read(x), expected.tolist())
        # It did when it was captured.
        graph = self.host.capture(function, over(x, 4, 10))
        for _ in range(2):
            self.host.run(graph, over(x, 4, 10))
            plain = expected.copy()
            plain[8:12] = expected[10:14]
            plain[10:14] = plain[16:20]
            expected = plain
        self.assertEqual(self.read(x), expected.tolist())

    def view(self, dice):
        n = dice.choice([1, 1, 2, 5, N // 2])
        begin = dice.randrange(N - n + 1)
        return slice(begin, begin + n)

    def steps(self, dice, n):
        """Each step has a worker, the pieces and views that are read and written over, and a number."""
        found = []
        while len(found) < n:
            worker = dice.randrange(3)  # 2: a function here
            pieces = [dice.randrange(4) if worker == 2 else dice.choice([4 * worker, 4 * worker + 1, 4 * worker + 2, dice.randrange(8, 12)])
                      for _ in range(3)]
            if worker == 2:
                pieces = [8 + piece for piece in pieces]
            a, b, out = ((piece, self.view(dice)) for piece in pieces)
            if all(p != out[0] or v.stop <= out[1].start or out[1].stop <= v.start for p, v in (a, b)):
                found.append((worker, a, b, out, dice.randrange(-5, 5)))
        return found

    def test_random(self):
        """Random graphs on overlapping views of memory there and here, given and kept, against the same in numpy, between runs of
        the functions and of another graph."""
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}")
        dice = random.Random(seed)
        # 0 to 2 of worker 0 and 4 to 6 of worker 1, of which the last is kept, and 8 to 11 here.
        there = {piece: self.take(piece // 4) for piece in (0, 1, 2, 4, 5, 6)}
        spare = {piece: self.take(piece // 4) for piece in (0, 1, 4, 5)}
        here = {piece: Pto.Buffer.array(N, "i8") for piece in range(8, 12)}
        given = [piece for piece in (*there, *here) if piece % 4 != 2 or piece >= 8]

        def function(steps):
            def submit(orch, *args):
                tensors = dict(zip(given, args))
                tensors.update({piece: over(there[piece]) for piece in (2, 6)})
                for worker, a, b, out, scale in steps:
                    (a, b, out) = (tensors[piece][view] for piece, view in (a, b, out))
                    if worker == 2:
                        orch.submit_sub(self.here, [a.read(), b.read(), out.update(), scale])
                    elif scale == 0:
                        orch.submit_next_level(self.fill, [out.write(), 9], worker=worker)
                    else:
                        orch.submit_next_level(self.far, [a.read(), b.read(), out.update(), scale], worker=worker)

            return submit

        def plain(steps, arrays):
            for worker, a, b, out, scale in steps:
                a, b, out = (arrays[piece][view] for piece, view in (a, b, out))
                if worker != 2 and scale == 0:
                    out[:] = 9
                else:
                    remote_steps.mix(None, (a, b, out, scale), None)

        for _ in range(12):
            programs = [self.steps(dice, 30) for _ in range(2)]
            functions = [function(steps) for steps in programs]
            buffers = [{**there, **here}, {**there, **here, **spare}]
            graphs = [self.host.capture(f, *[self.tensor_of(buffers[0][piece]) for piece in given]) for f in functions]
            memory = {}
            for buffer in [*there.values(), *spare.values(), *here.values()]:
                values = [dice.randrange(100) for _ in range(N)]
                memory[id(buffer)] = np.array(values)
                if isinstance(buffer, np.ndarray):
                    buffer[:] = values
                else:
                    self.write(buffer, values)
            for _ in range(5):
                which, of = dice.randrange(2), dice.choice(buffers)
                what = dice.choice((graphs, graphs, functions))[which]
                self.host.run(what, *[self.tensor_of(of[piece]) for piece in given])
                plain(programs[which], {piece: memory[id(buffer)] for piece, buffer in of.items()})
            for buffer in [*there.values(), *spare.values(), *here.values()]:
                found = buffer.tolist() if isinstance(buffer, np.ndarray) else self.read(buffer)
                self.assertEqual(found, memory[id(buffer)].tolist())

    def test_random_places(self):
        """Arguments lie anywhere in one memory, over each other and over what the graph keeps of it, at the capture and at each
        launch: a launch does what the function does, or is refused and does nothing."""
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}")
        dice = random.Random(seed)
        n_all, done, refused = 4 * N, 0, 0
        x = self.remotes[0].alloc_buffer(8 * n_all)

        def place():
            """Two views for arguments, one of 6 and one of 3 elements; what the graph keeps is among the first N."""
            return [(n, dice.randrange(dice.choice((N, n_all)) - n + 1)) for n in (6, 3)]

        def function(steps):
            def submit(orch, *args):
                for *views, scale in steps:
                    a, b, out = (over(x, n, at) if of is None else args[of][at:at + n] for of, n, at in views)
                    orch.submit_next_level(self.far, [a.read(), b.read(), out.update(), scale], worker=0)

            return submit

        def plain(steps, array, places):
            for *views, scale in steps:
                begins = [at if of is None else places[of][1] + at for of, n, at in views]
                remote_steps.mix(None, (*[array[begin:begin + n] for begin, (_, n, _) in zip(begins, views)], scale), None)

        for _ in range(12):
            first, steps = place(), []
            while len(steps) < 8:
                views = []
                while len(views) < 3:
                    of, n = dice.choice((None, 0, 1)), dice.choice((1, 2, 3))
                    at = dice.randrange((N if of is None else (6, 3)[of]) - n + 1)
                    # What lies in an argument when it is captured is a part of that.
                    if of is not None or not any(begin <= at and at + n <= begin + m for m, begin in first):
                        views.append((of, n, at))
                steps.append((*views, dice.randrange(-5, 5)))
            graph = self.host.capture(function(steps), *[over(x, *one) for one in first])
            expected = np.array([dice.randrange(100) for _ in range(n_all)])
            self.write(x, expected)
            for places in first, *[dice.choice((place(), [first[0], place()[1]])) for _ in range(6)], first:
                args = [over(x, *one) for one in places]
                try:
                    self.host.run(graph, *args)
                    done += places is not first
                except Pto.InvalidArgsError as error:
                    self.assertRegex(error.message, "of the graph overlap")
                    refused += 1
                    self.assertIsNot(places, first)
                    self.assertEqual(self.read(x), expected.tolist())
                    self.host.run(function(steps), *args)
                plain(steps, expected, places)
                self.assertEqual(self.read(x), expected.tolist())
        print(f"# {done} elsewhere, {refused} refused")
        self.assertGreater(min(done, refused), 0)

    def tensor_of(self, buffer):
        return Pto.Tensor.of(buffer) if isinstance(buffer, np.ndarray) else over(buffer)

    def test_at_once(self):
        """Launches from several threads and awaits come one after the other, whichever; two trees have memory of their own."""
        x = self.take(values=[0] * N)
        kept, given = self.host.capture(lambda orch: self.step(orch, over(x), 1)), self.host.capture(self.step, over(x))
        errors = []

        def launch():
            try:
                for _ in range(10):
                    self.host.run(kept)
                    self.host.run(given, over(x))
            except GLib.Error as error:
                errors.append(error.message)

        threads = [threading.Thread(target=launch) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((errors, self.read(x)), ([], [60] * N))

    def test_with_a_record(self):
        """A launch that is recorded has the same tasks and dependencies as the run, whatever it was captured with."""
        self.host.set_parameter("trace", "1")
        x, y = self.take(), self.take()

        def function(orch, x):
            self.step(orch, x[:4])
            orch.submit_next_level(self.copy, [x[2:4].read(), over(y, 2).write_existing()], worker=0)

        found = []
        for what in function, self.host.capture(function, over(x)), self.host.capture(function, Pto.Buffer.array(N, "i8")):
            self.host.run(what, over(x))
            trace = self.host.trace
            found.append(([task.name for task in trace.list_tasks()],
                          [(edge.producer, edge.consumer, int(edge.hazards)) for edge in trace.list_edges()]))
        self.assertEqual(found, [(["add_in_place", "copy"], [(0, 1, int(Pto.Hazards.RAW))])] * 3)
        self.assertEqual(self.read(y)[:2], [5, 6])

    def test_a_level_above(self):
        """A graph of a worker above has none of it: what its tasks submit below uses memory that the worker there has."""
        memory = {}
        with Pto.Worker(level=5) as above:
            host = Pto.Worker(level=4)
            host.add_remote_worker("local:", roots=root)
            above.add_worker(host)
            add, copy = host.register(remote_steps.add_in_place), host.register(remote_steps.copy)

            def inner(orch, args, config):
                if not memory:
                    memory[0] = orch.worker.get_child(0).alloc_buffer(8 * N)
                orch.submit_next_level(add, [over(memory[0]).update(), 1], worker=0)
                orch.submit_next_level(copy, [over(memory[0]).read(), args.get_tensor(0).write_existing()], worker=0)

            handle, out = above.register(inner), Pto.Buffer.array(N, "i8")
            graph = above.capture(lambda orch, out: orch.submit_next_level(handle, [out.write_existing()]), out)
            for i in range(3):
                above.run(graph, out)
                self.assertEqual(out.tolist(), [i + 1] * N)

    def test_directly_below_another_level(self):
        with Pto.Worker(level=5) as above:
            remote = above.add_remote_worker("local:", roots=root)
            self.add = above.register(remote_steps.add_in_place)
            x, y = remote.alloc_buffer(8 * N), remote.alloc_buffer(8 * N)
            graph = above.capture(lambda orch, a: self.step(orch, a) or self.step(orch, over(y), 10), over(x))
            for given in x, y, x:
                if given is x:
                    above.run(graph, over(given))
                else:
                    self.refused(lambda: above.run(graph, over(given)), "overlaps memory that task 1 has from its capture")
            self.assertEqual([self.read(x), self.read(y)], [[2] * N, [20] * N])
            del x, y, given, remote, graph


tap.main()
