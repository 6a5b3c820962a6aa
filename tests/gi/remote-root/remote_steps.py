# remote_steps.py: what does a remote worker import?
# SPDX-License-Identifier: LGPL-2.1-or-later
import ctypes
import os
import signal
import sys
import time

from gi.repository import GLib


def double(args):
    x, y = args
    y[:] = x * 2


def layer(orch, args, config):
    """x, y: what it submits was registered where the worker was added, and is found by name."""
    x, y = args.get_tensor(0), args.get_tensor(1)
    orch.submit_sub(orch.worker.lookup("double"), [x.read(), y.write_existing()])


def on_chip(orch, args, config):
    """y, value: by a kernel on a chip of the remote worker."""
    y = args.get_tensor(0)
    orch.submit_next_level(orch.worker.lookup("fill_orch"), [y.write_existing(), y.get_n_elements(), args[1]])


def which(orch, args, config):
    args[0][0] = os.getpid()


def tell(orch, args, config):
    """y, and a line of what is printed there."""
    print(f"this is {os.getpid()}", file=sys.stderr, flush=True)
    args[0][0] = os.getpid()


def mutter(orch, args, config):
    """y, and a line that does not end."""
    print("without an end", file=sys.stderr, flush=True, end="")
    args[0][0] = os.getpid()


def chatter(orch, args, config):
    """y, and more than a pipe holds."""
    for i in range(10000):
        print("chatter", i, file=sys.stderr, flush=True)
    args[0][0] = os.getpid()


class Unwilling(Exception):
    pass


def explode(orch, args, config):
    raise Unwilling("no layer", 7)


def note(orch, args, config):
    """out, i, is broken: i + 1 and who has run it."""
    if args[2]:
        raise Unwilling(f"no {args[1]}")
    args[0][:] = args[1] + 1, os.getpid()


LONG = "no layer, " * 150


def explain(orch, args, config):
    raise Unwilling(LONG)


def mix(orch, args, config):
    """a, b, out, s: all read, out written over."""
    a, b, out, scale = args[0], args[1], args[2], args[3]
    out[:] = (out * 3 + int(a.sum()) * scale + int(b.sum())) % 1009


def fill(orch, args, config):
    """out, s: written only."""
    out = args[0]
    assert not out.any()
    out[:] = args[1]


def mix_then_fail(orch, args, config):
    mix(orch, args, config)
    raise Unwilling("what it has written is nobody's")


def stop(orch, args, config):
    os.kill(os.getpid(), 9)


def nap(args):
    time.sleep(0.02)


def chip_then_nap(orch, args, config):
    """y: filled with 1.0 by a chip, and then looked at by a function that takes 20 ms at least."""
    y = args.get_tensor(0)
    orch.submit_next_level(orch.worker.lookup("fill_orch"), [y.write_existing(), y.get_n_elements(), args[1]])
    orch.submit_sub(orch.worker.lookup("nap"), [y.read()])


def many(orch, args, config):
    """x, y, n: more records than one message may have."""
    x, y = args.get_tensor(0), args.get_tensor(1)
    double = orch.worker.lookup("double")
    for _ in range(args[2]):
        orch.submit_sub(double, [x.read(), y.write_existing()])


def stand_still(orch, args, config):
    """y: until somebody lets it go on."""
    os.kill(os.getpid(), signal.SIGSTOP)
    args[0][0] = os.getpid()


def hold(orch, args, config):
    """y: 1.5 s in which no other line of Python runs."""
    ctypes.PyDLL(None).usleep(1500000)
    args[0][0] = os.getpid()


def add_in_place(orch, args, config):
    args[0][:] = args[0] + args[1]


def copy(orch, args, config):
    """x, y"""
    args[1][:] = args[0]


def copy_again(orch, args, config):
    copy(orch, args, config)


def which_sub(args):
    args[0][0] = os.getpid()


def which_below(orch, args, config):
    """found: who runs it if nobody is named, and if the second is; 1 if the first is refused."""
    handle, found = orch.worker.lookup("which_sub"), args.get_tensor(0)
    for i, worker in enumerate((-1, 1)):
        orch.submit_sub(handle, [found.view([1], [i]).write_existing()], worker=worker)
    try:
        orch.submit_sub(handle, [found.view([1], [2]).write_existing()], worker=0)
    except Exception as error:
        args[0][2] = "is not registered on worker 0 of L4/0/L3/0, but on 1" in str(error)


def own_path(orch, args, config):
    args[0][0] = int(orch.worker.dup_path().rpartition("/")[2])


def say(args):
    print("function", args[0], file=sys.stderr, flush=True)


def say_all(orch, args, config):
    """i: in pieces, an empty line, a line of GLib's, and one of a function below."""
    os.write(2, b"orches")
    os.write(2, b"tration %d\n\n" % args[0])
    GLib.log_variant(None, GLib.LogLevelFlags.LEVEL_MESSAGE, GLib.Variant("a{sv}", {"MESSAGE": GLib.Variant("s", f"logged {args[0]}")}))
    orch.submit_sub(orch.worker.lookup("say"), [args[0]])


def hold_for_ever(orch, args, config):
    """No other line of Python runs; that it has begun, a file says."""
    open(os.environ["PTO_TEST_MARK"], "w").close()
    ctypes.PyDLL(None).sleep(600)


def wait_for_mark(orch, args, config):
    """y: until a file is there."""
    while not os.path.exists(os.environ["PTO_TEST_MARK"]):
        time.sleep(0.002)
    args[0][0] = os.getpid()


class Kept:
    def __init__(self, value):
        self.value = value

    def add(self, orch, args, config):
        args[1][:] = args[0] + self.value

    def __call__(self, orch, args, config):
        args[1][:] = self.value - args[0]
