# PtoInterrupts.py: what do signals, such as that of Ctrl-C, do while Python is in the library?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Python calls the handler of a signal when the main thread is back from C, which is when a run is over. What its own handler in C
# does at once is to write to a descriptor: a thread reads there, and calls the handler where the main thread can not.
import collections
import contextlib
import os
import signal
import socket
import sys
import threading
import time
import types
from _signal import getsignal, signal as set_handler  # those of signal make members of enumerations, which takes five times as long

from gi.repository import Gio, GLib

_SIGNALS = sorted(map(int, signal.valid_signals()))
_PATIENCE_MS = 20  # for a function, which mostly hears of it at once


class Interrupts:
    """Signals that have a handler in Python, while the main thread is in C: what the handler raises cancels that, and is raised behind it."""
    cancellable, state, raised, noted, before = None, None, None, False, -1

    def __init__(self):
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        self.descriptor = self.writer.fileno()
        self.settled = threading.Event()
        self.found, self.handlers = [], {}  # what stands in for each of these is note
        self.lock = threading.RLock()  # guards what follows; a handler may be called inside of another one
        self.called = set()  # here; the main thread will be told of them, too
        self.answered = collections.Counter()  # by the main thread; the reader will be told of them, too
        self.note = self.hear_there  # one object, to know it by
        threading.Thread(target=self.watch, name="pto-interrupts", daemon=True).start()

    def watch(self):
        while data := self.reader.recv(64):
            for number in data:
                if number == 0:
                    self.settled.set()
                else:
                    self.hear_here(number)

    def hear_here(self, number):
        state, before = self.state, self.before
        if state is None:
            return
        if before >= 0:  # an event loop's, which wants to know, too
            with contextlib.suppress(OSError):
                os.write(before, bytes([number]))
        if getsignal(number) is not self.note:  # the function has set another one, which is Python's own to call
            return
        for wait in range(_PATIENCE_MS if state.in_function else 0, -1, -1):
            with self.lock:
                if self.answered[number] > 0:
                    self.answered[number] -= 1
                    return
                if wait == 0:
                    self.called.add(number)
            if wait > 0:
                time.sleep(0.001)
        self.call(number, sys._current_frames().get(threading.main_thread().ident))

    def hear_there(self, number, frame):
        """Raised in Python code, noted elsewhere: there is nobody to raise it to between here and C, nor while PyGObject
        makes an exception of an error."""
        may_raise = self.state is not None and self.state.in_function and (
            frame is None or frame.f_globals.get("__name__") != "gi._error")
        with self.lock:
            is_called = number in self.called
            self.called.discard(number)
            self.answered[number] += not is_called
        self.noted = True
        if not is_called:
            self.call(number, frame)
        if may_raise and self.raised is not None:
            raise self.raised

    def call(self, number, frame):
        self.noted = True
        try:
            self.handlers[number](number, frame)
        except BaseException as exception:
            self.raised = self.raised or exception
            cancellable = self.cancellable  # the run may end just now
            if cancellable is not None:
                cancellable.cancel()

    def settle(self):
        """What was written is read, so that it is not heard in the next run."""
        self.settled.clear()
        try:
            with contextlib.suppress(BlockingIOError):
                self.writer.send(b"\0")
                self.settled.wait()
        finally:
            self.called.clear()
            self.answered.clear()

    @contextlib.contextmanager
    def watched(self, cancellable, state):
        """Inside of another one it is the inner one that is cancelled, and the outer one's function has it raised."""
        outer = self.cancellable, self.state
        try:
            if outer[1] is None:
                self.begin(cancellable, state)
            self.cancellable, self.state = cancellable, state
            yield
        except GLib.Error as error:
            if self.raised is None:
                raise
            self.raised.__cause__ = self.raised.__cause__ or error
        finally:
            try:
                if outer[1] is None:
                    self.end()
            finally:
                self.cancellable, self.state = outer
                if outer[1] is None:
                    self.before = -1
        if self.raised is not None:
            raised, self.raised = self.raised, None
            raise raised

    def begin(self, cancellable, state):
        self.raised, self.noted = None, False
        self.before = signal.set_wakeup_fd(self.descriptor, warn_on_full_buffer=False)
        self.cancellable, self.state = cancellable, state
        for number in self.handlers:
            set_handler(number, self.note)

    def end(self):
        """A handler that is back may raise what it likes from here: a second Ctrl-C."""
        try:
            self.restore()
            if self.noted:
                self.settle()
        except BaseException:
            self.restore()
            raise

    def restore(self):
        signal.set_wakeup_fd(self.before)
        for number, handler in self.handlers.items():
            if getsignal(number) is self.note:  # or the function has set another one
                set_handler(number, handler)

    def forget(self):
        """In a child process, which does not have the thread: it has what there was before the run."""
        for number, handler in self.handlers.items():
            if getsignal(number) is self.note:
                set_handler(number, handler)
        descriptor = signal.set_wakeup_fd(-1)
        with contextlib.suppress(ValueError, OSError):  # another hook may have closed it
            signal.set_wakeup_fd(self.before if descriptor == self.descriptor else descriptor)


_interrupts = []  # one, once it is needed
_own = threading.local()  # is_forking: the library makes a child of its own


def _pass_by(*_):
    pass


def _after_fork():
    """Ctrl-C goes to all processes at a terminal. A child of the library's leaves it to the parent, which cancels the run. A child
    that the program makes, also inside of such a child, hears it as without the library."""
    if _interrupts:
        _interrupts.pop().forget()
    is_own = getattr(_own, "is_forking", False)
    if is_own:
        signal.set_wakeup_fd(-1)  # an event loop of the parent listens there
    before, after = (signal.default_int_handler, _pass_by) if is_own else (_pass_by, signal.default_int_handler)
    if getsignal(signal.SIGINT) is before:
        set_handler(signal.SIGINT, after)


os.register_at_fork(after_in_child=_after_fork)


def fork():
    """A child of the library's."""
    _own.is_forking = True
    try:
        return os.fork()
    finally:
        _own.is_forking = False


def interruptible(cancellable, state):
    """For a call whose callback keeps the state."""
    if threading.current_thread() is not threading.main_thread():
        return contextlib.nullcontext()
    if _interrupts and _interrupts[0].state is not None:
        return _interrupts[0].watched(cancellable, state)
    found = list(map(getsignal, _SIGNALS))
    if not _interrupts:
        _interrupts.append(Interrupts())
    if found != _interrupts[0].found:
        _interrupts[0].found = found
        _interrupts[0].handlers = {number: handler for number, handler in zip(_SIGNALS, found) if callable(handler)}
    return _interrupts[0].watched(cancellable, state)


@contextlib.contextmanager
def interruptible_use():
    """For a call that looks at the current cancellable of its thread, which a program may have pushed."""
    cancellable = Gio.Cancellable.get_current() or Gio.Cancellable()
    with interruptible(cancellable, types.SimpleNamespace(in_function=False)):
        cancellable.push_current()
        try:
            yield
        finally:
            cancellable.pop_current()
