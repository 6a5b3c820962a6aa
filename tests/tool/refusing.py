# refusing.py: how does a program do without one of its system calls?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs programs with tests/tool/refuse.c in them, and answers for the system.

A call is the library's if its process has not begun another program: what a compiler calls is left alone."""
import errno
import fcntl
import functools
import os
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading

RECEIVE, SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND
CONTINUE = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
NO_FILTERS = 98
TIMED_OUT = "is not over in time"


@functools.cache
def names():
    """The system calls of this machine by their numbers."""
    text = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", os.devnull], capture_output=True, encoding="utf-8",
                          check=True).stdout
    return {int(number): name for name, number in re.findall(r"#define __NR_(\w+) (\d+)\n", text)}


class Processes:
    """Which of them have begun another program."""

    def __init__(self):
        self.of_thread = {}
        self.others = set()

    def get(self, thread):
        process = self.of_thread.get(thread)
        if process is None:
            try:
                with open(f"/proc/{thread}/status", encoding="utf-8") as file:
                    process, parent = (int(number) for number in re.findall(r"^(?:Tgid|PPid):\t(\d+)$", file.read(), re.M))
            except OSError:  # it has been killed meanwhile
                return thread
            if process not in self.of_thread and parent in self.others:
                self.others.add(process)
            self.of_thread[process] = self.of_thread[thread] = process
        return process


def answer(fd, stop, tell):
    """Until the program is over; tell(process, number) is the error of a call, 0 to let it pass."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(stop, select.POLLIN)
    while True:
        events = dict(poll.poll())
        if not events.get(fd, 0) & select.POLLIN:
            if stop in events or events.get(fd, 0):
                return
            continue
        call = bytearray(80)
        try:
            fcntl.ioctl(fd, RECEIVE, call)
            cookie, thread, _, number = struct.unpack_from("<QIIi", call)
            error = tell(thread, number)
            fcntl.ioctl(fd, SEND, struct.pack("<QqiI", cookie, 0, -error, 0 if error else CONTINUE))
        except OSError as problem:
            if problem.errno not in (errno.ENOENT, errno.EINTR):  # it has been killed meanwhile
                raise


def run(library, argv, what, tell, timeout, **how):
    """Its status, TIMED_OUT if it was not over, output and errors."""
    ours, its = socket.socketpair()
    stop, over = os.pipe()
    with ours, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        environment = dict(how.pop("env", os.environ), LD_PRELOAD=library, PTO_TEST_REFUSE=f"{its.fileno()}{what}")
        with its:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, pass_fds=[its.fileno()],
                                       env=environment, start_new_session=True, **how)
        fds = socket.recv_fds(ours, 1, 1)[1]
        thread = threading.Thread(target=answer, args=(fds[0], stop, tell)) if fds else None
        if fds:
            thread.start()
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = TIMED_OUT
        # Processes that it has left are in its session.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        os.close(over)
        if fds:
            thread.join()
            os.close(fds[0])
        os.close(stop)
        out.seek(0)
        errors.seek(0)
        return status, out.read(), errors.read()


def record(library, argv, timeout=240, **how):
    """What the library calls: how often, by number; and status, output, errors."""
    processes, counts = Processes(), {}
    execve = next(number for number, name in names().items() if name == "execve")

    def tell(thread, number):
        process = processes.get(thread)
        if process not in processes.others:
            counts[number] = counts.get(number, 0) + 1
            if number == execve:
                processes.others.add(process)
        return 0

    return counts, *run(library, argv, "", tell, timeout, **how)


def refuse(library, argv, number, error, first=0, timeout=60, **how):
    """Runs it, with the library's calls of that number refused from the first on; status, output, errors."""
    processes, count = Processes(), 0
    execve = next(number for number, name in names().items() if name == "execve")

    def tell(thread, called):
        nonlocal count
        process = processes.get(thread)
        if process in processes.others:
            return 0
        if called == number:
            count += 1
            if count > first:
                return error
        if called == execve:
            processes.others.add(process)
        return 0

    return run(library, argv, f",{number}", tell, timeout, **how)
