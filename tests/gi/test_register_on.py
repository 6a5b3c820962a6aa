# test_register_on.py: does a callable go to those workers that it was registered on, whatever they are called, and to nobody else?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402
from remote_helper import here, np, remote_steps, root, until  # noqa: E402

SECONDS = 60


def pid(args):
    args[0][0] = os.getpid()


def die(args):
    os.kill(os.getpid(), signal.SIGKILL)


def hold(args):
    """gate: until it is open; says that it is there."""
    args[0][1] = os.getpid()
    while args[0][0] == 0:
        time.sleep(0.001)


def in_background(call):
    """What it gives, or the error, when it is asked for."""
    found = []

    def work():
        try:
            found.append(call())
        except GLib.Error as error:
            found.append(error)
    thread = threading.Thread(target=work)
    thread.start()

    def join():
        thread.join(SECONDS)
        return found[0]
    return join


@unittest.skipIf(np is None, "no numpy")
class RegisterOn(unittest.TestCase):
    def close_later(self, host):
        self.addCleanup(host.close)
        return host

    def subs(self, n=3, **choices):
        return self.close_later(Pto.Worker(level=3, sub_workers=n, **choices))

    def places(self, host, handle, *workers, submit="submit_sub"):
        """The processes that tasks ran in, one after the other."""
        found = Pto.Buffer.array(len(workers), "i8")

        def graph(orch):
            for i, worker in enumerate(workers):
                getattr(orch, submit)(handle, [Pto.Tensor.of(found).view([1], [i]).write_existing()], worker=worker)
        host.run(graph)
        return [int(value) for value in found]

    def refuses(self, host, what, text, **choices):
        with self.assertRaisesRegex(GLib.Error, text) as caught:
            self.places(host, what, 0 if "worker" not in choices else choices["worker"], submit=choices.get("submit", "submit_sub"))
        self.assertTrue(caught.exception.matches(Pto.Error.quark(), Pto.Error.NOT_FOUND))

    def test_some(self):
        """Named before the start: tasks go there, and one for another is refused at its submit, by name."""
        host = self.subs()
        everywhere, some = host.register(pid), host.register(lambda args: pid(args), workers=[1, 2])
        all_places = self.places(host, everywhere, 0, 1, 2)
        self.assertEqual(len(set(all_places)), 3)
        self.assertEqual(self.places(host, some, 1, 2, -1, -1, -1, -1), all_places[1:] * 3)  # in turns: the same each time
        self.refuses(host, some, '"<lambda>" is not registered on worker 0 of L3/0, but on 1, 2: register it there, too')
        self.assertEqual(self.places(host, everywhere, 0, 1, 2), all_places)

    def test_balance(self):
        """Who was named counts: each task that names nobody is for the one that has the fewest."""
        host = self.subs()
        some, everywhere = host.register(pid, workers=[0, 2]), host.register(lambda args: pid(args))
        zero, _, two = self.places(host, everywhere, 0, 1, 2)
        self.assertEqual(self.places(host, some, 0, 0, -1, -1, -1), [zero, zero, two, two, zero])

    def test_group(self):
        host = self.subs()
        some, everywhere = host.register(pid, workers=[0, 2]), host.register(lambda args: pid(args))
        zero, one, two = self.places(host, everywhere, 0, 1, 2)
        found = Pto.Buffer.array(3, "i8")

        def group(n, workers=None):
            host.run(lambda orch: orch.submit_sub_group(some, [[Pto.Tensor.of(found).view([1], [i]).write_existing()] for i in range(n)], workers=workers))
            return [int(value) for value in found[:n]]
        self.assertEqual(sorted(group(2)), sorted([zero, two]))
        self.assertEqual(group(2, [2, -1]), [two, zero])
        with self.assertRaisesRegex(GLib.Error, 'a group of 3 needs 3 workers at one time; "pid" is registered on fewer'):
            group(3)
        with self.assertRaisesRegex(GLib.Error, '"pid" is not registered on worker 1 of L3/0, but on 0, 2'):
            group(2, [1, 2])

    def test_later(self):
        """After the start: those that are named are told, or are begun again; the others go on as they are."""
        host = self.subs()
        everywhere = host.register(pid)
        before = self.places(host, everywhere, 0, 1, 2)
        imported = host.register(Pto.ImportedFunction.new(Pto.CallableKind.SUB, "remote_steps:which_sub"), workers=[2])
        self.assertEqual(self.places(host, imported, -1, 2), [before[2]] * 2)
        self.refuses(host, imported, '"which_sub" is not registered on worker 1 of L3/0, but on 2', worker=1)
        born_again = host.register(lambda args: pid(args), workers=[1])  # nothing imports it
        after = self.places(host, everywhere, 0, 1, 2)
        self.assertEqual([a == b for a, b in zip(before, after)], [True, False, True])
        self.assertEqual(self.places(host, born_again, -1), [after[1]])

    def test_extended(self):
        """Registered again it is known to more; taken back as often it is known to nobody."""
        host = self.subs()
        host.start()
        function = Pto.ImportedFunction.new(Pto.CallableKind.SUB, "remote_steps:which_sub")
        first = host.register(function, workers=[0])
        zero, = self.places(host, first, -1)
        self.refuses(host, first, "but on 0:", worker=1)
        second = host.register(function, workers=[1])
        self.assertTrue(first.equal(second))
        places = self.places(host, first, 0, 1, -1, -1)
        self.assertEqual(places, [zero, places[1]] * 2)
        self.refuses(host, first, "but on 0, 1:", worker=2)
        third = host.register(function)
        self.assertEqual(len(set(self.places(host, third, 0, 1, 2))), 3)
        self.assertEqual(len(set(self.places(host, host.register(function, workers=[2]), 0, 1, 2))), 3)  # all stay all
        for _ in range(4):
            host.unregister(first)
        self.refuses(host, first, '"which_sub" is not registered on this worker any more')
        again = host.register(function, workers=[2])
        self.refuses(host, again, "but on 2:", worker=0)

    def test_below(self):
        """A worker below one that has started is elsewhere, and would not hear of it."""
        host, inner = self.close_later(Pto.Worker(level=4)), Pto.Worker(level=3, sub_workers=1)
        host.add_worker(inner)
        inner.register(pid)
        host.start()
        with self.assertRaisesRegex(Pto.BusyError, "L4/0/L3/0 runs elsewhere since the worker above it was started: register on it before that"):
            inner.register(lambda args: None)
        self.assertIn("ready", inner.to_string())

    def test_not_extended(self):
        """Who refuses to have it, too, is nobody else's loss."""
        host = self.close_later(Pto.Worker(level=4))
        with tempfile.TemporaryDirectory() as empty:
            for directory in root, root, empty:
                host.add_remote_worker("local:", roots=directory)
            function = Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, "remote_steps:which")
            which = host.register(function, workers=[0])
            host.start()
            with self.assertRaisesRegex(GLib.Error, "registration on L4/0/L3/2 refused: .*remote_steps is in none of the directories.*"
                                                    "; nothing was registered"):
                host.register(function, workers=[1, 2])
            with self.assertRaisesRegex(GLib.Error, "registration on L4/0/L3/2 refused"):
                host.register(function)
            place, = self.places(host, which, -1, submit="submit_next_level")
            self.assertEqual(self.places(host, which, 0, submit="submit_next_level"), [place])
            self.refuses(host, which, "but on 0:", worker=1, submit="submit_next_level")
            self.assertTrue(host.register(function, workers=[1]).equal(which))
            self.assertEqual(len(set(self.places(host, which, 0, 1, submit="submit_next_level"))), 2)

    def test_begun_again(self):
        """One that has died comes back with what was registered on it, and not with what was on others."""
        host = self.subs(restart=Pto.Restart.ON_FAILURE)
        end, mine, other = host.register(die), host.register(pid, workers=[0]), host.register(lambda args: pid(args), workers=[1])
        before = self.places(host, mine, -1)
        with self.assertRaisesRegex(GLib.Error, "L3/0/sub0"):
            host.run(lambda orch: orch.submit_sub(end, [], worker=0))
        after = self.places(host, mine, -1)
        self.assertNotEqual(after, before)
        self.refuses(host, other, "but on 1:")
        self.assertNotIn(self.places(host, other, -1), (before, after))

    def test_death_between(self):
        """Who dies when it has agreed, and before another one has, takes it with it: nobody has it, also not who is begun again."""
        gate = Pto.Buffer.array(2, "i8")
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "agreeing.py"), "w") as module:
                module.write("import os\nopen(os.path.join(os.path.dirname(__file__), str(os.getpid())), 'w').close()\n"
                             "def function(args):\n    args[0][0] = os.getpid()\n")
            sys.path.insert(0, directory)
            self.addCleanup(sys.path.remove, directory)
            with Pto.Worker(level=3, sub_workers=3, restart=Pto.Restart.ON_FAILURE) as host:  # whose children have that path
                held, place = host.register(hold), host.register(pid)
                before = self.places(host, place, 0, 1, 2)
                run = in_background(lambda: host.run(lambda orch, gate: orch.submit_sub(held, [gate.write_existing()], worker=0), gate))
                until(lambda: gate[1] == before[0])
                function = Pto.ImportedFunction.new(Pto.CallableKind.SUB, "agreeing:function")
                registration = in_background(lambda: host.register(function))
                until(lambda: {str(before[1]), str(before[2])} <= set(os.listdir(directory)))
                until(lambda: all(row["life"] == "idle" for row in host.doing["children"][1:]))
                os.kill(before[1], signal.SIGKILL)
                until(lambda: (row := host.doing["children"][1])["life"] != "idle" or row["lives"] > 1)  # it is taken for dead
                gate[0] = 1
                self.assertIs(run(), True)
                self.assertRegex(registration().message, r"L3/0/sub1 had agreed to the registration, and died \(signal 9, Killed\) "
                                                         "before all others had; nothing was registered")
                self.assertNotIn(str(before[0]), os.listdir(directory))  # who was not asked by then is not
                self.assertEqual([a == b for a, b in zip(before, self.places(host, place, 0, 1, 2))], [True, False, True])
                again = host.register(function)
                self.assertEqual(self.places(host, again, 0, 1, 2), self.places(host, place, 0, 1, 2))

    def test_at_one_time(self):
        """Several threads register and take back, the same and others, for all and for some, while tasks run."""
        host = self.subs()
        place, ends = host.register(pid), []
        before = self.places(host, place, 0, 1, 2)
        names = "which_sub", "nap", "double"

        def work(number):
            for i in range(12):
                function = Pto.ImportedFunction.new(Pto.CallableKind.SUB, f"remote_steps:{names[(number + i) % 3]}")
                workers = [None, [number % 3], [0, 2]][i % 3]
                host.unregister(host.register(function, workers=workers))
            return number
        threads = [in_background(lambda number=number: work(number)) for number in range(4)]
        for _ in range(6):
            ends.append(self.places(host, place, *range(3), *[-1] * 20)[:3])
        self.assertEqual([thread() for thread in threads], [0, 1, 2, 3])
        self.assertEqual(ends, [before] * 6)  # nobody has died of it
        last = host.register(Pto.ImportedFunction.new(Pto.CallableKind.SUB, "remote_steps:which_sub"), workers=[1])
        self.assertEqual(self.places(host, last, -1), before[1:2])
        self.refuses(host, last, "but on 1:")

    def test_remote(self):
        """Some of several remote workers, by themselves."""
        host = self.close_later(Pto.Worker(level=4))
        first, second = (host.add_remote_worker("local:", roots=root) for _ in range(2))
        host.add_worker(Pto.Worker(level=3))
        which = host.register(remote_steps.which, workers=[second])
        elsewhere = host.register(lambda orch, args, config: remote_steps.which(orch, args, config), workers=[2])
        places = self.places(host, which, -1, 1, submit="submit_next_level")
        self.assertEqual(places[0], places[1])
        self.refuses(host, which, '"which" is not registered on worker 0 of L4/0, but on 1', submit="submit_next_level")
        self.refuses(host, which, "but on 1", worker=2, submit="submit_next_level")
        self.assertNotIn(self.places(host, elsewhere, -1, submit="submit_next_level")[0], (0, places[0]))
        which = host.register(remote_steps.which, workers=[first])  # by its path, which is another callable
        host.register(Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, "remote_steps:which"), workers=[1])
        self.assertEqual(len(set(self.places(host, which, 0, 1, submit="submit_next_level"))), 2)

    def test_below_remote(self):
        """What is registered on a remote worker itself may be for some of those below it."""
        host = self.close_later(Pto.Worker(level=4))
        remote = host.add_remote_worker("local:", roots=root, sub_workers=2)
        remote.register(Pto.ImportedFunction.new(Pto.CallableKind.SUB, "remote_steps:which_sub"), workers=[1])
        found = Pto.Buffer.array(3, "i8")
        handle = host.register(remote_steps.which_below)
        host.run(lambda orch, found: orch.submit_next_level(handle, [found.write_existing()]), found)
        self.assertNotEqual(found[0], 0)
        self.assertEqual(list(found), [found[0], found[0], 1])

    def test_refused(self):
        host = self.close_later(Pto.Worker(level=4, sub_workers=1))
        host.add_remote_worker("local:", roots=root)
        host.add_worker(Pto.Worker(level=2))
        orchestration = Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, "remote_steps:which")
        for workers, text in (([5], "L4/0 has no worker 5: the ids of its workers are 0, 1"), ([0, -1], "L4/0 has no worker -1"),
                              ([1], '"which" is an orchestration for workers of level 3 and up, worker 1 of L4/0 is of level 2')):
            with self.subTest(workers), self.assertRaisesRegex(GLib.Error, text):
                host.register(orchestration, workers=workers)
        with self.assertRaisesRegex(GLib.Error, "L4/0 has no SUB worker 1: it has 1, which count from 0"):
            host.register(pid, workers=[1])
        with self.assertRaisesRegex(GLib.Error, "is a function of this process, which local: can not be sent"):  # and not when a task comes
            host.register(lambda orch, args, config: None, workers=[0])
        with self.assertRaisesRegex(ValueError, r"workers=\[\] would register it nowhere"):
            host.register(orchestration, workers=[])
        with self.assertRaisesRegex(ValueError, "L2/0 is not below L4/0"):
            host.register(orchestration, workers=[Pto.Worker(level=2)])
        with self.assertRaisesRegex(TypeError, "workers"):
            host.register(orchestration, workers=["one"])
        remote = host.get_child(0)
        imported = Pto.ImportedFunction.new(Pto.CallableKind.SUB, "remote_steps:which_sub")
        for function, name in ((pid, "pid"), (imported, "which_sub")):  # 0 is the id of the remote worker, and the number of a SUB worker
            for workers in remote, [remote]:
                with self.assertRaisesRegex(ValueError, rf'L4/0/L3/0 is no SUB worker, and ".*{name}" is for those: workers= names them by their numbers'):
                    host.register(function, workers=workers)
        with self.assertRaisesRegex(GLib.Error, "is registered on a chip, which has no workers below it"):
            self.close_later(Pto.Worker(level=2)).register(Pto.Callable.kernel(os.path.join(here, "fill.c")), workers=[0])

    def test_named_and_missing(self):
        """One that was named and can not import it does not start, while one that was not is spared."""
        with tempfile.TemporaryDirectory() as empty:
            for workers, starts in (None, True), ([0], True), ([1], False):
                host = self.close_later(Pto.Worker(level=4))
                for directory in root, empty:
                    host.add_remote_worker("local:", roots=directory, python=sys.executable)
                host.register(remote_steps.which, workers=workers)
                with self.subTest(workers), contextlib.ExitStack() as stack:
                    if not starts:
                        stack.enter_context(self.assertRaisesRegex(GLib.Error, "L4/0/L3/1 .*remote_steps is in none of the directories"))
                    host.start()

    def test_graph(self):
        """A captured graph names those that it went to, and is not launched where they have not what it runs."""
        host = self.subs()
        function = Pto.ImportedFunction.new(Pto.CallableKind.SUB, "remote_steps:which_sub")
        some = host.register(function, workers=[2])
        found = Pto.Buffer.array(1, "i8")
        graph = host.capture(lambda orch, found: orch.submit_sub(some, [found.write_existing()]), found)
        host.run(graph, found)
        self.assertEqual([int(found[0])], self.places(host, some, 2))
        for workers, launches in ([2, 1], True), ([0, 1], False), (None, True):
            other = self.subs()
            other.register(function, workers=workers)
            with self.subTest(workers), contextlib.ExitStack() as stack:
                if not launches:
                    stack.enter_context(self.assertRaisesRegex(
                        GLib.Error, 'task 0 of the graph is of "which_sub", which is not registered on all workers that it may go to'))
                other.run(graph, found)


@unittest.skipIf(np is None, "no numpy")
class Ids(unittest.TestCase):
    def setUp(self):
        self.host = Pto.Worker(level=4)
        self.addCleanup(self.host.close)

    def add(self, **choices):
        return self.host.add_remote_worker("local:", roots=root, sub_workers=1, **choices)

    def test_given(self):
        """Submits, paths, messages, the state and the trace have the id that was given; the next free one is the lowest."""
        host = self.host
        workers = self.add(id=7), self.add(), self.add(id=1), self.add(), Pto.Worker(level=3)
        host.add_worker(workers[4])
        self.assertEqual([worker.get_id() for worker in workers], [7, 0, 1, 2, 3])
        self.assertEqual([worker.dup_path() for worker in workers], [f"L4/0/L3/{i}" for i in (7, 0, 1, 2, 3)])
        self.assertEqual([host.get_child(i) for i in (7, 0, 1, 2, 3, 4, 6)], [*workers, None, None])
        which, fail = host.register(remote_steps.which), host.register(remote_steps.explode)
        host.register(remote_steps.fill, workers=[workers[0], 1])
        found = Pto.Buffer.array(5, "i8")

        def submit(*ids):
            host.run(lambda orch: [orch.submit_next_level(which, [Pto.Tensor.of(found).view([1], [i]).write_existing()], worker=id_) for i, id_ in enumerate(ids)])
            return [int(value) for value in found[:len(ids)]]
        host.set_parameter("trace", "1")
        places = submit(7, 0, 1, 2, 3)
        self.assertEqual(len(set(places)), 5)
        self.assertEqual(submit(1, 7), [places[2], places[0]])
        for bad in 4, 6, 8:
            with self.assertRaisesRegex(GLib.Error, f"L4/0 has no worker {bad}: the ids of its workers are 7, 0, 1, 2, 3"):
                submit(bad)
        with self.assertRaisesRegex(remote_steps.Unwilling, "no layer") as caught:
            host.run(lambda orch: orch.submit_next_level(fail, [Pto.Tensor.of(found).view([1], [0]).write_existing()], worker=7))
        self.assertIn("on L4/0/L3/7 failed", str(caught.exception.__cause__))
        self.assertEqual([row["path"] for row in host.doing["children"]], [worker.dup_path() for worker in workers])
        submit(7)
        self.assertIn("L4/0/L3/7", host.dup_metrics())
        self.assertIn("L3/7", host.ref_trace().to_json())
        filled = host.lookup("fill")
        with self.assertRaisesRegex(GLib.Error, '"fill" is not registered on worker 0 of L4/0, but on 7, 1'):
            host.run(lambda orch: orch.submit_next_level(filled, [Pto.Tensor.of(found).view([1], [0]).write(), 3], worker=0))
        with self.assertRaisesRegex(GLib.Error, "a tensor can not stay at worker 4: L4/0 has no such worker, the ids of its workers are 7, 0, 1, 2, 3"):
            host.run(lambda orch: orch.make_tensor_at(4, Pto.Dtype.INT64, [1]))

    def test_there(self):
        """The other end knows it, too: files that it writes are called by it."""
        self.add(id=40)
        found = Pto.Buffer.array(1, "i8")
        path = self.host.register(remote_steps.own_path)
        self.host.run(lambda orch, found: orch.submit_next_level(path, [found.write_existing()], worker=40), found)
        self.assertEqual(found[0], 40)

    def test_refused(self):
        self.add(id=3)
        with self.assertRaisesRegex(GLib.Error, "the id 3 is that of L4/0/L3/3 already: each worker has one of its own"):
            self.add(id=3)
        self.assertEqual([self.add().get_id() for _ in range(4)], [0, 1, 2, 4])
        with self.assertRaisesRegex(GLib.Error, "the id 1 is that of L4/0/L3/1 already"):
            self.add(id=1)
        with self.assertRaisesRegex(GLib.Error, "the option id of a remote worker is 0 to 65535, not 65536"):
            self.add(id=65536)
        for bad in -1, "two", 1.5:
            with self.assertRaises((TypeError, ValueError, OverflowError)):
                self.add(id=bad)
        self.assertEqual(self.host.get_n_workers(), 5)


tap.main()
