# PtoInterrupts.py: what does Ctrl-C do while Python is in the library?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import os
import signal
import socket
import threading

from gi.repository import GLib


class Interrupts:
    """Ctrl-C while the main thread is in C: Python's handler runs later, its wake-up descriptor is written at once."""
    cancellable, state, noted = None, None, False

    def __init__(self):
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        self.settled = threading.Event()
        threading.Thread(target=self.watch, name="pto-interrupts", daemon=True).start()

    def watch(self):
        while data := self.reader.recv(64):
            cancellable = self.cancellable
            if signal.SIGINT in data and cancellable is not None:
                cancellable.cancel()
            if 0 in data:
                self.settled.set()

    def settle(self):
        """What was written is read, so that it does not cancel the next run."""
        self.settled.clear()
        with contextlib.suppress(BlockingIOError):
            self.writer.send(b"\0")
            self.settled.wait()

    def note(self, _, frame):
        """Raised in Python code, noted elsewhere: there is nobody to raise it to between here and C, nor while PyGObject
        makes an exception of an error."""
        self.noted = True
        if self.state.in_function and (frame is None or frame.f_globals.get("__name__") != "gi._error"):
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def watched(self, cancellable, state):
        self.cancellable, self.state, self.noted = cancellable, state, False
        signal.signal(signal.SIGINT, self.note)
        before = signal.set_wakeup_fd(self.writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        except GLib.Error as error:
            if not self.noted:
                raise
            raise KeyboardInterrupt from error
        finally:
            signal.set_wakeup_fd(before)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.cancellable = self.state = None
            if self.noted:
                self.settle()
        if self.noted:
            raise KeyboardInterrupt


_interrupts = []  # one, once it is needed


def _forget_interrupts():
    """A child process has neither the thread nor the wish: Ctrl-C is its parent's to handle."""
    if _interrupts:
        _interrupts.clear()
        signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_forget_interrupts)


def interruptible(cancellable, state):
    """For a run whose callback keeps the state."""
    if (threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not signal.default_int_handler):
        return contextlib.nullcontext()
    if not _interrupts:
        _interrupts.append(Interrupts())
    return _interrupts[0].watched(cancellable, state)
