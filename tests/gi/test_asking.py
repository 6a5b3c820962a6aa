# test_asking.py: does a run that hangs say what it waits for?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Kernels and functions wait for a flag in shared memory, which the test sets when it has asked: then the run ends as if nothing
had been."""
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

SECONDS = 60
PROGRAM = os.environ.get("PTO_TEST_PROGRAM", "pto")
HEAD = """\
#define _GNU_SOURCE
#include "pto_block.h"
#include "tensor.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>
static int32_t *cells (int64_t arg)
{
  const TensorData *t = (const TensorData *) arg;

  return (int32_t *) t->buffer.addr + t->start_offset;
}
static inline void hold (int64_t arg)
{
  while (*(volatile int32_t *) cells (arg) == 0)
    nanosleep (&(struct timespec){ .tv_nsec = 100000 }, 0);
}
void kernel_entry (int64_t *args)
"""
KERNELS = {
    "hold": ("aiv", "{ hold (args[0]); cells (args[1])[0] = 7; }\n"),
    "mask": ("aiv", "{ sigset_t all, before; sigfillset (&all); pthread_sigmask (SIG_SETMASK, &all, &before); hold (args[0]);\n"
                    "  pthread_sigmask (SIG_SETMASK, &before, 0); cells (args[1])[0] = 7; }\n"),
    "add": ("aiv", "{ cells (args[1])[0] = cells (args[0])[0] + 1; }\n"),
    # The last one holds the others up: cores of one scheduler may share a thread.
    "meet": ("aiv", "{ if (get_block_idx (args) == get_block_num (args) - 1) hold (args[0]);\n"
                    "  pto_sync_all (args); if (get_block_idx (args) == 0) cells (args[1])[0] = 7; }\n"),
    "pop": ("aic", "{ int32_t five = 0; TPOP (args, 0, &five, 4); cells (args[1])[0] = five; }\n"),
    "push": ("aiv", "{ int32_t five = 5; hold (args[0]); TPUSH (args, 0, &five, 4); }\n"),
}
CONFIGURATION = """\
#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count)
{
  return (PTO2OrchestrationConfig){ 1 };
}
"""


def until(look, good, what):
    """The first that is good of what it gives, again and again."""
    deadline = time.monotonic() + SECONDS
    while not good(seen := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {SECONDS} s; last seen: {seen}")
    return seen


class Run:
    """In another thread; the flag ends its wait."""
    def __init__(self, flag, call, *args):
        self.flag, self.error = flag, None
        self.thread = threading.Thread(target=self.go, args=(call, args), daemon=True)
        self.thread.start()

    def go(self, call, args):
        try:
            call(*args)
        except BaseException as error:  # told by whoever waits for it
            self.error = error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.flag[0] = 1
        self.thread.join(SECONDS)
        assert not self.thread.is_alive(), "the run goes on"
        if self.error is not None:
            raise self.error


def busy(worker):
    return [core for core in worker["cores"] if core["doing"] != "idle"]


def running(state, n=1, doing="end"):
    """So many cores run, or wait within a kernel, and the submitter waits, too. On det a kernel has the only thread, from its
    submit on."""
    return bool(state and state.get("run") and len(busy(state)) == n and all("for_ns" in core for core in busy(state))
                and state["run"]["submitter"]["doing"] in (doing, "turn") and "for_ns" in state["run"]["submitter"])


@unittest.skipIf(np is None, "no numpy")
class Asking(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-asking-")
        self.addCleanup(shutil.rmtree, self.directory)
        for name, (core, text) in KERNELS.items():
            path = os.path.join(self.directory, name + ".c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(HEAD + text)
            setattr(self, name, Pto.Callable.kernel(path, core))
        self.flag, self.out = Pto.Buffer.array(1, "i4"), Pto.Buffer.array(1, "i4")
        Pto.answer_start()
        self.addCleanup(Pto.answer_stop)

    def workers(self, isolate=(False, True), backends=("par", "det", "threads"), **parameters):
        for apart, backend in itertools.product(isolate, backends):
            with self.subTest(backend=backend, isolate=apart), Pto.Worker(platform="a2a3sim", isolate=apart) as worker:
                worker.set_parameter("backend", backend)
                worker.set_parameter("timeout", 600000)
                for name, value in parameters.items():
                    worker.set_parameter(name.replace("_", "-"), value)
                self.flag[0] = self.out[0] = 0
                yield worker

    def chain(self, orch, flag, out):
        first, second = orch.tensor(1, "i4"), orch.tensor(1, "i4")
        orch.submit(self.hold, flag.read(), first.write())
        orch.submit(self.add, first.read(), second.write())
        orch.submit(self.add, second.read(), out.write_existing())

    def test_kernel(self):
        """A kernel that loops: which task, kernel, core, tensors, since when, and who waits for it."""
        for worker in self.workers():
            with Run(self.flag, worker.run, self.chain, self.flag, self.out):
                state = until(lambda: worker.doing, running, "a kernel runs")
                run, is_det = state["run"], state["backend"] == "det"
                self.assertEqual(run["submitter"]["doing"], "turn" if is_det else "end")
                self.assertEqual([run[name] for name in ("submitted", "completed", "failed", "running", "ready", "blocked")],
                                 [1, 0, 0, 1, 0, 0] if is_det else [3, 0, 0, 1, 0, 2])
                core, = busy(state)
                self.assertEqual([core["doing"], core["task"], core["kernel"], core["state"]], ["runs", "0", "hold", "running"])
                self.assertRegex(core["core"], r"^AIV\d+$")
                self.assertEqual([(t["argument"], t["type"], t["shape"]) for t in core["tensors"]],
                                 [(0, "int32", [1]), (1, "int32", [1])])
                address = self.flag.ctypes.data
                self.assertEqual(int(core["tensors"][0]["address"], 16), address)
                self.assertEqual([(w["task"], w["kernel"], w["state"], w["producers"],
                                   [(c["task"], c["kernel"], c["state"]) for c in w["after"]]) for w in run["waiting"]],
                                 [] if is_det else
                                 [("1", "add", "waiting for its producers", 1, [("0", "hold", "running")]),
                                  ("2", "add", "waiting for its producers", 1, [("1", "add", "waiting for its producers")])])
                later = until(lambda: worker.doing, lambda s: busy(s)[0].get("for_ns", 0) > 50_000_000, "time goes by")
                self.assertLessEqual(busy(later)[0]["for_ns"], later["run"]["for_ns"])
                self.assertLessEqual(later["run"]["submitter"]["for_ns"], later["run"]["for_ns"])
                scheduler = state["schedulers"][core["scheduler"]]
                if state["backend"] != "threads":
                    self.assertEqual(scheduler["doing"], "runs a core")
                self.assertEqual((scheduler["busy"], sum(s["busy"] for s in state["schedulers"])), (1, 1))
                self.assertEqual([(r["ring"], r["tasks"], r["first"], r["next"]) for r in state["rings"]],
                                 [(0, run["submitted"], 0, run["submitted"]), (1, 0, 0, 0), (2, 0, 0, 0), (3, 0, 0, 0)])
                self.assertGreater(state["rings"][0]["heap_used"], 0)
                text = worker.describe_state()
                self.assertRegex(text, rf"\n  {core['core']} +runs task 0 \(hold\), for [\d.]+ m?s; argument 0 int32 \[1\] at "
                                       rf"0x{address:x}, argument 1 int32 \[1\] at 0x[0-9a-f]+\n")
                self.assertEqual(bool(re.search(r"\n  waits +task 1 \(add\) for task 0 \(hold\), which is running\n", text)), not is_det)
                self.assertRegex(text, r"\n  submitter +waits for its turn: .*, for " if is_det else
                                 r"\n  submitter +has submitted everything and waits for the end, for ")
                self.assertRegex(text, r"\n  idle +71 of 72 cores\n")
            self.assertEqual(self.out[0], 9)
            self.assertIsNone(worker.doing["run"])
            self.assertIn(": a2a3sim on ", worker.describe_state())
            self.assertIn("no run is under way\n", worker.describe_state())

    def full(self, orch, flag, out):
        with orch.scope():
            orch.submit(self.hold, flag.read(), out.write_existing())
        for _ in range(6):
            with orch.scope():
                orch.submit(self.add, out.read(), orch.tensor(1, "i4").write())

    def test_ring(self):
        """A ring is full: which, of what, whose, and the knob."""
        for worker in self.workers(task_window=4):
            with Run(self.flag, worker.run, self.full, self.flag, self.out):
                state = until(lambda: worker.doing, lambda s: running(s, doing="room"), "the ring is full")
                submitter = state["run"]["submitter"]
                if submitter["doing"] == "turn":
                    continue
                self.assertEqual([submitter[name] for name in ("ring", "used", "all", "knob", "task", "kernel", "state")],
                                 [1, 3, 3, "set task-window to 8 or more", "1:0", "hold", "running"])
                self.assertEqual(submitter["short_of"], "[TaskRing] BLOCKED (Flow Control): ring=1, current=3, last_alive=0")
                self.assertEqual((state["rings"][1]["tasks"], state["rings"][1]["window"]), (3, 4))
                self.assertRegex(worker.describe_state(), r"\n  submitter +waits for room: \[TaskRing\] BLOCKED .*, active=3/3, for "
                                 r".*; the oldest, task 0 of ring 1 \(hold\), is running: for submits to go on, set task-window to 8 or more\n")
            self.assertEqual(self.out[0], 7)

    def element(self, orch, flag, out):
        made = orch.tensor(1, "i4")
        orch.submit(self.hold, flag.read(), made.write())
        orch.submit(self.add, made.read(), out.write_existing())
        self.element_was = orch.get_element(out, 0)

    def test_element(self):
        """The orchestration waits for one element."""
        for worker in self.workers():
            with Run(self.flag, worker.run, self.element, self.flag, self.out):
                state = until(lambda: worker.doing, lambda s: running(s, doing="await"), "an element is waited for")
                submitter = state["run"]["submitter"]
                if submitter["doing"] == "turn":
                    continue
                self.assertEqual((submitter["task"], submitter["kernel"]), ("1:0", "no kernel"))
                self.assertEqual([(w["task"], w["after"][0]["task"]) for w in state["run"]["waiting"]], [("1", "0"), ("1:0", "1")])
                self.assertRegex(worker.describe_state(), r"submitter +waits for task 0 of ring 1 \(no kernel\), which is waiting for its producers, for ")
            self.assertEqual(self.element_was, 8)

    def gang(self, orch, flag, out):
        orch.submit(self.meet, flag.read(), out.write_existing(), block_dim=4, sync_start=True)

    def test_gang(self):
        for worker in self.workers():
            with Run(self.flag, worker.run, self.gang, self.flag, self.out):
                state = until(lambda: worker.doing, lambda s: running(s, 4) and sum(c["doing"] == "meets" for c in busy(s)) == 3,
                              "three have come")
                self.assertEqual(sorted((c["doing"], c["kernel"], c["block"], c["blocks"], c.get("met"), c.get("members")) for c in busy(state)),
                                 [("meets", "meet", i, 4, 3, 4) for i in range(3)] + [("runs", "meet", 3, 4, None, None)])
                self.assertRegex(worker.describe_state(), r"AIV\d+ +runs task 0 \(meet\), block 1 of 4.*: waits in pto_sync_all\(\), where 3 of 4 have come; ")
            self.assertEqual(self.out[0], 7)

    def pair(self, orch, flag, out):
        orch.submit_mixed(self.pop, self.push, None, flag.read(), out.write_existing())

    def test_pipe(self):
        for worker in self.workers():
            with Run(self.flag, worker.run, self.pair, self.flag, self.out):
                state = until(lambda: worker.doing, lambda s: running(s, 2) and any(c["doing"] == "pops" for c in busy(s)), "one pops")
                self.assertEqual(sorted((c["doing"], c["kernel"], c["task"], c.get("pipe")) for c in busy(state)),
                                 [("pops", "pop", "0", 0), ("runs", "push", "0", None)])
                self.assertEqual(len({c["cluster"] for c in busy(state)}), 1)
                self.assertRegex(worker.describe_state(), r"runs task 0 \(pop\).*: waits in TPOP\(\) for pipe 0, which is empty; ")
            self.assertEqual(self.out[0], 5)

    def places(self, worker):
        def graph(orch, flag, out):
            made = orch.tensor(1, "i4")
            orch.submit(self.hold, flag.read(), made.write())
            if worker.doing["backend"] != "det":  # the first has its core before the gang is there
                until(lambda: worker.doing, lambda s: s and s.get("run") and busy(s), "the first runs")
            orch.submit(self.meet, flag.no_dep(), out.write_existing(), block_dim=2, sync_start=True)
        return graph

    def test_places(self):
        """A gang that waits for places, and ready tasks that wait for a core."""
        for worker in self.workers(clusters=1, aicpu_threads=2):
            with Run(self.flag, worker.run, self.places(worker), self.flag, self.out):
                # A task waits before its scheduler has kept a core for it.
                state = until(lambda: worker.doing, lambda s: running(s) and (s["backend"] == "det" or any(
                    w["kept_places"] or s["backend"] == "par" for w in s["run"]["waiting"])), "places are waited for")
                if state["backend"] == "det":
                    continue
                waiting, = state["run"]["waiting"]
                self.assertEqual([waiting[name] for name in ("task", "kernel", "state", "places")], ["1", "meet", "ready", 2])
                # One is idle, but where its scheduler has the kernel's thread nobody keeps it.
                self.assertIn(waiting["kept_places"], (1,) if state["backend"] == "threads" else (0, 1))
                self.assertRegex(worker.describe_state(), r"waits +task 1 \(meet\) for 2 places at once, of which it has [01]\n")
            self.assertEqual(self.out[0], 7)

    def test_trace(self):
        """A record knows since when, to the tick."""
        for worker in self.workers(isolate=(False,), backends=("par", "threads"), trace=1):
            with Run(self.flag, worker.run, self.chain, self.flag, self.out):
                state = until(lambda: worker.doing, running, "a kernel runs")
                self.assertGreater(busy(state)[0]["for_ns"], 0)
                self.assertLess(busy(state)[0]["for_ns"], state["run"]["for_ns"])

    def test_orchestration(self):
        """It loops itself."""
        path = os.path.join(self.directory, "loops.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION + """
#include <time.h>
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count)
{
  Tensor flag = pto2_rt_arg_tensor (rt, 0);

  while (*(volatile int32_t *) flag._data->buffer.addr == 0)
    nanosleep (&(struct timespec){ .tv_nsec = 100000 }, 0);
  return 0;
}
""".replace("flag._data->buffer.addr", "args[0]").replace("  Tensor flag = pto2_rt_arg_tensor (rt, 0);\n\n", ""))
        for worker in self.workers():
            handle = worker.register(Pto.ChipOrchestration.new(path, None))
            with Run(self.flag, worker.run, handle, self.flag):
                state = until(lambda: worker.doing, lambda s: s and s.get("run") and s["run"]["submitter"].get("for_ns", 0) > 30_000_000,
                              "it has done nothing for a while")
                self.assertEqual((state["run"]["submitter"]["doing"], state["run"]["submitted"]), ("orchestration", 0))
                self.assertIn("is in the code of the orchestration, for ", worker.describe_state())

    def masked(self, orch, flag, out):
        orch.submit(self.mask, flag.read(), out.write_existing())

    def test_signal(self):
        """SIGQUIT tells it on standard error, whatever signals a kernel has blocked, and ends nobody."""
        for worker in self.workers(isolate=(False,)):
            with Run(self.flag, worker.run, self.masked, self.flag, self.out):
                until(lambda: worker.doing, running, "a kernel runs")
                read, write = os.pipe()
                before = os.dup(2)
                try:
                    os.dup2(write, 2)
                    os.kill(os.getpid(), signal.SIGQUIT)
                    text = b""
                    while b" of heap, " not in text:
                        text += os.read(read, 65536)
                finally:
                    os.dup2(before, 2)
                    for fd in read, write, before:
                        os.close(fd)
                self.assertRegex(text.decode(), rf"(?s)^process {os.getpid()}[ ,].*libpto .*\nL2/0: a2a3sim on {worker.doing['backend']}, .*"
                                                r"AIV\d+ +runs task 0 \(mask\), for ")
            self.assertEqual(self.out[0], 7)

    def test_other_process(self):
        """This one asks one that hangs, and the program pto does; and two at one time."""
        for worker in self.workers(backends=("par",)):
            with Run(self.flag, worker.run, self.chain, self.flag, self.out):
                until(lambda: worker.doing, running, "a kernel runs")
                asked = [subprocess.Popen([PROGRAM, "top", *option, str(os.getpid())], stdout=subprocess.PIPE, text=True)
                         for option in (["--json"], ["--json"], ["--once"], ["--metrics"], [])]
                first, second, once, metrics, none = (process.communicate(timeout=SECONDS)[0] for process in asked)
                self.assertEqual([process.returncode for process in asked], [0] * 5)
                for answer in first, second:
                    told = json.loads(answer)
                    self.assertEqual((told["version"], told["pid"]), (1, os.getpid()))
                    core, = busy(told["workers"][0])
                    self.assertEqual((core["task"], core["kernel"]), ("0", "hold"))
                for answer in once, none:
                    self.assertIn("runs task 0 (hold), for ", answer)
                self.assertTrue(metrics.endswith("\n# EOF\n"))
                self.assertIn("runs task 0 (hold), for ", Pto.Worker.ask_process())
                self.assertEqual(json.loads(Pto.Worker.ask_process(os.getpid(), "json"))["pid"], os.getpid())
            self.assertEqual(self.out[0], 9)

    def test_nobody(self):
        """Who does not answer is told in one line, and is not hurt."""
        with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as other:
            gone = r"there is no process 4194309"
            silent = rf"process {other.pid} does not listen: "
            for pid, here, words in ((other.pid, silent + ".*PTO_ANSWER=1", silent + f"ask process {os.getpid()}, which has begun it"), (2 ** 22 + 5, gone, gone)):
                with self.assertRaisesRegex(GLib.Error, here):
                    Pto.Worker.ask_process(pid)
                result = subprocess.run([PROGRAM, "top", "--once", str(pid)], stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual((result.returncode, result.stderr.count("\n")), (3, 1))
                self.assertRegex(result.stderr, "^pto: " + words)
            self.assertIsNone(other.poll())
            other.stdin.close()
        for number in -1, -2 ** 40, 2 ** 31, 2 ** 40:
            with self.assertRaisesRegex(GLib.Error, f"{number} is the number of no process"):
                Pto.Worker.ask_process(number)
        with self.assertRaisesRegex(ValueError, "'xml' is none of text, json, metrics"):
            Pto.Worker.ask_process(0, "xml")

    def listener(self, pid):
        names = os.stat("/proc/self/ns/pid").st_ino
        return f"\0libpto/answer/{names}/{pid}"

    def test_other_version(self):
        """Of a libpto of another version, or who answers nonsense, or nothing."""
        def told(text):
            return b"pto-answer 1 ok %d\n" % len(text) + (text if isinstance(text, bytes) else text.encode())
        Pto.answer_stop()
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(self.listener(os.getpid()))
        server.listen()
        for sent, words in ((b"pto-answer 2 ok 2\n{}", "answers in version 2, this libpto asks in version 1: "),
                            (b"pto-answer 1 no it is not told\n", rf"process {os.getpid()}: it is not told$"),
                            (b"pto-answer 1 ok 2\nxx", "no answer$"), (b"HTTP/1.0 400\n", "no answer$"),
                            (b"pto-answer 1 ok 9\n{", "has ended meanwhile$"), (b"", "has ended meanwhile$"),
                            (b"pto-answer 1 ok 99999999999\n", "no answer$"), (b"x" * 1000, "no answer$"),
                            # So deep that who reads it falls over; also where not all readers would see it.
                            (told('{"workers":' + "[" * 1000000 + "]" * 1000000 + "}"), "no answer$"), (told('{"workers":' + "[" * 65 + "]" * 65 + "}"), "no answer$"),
                            (told('/*"*/{"workers":' + "[" * 1000000 + "]" * 1000000 + '}/*"*/'), "no answer$"), (told('{"a":"\x01"}'), "no answer$"),
                            (told(b'{"a":"\xff"}'), "no answer$")):
            with subprocess.Popen([PROGRAM, "top", "--once", str(os.getpid())], stderr=subprocess.PIPE, text=True) as asking:
                connection, _ = server.accept()
                self.assertRegex(connection.recv(100), rb"^pto-ask 1 json \d+\n$")
                connection.sendall(sent)
                connection.close()
                self.assertRegex(asking.communicate(timeout=SECONDS)[1], r"^pto: process \d+.*" + words.replace(rf"process {os.getpid()}", ""))
                self.assertEqual(asking.returncode, 3)

    def test_control_characters(self):
        """What another process says of itself does nothing to the terminal of who asks it."""
        Pto.answer_stop()
        bad = "a\x1b]0;owned\x07\x1b[31m\u009b5m\x7f\nb"
        row = {"path": bad, "kind": "worker", "pid": 1, "life": bad, "task": bad, "kernel": bad, "silent": bad}
        text = json.dumps({"version": 1, "library": bad, "pid": 1, "program": bad, "workers": [
            {"path": bad, "number": 1, "level": 3, "run": {"title": bad, "submitter": {"doing": bad}}, "children": [row]}]}, ensure_ascii=False).encode()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(self.listener(os.getpid()))
            server.listen()
            for option in "--once", "--json", "--metrics":
                with subprocess.Popen([PROGRAM, "top", option, str(os.getpid())], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
                    connection, _ = server.accept()
                    connection.recv(100)
                    connection.sendall(b"pto-answer 1 ok %d\n" % len(text) + text)
                    connection.close()
                    out, err = asking.communicate(timeout=SECONDS)
                    self.assertEqual((asking.returncode, err), (0, ""))
                    self.assertEqual(re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", out), [])
                    if option == "--json":
                        self.assertEqual(json.loads(out), json.loads(text))
                    if option == "--once":
                        shown = "a?]0;owned??[31m?5m??b"
                        self.assertEqual(out.splitlines()[0], f"process 1 ({shown}), libpto {shown}")

    def test_asked_otherwise(self):
        """This one is asked by another version, by who says nothing, and by who goes."""
        silent = socket.socket(socket.AF_UNIX)
        silent.connect(self.listener(os.getpid()))
        self.addCleanup(silent.close)
        for sent in b"pto-ask 2 json 500\n", b"GET / HTTP/1.0\n", b"\n", b"x" * 200:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(SECONDS)
                client.connect(self.listener(os.getpid()))
                client.sendall(sent)
                self.assertRegex(client.recv(1000), rb"^pto-answer 1 no it is asked in a way that it does not know: its libpto is \d")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.listener(os.getpid()))
            client.sendall(b"pto-ask 1 json 500\n")
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(SECONDS)
            client.connect(self.listener(os.getpid()))
            client.sendall(b"pto-ask 1 ")
            client.sendall(b"json 500\n")
            self.assertRegex(client.recv(1000), rb"^pto-answer 1 ok \d+\n\{")

    def test_default(self):
        """Where nobody has switched it on SIGQUIT ends a process, and so in a fork of one where it is; who has a handler keeps it."""
        program = """
import os, signal, sys
import gi
gi.require_version("Pto", "1")
from gi.repository import Pto
def quit():
    os.kill(os.getpid(), signal.SIGQUIT)
    signal.pause()
def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if not (pid := os.fork()):
    Pto.Worker(platform="a2a3sim").start()
    assert not Pto.answer_is_on()
    quit()
assert ended(pid) == -signal.SIGQUIT
Pto.answer_start()
assert Pto.answer_is_on()
if not (pid := os.fork()):
    assert not Pto.answer_is_on()
    quit()
assert ended(pid) == -signal.SIGQUIT
if not (pid := os.fork()):
    Pto.answer_start()
    assert f"process {os.getpid()}," in Pto.Worker.ask_process(os.getpid())
    assert f"process {os.getppid()}," in Pto.Worker.ask_process(os.getppid())
    os._exit(0)
assert ended(pid) == 0
Pto.answer_stop()
assert signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL
came = []
signal.signal(signal.SIGQUIT, lambda *_: came.append(1))
Pto.answer_start()
os.kill(os.getpid(), signal.SIGQUIT)
Pto.answer_stop()
assert came == [1]
print("well")
"""
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS * 3, check=False)
        self.assertEqual((result.stdout, result.returncode), ("well\n", 0), result.stderr)

    def test_fork(self):
        """Forks while somebody asks all the time: neither hangs, and the copies are nobody who answers."""
        program = """
import os, signal, socket, threading
import gi
gi.require_version("Pto", "1")
from gi.repository import Pto
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
worker = Pto.Worker(platform="a2a3sim")
worker.start()
Pto.answer_start()
over, n = threading.Event(), 0
def ask():
    global n
    while not over.is_set():
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"\\0libpto/answer/{os.stat('/proc/self/ns/pid').st_ino}/{os.getpid()}")
            client.sendall(b"pto-ask 1 json 500\\n")
            text = b""
            while part := client.recv(65536):
                text += part
            assert text.startswith(b"pto-answer 1 ok ") and text.endswith(b"}"), text
            n += 1
thread = threading.Thread(target=ask)
thread.start()
for _ in range(30):
    if not (pid := os.fork()):
        os.kill(os.getpid(), signal.SIGQUIT)
        signal.pause()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGQUIT
while n < 10:
    pass
over.set()
thread.join()
print("well")
"""
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS * 3, check=False)
        self.assertEqual((result.stdout, result.returncode), ("well\n", 0), result.stderr)

    def test_environment(self):
        program = ("import gi; gi.require_version('Pto', '1'); from gi.repository import Pto\n"
                   "worker = Pto.Worker(platform='a2a3sim'); worker.start(); print(Pto.answer_is_on(), flush=True); input()")
        for value, told in ("1", "True\n"), ("0", "False\n"), ("", "False\n"):
            with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "PTO_ANSWER": value}) as other:
                self.assertEqual(other.stdout.readline(), told)
                if value == "1":
                    self.assertIn("L2/0: a2a3sim on par, no run is under way\n", Pto.Worker.ask_process(other.pid))
                other.communicate("\n")

    def test_closing(self):
        """Asked all the time while workers come, run and go."""
        over, seen = threading.Event(), set()

        def ask():
            while not over.is_set():
                state = json.loads(Pto.Worker.ask_process(0, "json"))
                for worker in state["workers"]:
                    run = worker.get("run")
                    seen.add(worker["path"])
                    if run:
                        assert run["completed"] <= run["submitted"] <= 40, run
                        for core in worker["cores"]:
                            assert core.get("kernel", "add") == "add" and int(core.get("task", "0").split(":")[-1]) < 40, core
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()

        def graph(orch, out):
            for _ in range(40):
                orch.submit(self.add, out.read(), out.no_dep())
        try:
            for worker in self.workers(isolate=(False,)):
                for _ in range(20):
                    worker.run(graph, self.out)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        self.assertEqual(seen, {"L2/0"})


METRIC = re.compile(r'^(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?P<labels>[^}]*)\})? (?P<value>[0-9.]+)$')


def parse_metrics(text):
    """As the specification has it: {family: (type, {labels: value})}. Everything of a family stands together, once."""
    families, current = {}, None
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""], lines[-3:]
    for line in lines[:-2]:
        if line.startswith("# "):
            word, name, rest = line[2:].split(" ", 2)
            assert word in ("TYPE", "UNIT", "HELP"), line
            if word == "TYPE":
                assert name not in families and rest in ("counter", "gauge"), line
                families[name] = current = [rest, {}]
                family = name
            assert name == family and not current[1], line
            if word == "UNIT":
                assert name.endswith("_" + rest), line
            continue
        found = METRIC.match(line)
        assert found, line
        assert found["name"] == family + ("_total" if current[0] == "counter" else ""), line
        labels = frozenset(re.fullmatch(r'(\w+)="((?:[^"\\]|\\.)*)"', part).groups() for part in (found["labels"] or "").split(",") if part)
        assert labels not in current[1], line
        current[1][labels] = float(found["value"])
    return families


@unittest.skipIf(np is None, "no numpy")
class Metrics(Asking):
    def value(self, metrics, name, **labels):
        found = [value for key, value in metrics[name][1].items() if set(labels.items()) <= set(key)]
        self.assertEqual(len(found), 1, (name, labels, metrics[name]))
        return found[0]

    def test_counters(self):
        """Against what the test counts itself; of runs that are over and of one that hangs."""
        for worker in self.workers(isolate=(False, True), backends=("par", "threads"), utilization=1):
            self.flag[0] = 1
            for _ in range(3):
                worker.run(self.chain, self.flag, self.out)
            over = parse_metrics(worker.dup_metrics())
            for name, value in (("pto_runs", 3), ("pto_failed_runs", 0), ("pto_tasks_submitted", 9), ("pto_tasks_completed", 9), ("pto_tasks_retired", 9),
                                ("pto_tasks_failed", 0), ("pto_edges", 6), ("pto_run_active", 0), ("pto_live_tasks_peak", 3)):
                self.assertEqual(self.value(over, name, worker="L2/0"), value, name)
            self.assertEqual(self.value(over, "pto_ring_tasks", ring="0"), 0)
            self.assertGreaterEqual(self.value(over, "pto_ring_heap_peak_bytes", ring="0"), 2048)
            self.assertEqual(self.value(over, "pto_cores", state="idle"), 72)
            self.assertEqual(over["pto_core_busy_seconds"][0], "counter")
            self.assertEqual(len(over["pto_core_busy_seconds"][1]), 72)
            busy_seconds = sum(over["pto_core_busy_seconds"][1].values())
            self.assertGreater(busy_seconds, 0)
            self.flag[0] = 0
            with Run(self.flag, worker.run, self.chain, self.flag, self.out):
                until(lambda: worker.doing, running, "a kernel runs")
                now = parse_metrics(worker.dup_metrics())
                for name, value in (("pto_runs", 3), ("pto_tasks_submitted", 12), ("pto_tasks_completed", 9), ("pto_tasks_retired", 9), ("pto_edges", 8),
                                    ("pto_run_active", 1)):
                    self.assertEqual(self.value(now, name), value, name)
                self.assertEqual([self.value(now, "pto_tasks", state=state) for state in ("running", "ready", "blocked")], [1, 0, 2])
                self.assertEqual([self.value(now, "pto_cores", state=state) for state in ("idle", "runs", "waits")], [71, 1, 0])
                self.assertEqual(self.value(now, "pto_ring_tasks", ring="0"), 3)
                for name, (kind, samples) in now.items():
                    for labels, value in samples.items() if kind == "counter" else ():
                        self.assertGreaterEqual(value, over[name][1][labels], (name, labels))
            self.assertEqual(self.value(parse_metrics(worker.dup_metrics()), "pto_tasks_retired"), 12)

    def test_back_pressure(self):
        for worker in self.workers(isolate=(False,), backends=("par", "threads"), task_window=4):
            with Run(self.flag, worker.run, self.full, self.flag, self.out):
                until(lambda: worker.doing, lambda s: running(s, doing="room"), "the ring is full")
                metrics = parse_metrics(worker.dup_metrics())
                self.assertEqual((self.value(metrics, "pto_backpressure_active"), self.value(metrics, "pto_backpressure_waits")), (1, 0))
                self.assertEqual((self.value(metrics, "pto_ring_tasks", ring="1"), self.value(metrics, "pto_ring_window_tasks", ring="1")), (3, 4))
            metrics = parse_metrics(worker.dup_metrics())
            self.assertEqual(self.value(metrics, "pto_backpressure_active"), 0)
            self.assertGreaterEqual(self.value(metrics, "pto_backpressure_waits"), 1)

    def test_failed(self):
        path = os.path.join(self.directory, "crash.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAD + "{ *(volatile int *) 8 = 1; }\n")
        crash = Pto.Callable.kernel(path)
        for worker in self.workers(isolate=(False,)):
            with self.assertRaises(GLib.Error):
                worker.run(lambda orch, out: orch.submit(crash, out.write_existing()), self.out)
            metrics = parse_metrics(worker.dup_metrics())
            self.assertEqual([self.value(metrics, "pto_" + name) for name in ("runs", "failed_runs", "tasks_submitted", "tasks_failed")], [1, 1, 1, 1])


    def test_failed_runs(self):
        """Whatever a run fails by, and where that is found, it is one more; also by which the chip's process dies, and of those before it."""
        kernels = {"crash": "{ *(volatile int *) 8 = 1; }", "kill": "{ kill (getpid (), SIGKILL); }", "lie": "{ cells (args[0])[0] = 3; }"}
        for name, text in kernels.items():
            path = os.path.join(self.directory, name + ".c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(HEAD.replace("\n", "\n#include <unistd.h>\n", 1) + text + "\n")
            kernels[name] = Pto.Callable.kernel(path)

        def raises(orch, out):
            orch.submit(self.add, out.update(), out.write_existing())
            raise KeyError("on purpose")
        checked = Pto.CallConfig(enable_access_check=1)
        for worker in self.workers(isolate=(False, True), backends=("par",)):
            runs = [(raises, None), (lambda orch, out: orch.submit(kernels["crash"], out.write_existing()), None),
                    (lambda orch, out: orch.submit(kernels["lie"], out.read()), checked)]
            if worker.props.isolate:
                runs.append((lambda orch, out: orch.submit(kernels["kill"], out.write_existing()), None))
            for failed, (function, config) in enumerate(runs):
                with self.assertRaises((GLib.Error, KeyError)):
                    worker.run(function, self.out, config=config)
                worker.run(lambda orch, out: orch.submit(self.add, out.read(), out.write_existing()), self.out)
                totals = worker.doing["totals"]
                self.assertEqual((totals["runs"], totals["failed_runs"]), (2 * failed + 2, failed + 1), failed)


for _name in [name for name in dir(Asking) if name.startswith("test_")]:
    setattr(Metrics, _name, None)  # these are asked once


def address(pid):
    return f"\0libpto/answer/{os.stat('/proc/self/ns/pid').st_ino}/{pid}"


def connect(pid):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(SECONDS)
    client.connect(address(pid))
    return client


def ask(pid, within=500):
    """All that is said."""
    with connect(pid) as client:
        client.sendall(b"pto-ask 1 json %d\n" % within)
        text = b""
        while part := client.recv(65536):
            text += part
        return text


def descriptors():
    return len(os.listdir("/proc/self/fd"))


PREFIX = """
import os, resource, signal, socket, subprocess, sys, threading
import gi
gi.require_version("Pto", "1")
from gi.repository import Pto
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
"""
ASKING = """
import os, socket, sys
pid = int(sys.argv[1])
name = f"\\0libpto/answer/{os.stat('/proc/self/ns/pid').st_ino}/{pid}"
while os.getppid() == pid:
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(name)
            client.sendall(b"pto-ask 1 json 300\\n")
            client.recv(65536)
    except OSError:
        pass
"""


class Trouble(unittest.TestCase):
    """Whoever asks, and whatever else there is in the process: neither it nor others are hurt."""
    def program(self, text, *words, **options):
        process = subprocess.Popen([sys.executable, "-c", PREFIX + text, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def finish(self, process, out="well\n"):
        said = process.communicate(timeout=SECONDS * 3)
        self.assertEqual((said[0], process.returncode), (out, 0), said[1])
        return said[1]

    def test_fork_while_asked(self):
        """A child that is forked while somebody is let in, refused or answered can begin to answer itself: no lock is held in it."""
        self.finish(self.program("""
Pto.answer_start()
askers = [subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())]) for _ in range(2)]
hung = 0
for _ in range(40):
    if not (pid := os.fork()):
        signal.alarm(3)
        Pto.answer_start()
        os._exit(0)
    hung += os.waitpid(pid, 0)[1] != 0
for asker in askers:
    asker.kill()
    asker.wait()
Pto.answer_stop()
print("well" if hung == 0 else f"{hung} hung")
""", ASKING))

    def test_fork_while_it_changes(self):
        """A copy that is made while it is switched on or off keeps neither the name nor a descriptor."""
        self.finish(self.program("""
over, failed = threading.Event(), []
def toggle():
    while not over.is_set():
        try:
            Pto.answer_start()
            Pto.answer_stop()
        except Exception as error:
            failed.append(str(error))
thread = threading.Thread(target=toggle)
thread.start()
pids, kept = [], 0
for _ in range(50):
    read, write = os.pipe()
    if not (pid := os.fork()):
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        os.write(write, b"%d" % sum(os.readlink(link).startswith("socket:") for link in links if os.path.islink(link)))
        signal.pause()
    pids.append(pid)
    kept += os.read(read, 10) != b"0"
    os.close(read)
    os.close(write)
over.set()
thread.join()
for pid in pids:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print("well" if not kept and not failed else f"{kept} kept a socket, {len(failed)} failed: {failed[:1]}")
"""))

    def test_full_standard_error(self):
        """SIGQUIT where nobody reads what is told: others are answered, and it can be switched off."""
        self.finish(self.program("""
import fcntl
read, write = os.pipe()
fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
os.set_blocking(write, False)
try:
    while True:
        os.write(write, b"x")
except BlockingIOError:
    os.set_blocking(write, True)
Pto.answer_start()
before = os.dup(2)
os.dup2(write, 2)
os.kill(os.getpid(), signal.SIGQUIT)
ask = "import gi, sys; gi.require_version('Pto', '1'); from gi.repository import Pto; print(Pto.Worker.ask_process(int(sys.argv[1])))"
for _ in range(2):
    told = subprocess.run([sys.executable, "-c", ask, str(os.getpid())], stdout=subprocess.PIPE, text=True, stderr=before, check=True)
    assert "no worker has started" in told.stdout, told
Pto.answer_stop()
os.dup2(before, 2)
print("well")
"""))

    def test_name_is_taken(self):
        """Somebody else listens where a process would: SIGQUIT does not end it, and it is asked in the directory of its user."""
        program = """
sys.stdin.readline()
worker = Pto.Worker(platform="a2a3sim")
worker.start()
print(Pto.answer_is_on(), flush=True)
sys.stdin.readline()
Pto.answer_stop()
print("well")
"""
        before = GLib.getenv("XDG_RUNTIME_DIR")
        for mode, words in ((0o755, r"process \d+ can be asked what it does by SIGQUIT \(Ctrl-\\\) only, not by pto top: it can not listen: "), (0o700, "")):
            with tempfile.TemporaryDirectory() as directory, self.subTest(mode=oct(mode)):
                os.chmod(directory, mode)
                process = self.program(program, env={**os.environ, "PTO_ANSWER": "1", "XDG_RUNTIME_DIR": directory},
                                       preexec_fn=lambda: signal.signal(signal.SIGQUIT, signal.SIG_DFL))
                with socket.socket(socket.AF_UNIX) as other:
                    other.bind(address(process.pid))
                    other.listen()
                    process.stdin.write("\n")
                    process.stdin.flush()
                    self.assertEqual(process.stdout.readline(), "True\n")
                    process.send_signal(signal.SIGQUIT)
                    text = ""
                    while "no run is under way" not in text:
                        line = process.stderr.readline()
                        self.assertNotEqual(line, "", text)
                        text += line
                    self.assertRegex(text, words or "^process ")
                    self.assertEqual("WARNING" in text, words != "")
                    GLib.setenv("XDG_RUNTIME_DIR", directory, True)
                    try:
                        if words:
                            with self.assertRaisesRegex(GLib.Error, rf"who listens where process {process.pid} would is process {os.getpid()} "):
                                Pto.Worker.ask_process(process.pid)
                        else:
                            self.assertIn("no run is under way", Pto.Worker.ask_process(process.pid))
                    finally:
                        GLib.setenv("XDG_RUNTIME_DIR", before, True) if before else GLib.unsetenv("XDG_RUNTIME_DIR")
                    process.stdin.write("\n")
                    self.finish(process)
                    self.assertEqual(os.listdir(directory), [])

    def test_no_descriptor_left(self):
        """It says nothing about that, and answers by the one that it has kept."""
        process = self.program("""
Pto.answer_start()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    print("full", flush=True)
sys.stdin.readline()
for fd in held:
    os.close(fd)
Pto.answer_stop()
print("well")
""")
        self.assertEqual(process.stdout.readline(), "full\n")
        for _ in range(3):
            self.assertIn("no worker has started", Pto.Worker.ask_process(process.pid))
        # Two at one time: the second one is let in when the first one has gone.
        with connect(process.pid) as first, connect(process.pid) as second:
            first.sendall(b"pto-a")
            second.sendall(b"pto-ask 1 json 500\n")
            first.shutdown(socket.SHUT_RDWR)
            self.assertRegex(second.recv(1000), rb"^pto-answer 1 ok ")
        process.stdin.write("\n")
        self.assertEqual(self.finish(process), "")

    def test_half_a_question(self):
        """Who has not asked yet, or does not read, has no descriptor of the process when it is switched off; nor do many have many."""
        for _ in range(2):
            Pto.answer_start()
            Pto.answer_stop()
        before = descriptors()
        for sent in b"pto-a", b"pto-ask 1 json 500\n", b"":
            Pto.answer_start()
            base = descriptors() + 40
            clients = [connect(os.getpid()) for _ in range(40)]
            for client in clients:
                client.sendall(sent)
            if not sent.endswith(b"\n"):
                until(descriptors, lambda n, base=base: n >= base + 32, "32 are let in")
            self.assertLessEqual(descriptors(), base + 32)
            Pto.answer_stop()
            for client in clients:
                client.close()
            self.assertEqual(descriptors(), before)


def hold_sub(args):
    while args[0][0] == 0:
        time.sleep(0.0005)
    args[1][0] = 7


@unittest.skipIf(np is None, "no numpy")
class Levels(unittest.TestCase):
    """Children, and what each of them does."""
    def setUp(self):
        self.flag, self.out = Pto.Buffer.array(1, "i4"), Pto.Buffer.array(1, "i4")
        Pto.answer_start()
        self.addCleanup(Pto.answer_stop)

    def test_sub(self):
        for mode in "process", "thread":
            with self.subTest(mode=mode), Pto.Worker(level=3, sub_workers=2, child_mode=Pto.ChildMode.PROCESS if mode == "process" else Pto.ChildMode.THREAD) as host:
                self.flag[0] = self.out[0] = 0
                handle = host.register(hold_sub)

                def graph(orch, flag, out):
                    orch.submit_sub(handle, [flag.read(), out.write_existing()])
                    orch.submit_sub(handle, [flag.read(), out.update()])
                with Run(self.flag, host.run, graph, self.flag, self.out):
                    state = until(lambda: host.doing, lambda s: s and s.get("run") and s["run"]["submitter"]["doing"] == "end"
                                  and any(child.get("for_ns", 0) > 250_000_000 for child in s["children"]), "a function blocks")
                    rows = {child["path"]: child for child in state["children"]}
                    self.assertEqual(sorted(rows), ["L3/0/sub0", "L3/0/sub1"])
                    row = rows["L3/0/sub0"]
                    self.assertEqual([row[name] for name in ("kind", "life", "task", "kernel", "state", "member")], ["sub", "busy", "0", "hold_sub", "running", 0])
                    self.assertEqual("pid" in row, mode == "process")
                    if mode == "process":
                        with self.assertRaisesRegex(GLib.Error, rf"process {row['pid']} is a SUB worker of process {os.getpid()}: ask that one"):
                            Pto.Worker.ask_process(row["pid"])
                    self.assertEqual([rows["L3/0/sub1"][name] for name in ("life", "lives")], ["idle", 1])
                    self.assertLessEqual(row["for_ns"], state["run"]["for_ns"] + 100_000_000)
                    run = state["run"]
                    self.assertEqual([run[name] for name in ("submitted", "completed", "running", "ready", "blocked")], [2, 0, 1, 0, 1])
                    self.assertEqual([(w["task"], w["needs"], w["after"][0]["task"]) for w in run["waiting"]], [("1", "SUB workers", "0")])
                    self.assertRegex(host.describe_state(), r"\n  sub0 +runs task 0 \(hold_sub\), for [\d.]+ m?s")
                    metrics = parse_metrics(host.dup_metrics())
                    self.assertEqual(sorted((dict(labels)["state"], value) for labels, value in metrics["pto_children"][1].items()),
                                     [("away", 0), ("busy", 1), ("idle", 1)])
                self.assertEqual(self.out[0], 7)

    def test_failed_runs(self):
        """On levels 3 and 4: by its function, by what it has called, and by a task of a worker below."""
        def fail(args):
            raise ValueError("on purpose")

        def raises(orch):
            raise KeyError("on purpose")

        def look(worker, function, error, expected):
            with self.assertRaises(error) if error else contextlib.nullcontext():
                worker.run(function)
            totals = worker.doing["totals"]
            self.assertEqual((totals["runs"], totals["failed_runs"]), expected)
        with Pto.Worker(level=3, sub_workers=1) as host:
            fails = host.register(fail)
            look(host, lambda orch: None, None, (1, 0))
            look(host, lambda orch: orch.submit_sub(fails), ValueError, (2, 1))
            look(host, raises, KeyError, (3, 2))
            look(host, lambda orch: None, None, (4, 2))
        l3 = Pto.Worker(level=3, sub_workers=1)
        fails = l3.register(fail)
        with Pto.Worker(level=4) as w4:
            w4.add_worker(l3)
            inner = w4.register(lambda orch, args, config: orch.submit_sub(fails))
            look(w4, lambda orch: orch.submit_next_level(inner), ValueError, (1, 1))
            below, = w4.doing["children"][0]["below"]
            self.assertEqual((below["totals"]["runs"], below["totals"]["failed_runs"]), (1, 1))
            look(w4, raises, KeyError, (2, 2))

    def states(self, pid):
        states = set()
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as file:
                states.add(file.read().rsplit(")", 1)[1].split()[0])
        return states

    def test_tree(self):
        """Level 4, with a function of level 3 below it that blocks; what is below answers itself."""
        l3 = Pto.Worker(level=3, sub_workers=1)
        with Pto.Worker(level=4) as w4:
            w4.set_parameter("stop-timeout", 0)
            self.flag[0] = self.out[0] = 0

            def block():
                hold_sub([self.flag, self.out])
            sub = l3.register(block)

            def inner(orch, args, config):
                orch.submit_sub(sub)
            handle = w4.register(inner)
            w4.add_worker(l3)

            def outer(orch, flag, out):
                orch.submit_next_level(handle, [flag.read(), out.write_existing()])
            with Run(self.flag, w4.run, outer, self.flag, self.out):
                def blocks(state):
                    if not state or not state.get("run") or not state["children"][0].get("below"):
                        return False
                    below = state["children"][0]["below"][0]
                    return bool(below.get("run")) and "task" in below["children"][0] and below["run"]["submitter"]["doing"] == "end"
                state = until(lambda: w4.doing, blocks, "a function below blocks")
                row, = state["children"]
                self.assertEqual([row[name] for name in ("path", "level", "task", "kernel")], ["L4/0/L3/0", 3, "0", "inner"])
                below, = row["below"]
                self.assertEqual((below["path"], below["level"], below["run"]["submitted"]), ("L4/0/L3/0", 3, 1))
                self.assertEqual([below["children"][0][name] for name in ("path", "task", "kernel")], ["L4/0/L3/0/sub0", "0", "block"])
                self.assertRegex(w4.describe_state(), r"(?s)^process .*\nL4/0: .*\n  L3/0 +runs task 0 \(inner\).*\n    L4/0/L3/0: .*\n      sub0 +runs task 0 \(block\)")
                # The child by itself, and one that stands still.
                alone = json.loads(Pto.Worker.ask_process(row["pid"], "json"))
                self.assertEqual((alone["pid"], alone["workers"][0]["path"]), (row["pid"], "L4/0/L3/0"))
                os.kill(row["pid"], signal.SIGSTOP)
                try:
                    until(lambda: self.states(row["pid"]), lambda states: states == {"T"}, "all of its threads stand still")
                    stopped, = w4.doing["children"]
                    self.assertEqual((stopped["task"], stopped["kernel"]), ("0", "inner"))
                    self.assertRegex(stopped["silent"], rf"^process {row['pid']} has not answered within \d+ ms \(is it stopped\?\)$")
                    # Who waits for it for long does not keep others from being answered, nor this from being switched off.
                    with connect(os.getpid()) as patient:
                        patient.sendall(b"pto-ask 1 json 60000\n")
                        for _ in range(2):
                            self.assertIn(b"has not answered within 7 ms", ask(os.getpid(), 7))
                        Pto.answer_stop()
                        self.assertEqual(patient.recv(1), b"")
                    Pto.answer_start()
                finally:
                    os.kill(row["pid"], signal.SIGCONT)
            self.assertEqual(self.out[0], 7)


if __name__ == "__main__":
    tap.main()
