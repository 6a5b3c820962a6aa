#!/usr/bin/env python3
# test_refused_calls.py: does a run give the right result, or an error that names the call, where the system refuses one?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# usage: test_refused_calls.py PTO REFUSE TWO_CHIPS
#
# And where a container lacks a file or a user. The calls are found, not listed: a first run tells all that the library makes.
# Then each is refused, with EPERM and with ENOSYS. PTO_TEST_TIMES tries all of them, and each once more from its middle on;
# otherwise it is one in four, others in each program.
import errno
import os
import re
import shutil
import subprocess
import sys

import pto_test
import refusing
from pto_test import EXAMPLES, PROGRAM, PtoTest

REFUSE = os.path.abspath(sys.argv.pop(1))
TWO_CHIPS = os.path.abspath(sys.argv.pop(1))
VECTOR = os.path.join(EXAMPLES, "vector")
EVERY = 1 if "PTO_TEST_TIMES" in os.environ else 12 if "PTO_TEST_SHORT" in os.environ else 4
# What the library has checked at its begin, since the C library ends the program, or waits for ever, where it is refused later.
NEEDED = ("brk", "exit", "exit_group", "futex", "getpid", "getppid", "gettid", "rseq", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn")
SPAWNED = "posix_spawn"  # it makes several calls, some in the child, and gives one error for all
THREAD = r"\bthread\b"  # pthread_create() makes several as well
WORDS = {
    "clone": ("fork", SPAWNED, THREAD),  # the C library's fork()
    "clone3": ("fork", SPAWNED, THREAD),
    "close": (SPAWNED,),
    "dup3": ("dup2",),
    "dup2": (SPAWNED,),
    "eventfd2": ("eventfd",),
    "execve": (SPAWNED,),
    "mmap": (SPAWNED, THREAD, "No stack"),  # the memory of a stack
    "mprotect": (SPAWNED, THREAD, "No stack"),
    "newfstatat": (r"\bf?stat\b",),
    "openat": (SPAWNED, "can not be read"),  # the file is named
    "ppoll": ("poll",),
    "pread64": ("pread",),
    "prlimit64": ("rlimit",),
    "read": ("can not be read",),
    "sendto": ("send",),
    "setpgid": (SPAWNED,),
    "write": ("",),  # nothing can be printed
}


class RefusedCalls(PtoTest):
    def each(self, offset, wanted, *argv):
        """Refuses what the program calls; wanted is in the output of a run that goes well."""
        how = {"cwd": self.directory, "env": self.environment}
        calls, status, out, errors = refusing.record(REFUSE, argv, **how)
        if status == refusing.NO_FILTERS:
            self.skipTest(errors)
        self.assertEqual((status, wanted in out), (0, True), errors)
        names = refusing.names()
        self.assertIn("futex", [names[number] for number in calls])
        for number in sorted(calls)[offset % EVERY::EVERY]:
            for error in errno.EPERM, errno.ENOSYS:
                for first in (0, calls[number] // 2) if EVERY == 1 and names[number] not in NEEDED else (0,):
                    with self.subTest(call=names[number], error=errno.errorcode[error], first=first):
                        status, out, errors = refusing.refuse(REFUSE, argv, number, error, first, **how)
                        self.assertNotEqual(status, refusing.TIMED_OUT)
                        self.assertGreaterEqual(status, 0, errors)
                        if status == 0:
                            self.assertTrue(wanted in out or names[number] == "write", out)
                        elif first == 0:
                            self.assertRegex(errors, "|".join((names[number], *WORDS.get(names[number], ()))))

    def test_chip_of_its_own_process(self):
        self.passes("run", VECTOR)  # built
        self.each(0, "PASS", PROGRAM, "run", VECTOR)

    def test_chip_with_threads(self):
        self.passes("run", VECTOR)
        self.each(1, "PASS", PROGRAM, "run", "--no-isolate", "--backend", "threads", VECTOR)

    def test_level_3(self):
        self.each(2, "PASS", TWO_CHIPS, os.path.join(EXAMPLES, "two-chips", "partial-sum"))


class Missing(PtoTest):
    """What a small container lacks."""

    PROGRAMS = (PROGRAM, "run", VECTOR), (PROGRAM, "run", "--no-isolate", VECTOR), (TWO_CHIPS, os.path.join(EXAMPLES, "two-chips", "partial-sum"))

    def start_each(self, *before, environment=None, **how):
        for argv in self.PROGRAMS:
            with self.subTest(argv=argv):
                yield subprocess.run([*before, *argv], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                                     env=self.environment if environment is None else environment, timeout=pto_test.DEADLINE, check=False, **how)

    def test_dev_null(self):
        """A compiler needs it, and the message says that it is missing."""
        without = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh")
        if shutil.which("unshare") is None or subprocess.run([*without, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no name spaces")
        for done in self.start_each(*without, cwd=self.directory):
            self.assertIn(done.returncode, (1, 3), done.stderr)
            self.assertRegex(done.stderr.splitlines()[-1], r"/cc\S* can not be run: /dev/null: No such file or directory$")

    def test_user_without_a_name(self):
        """No entry for the user, no HOME: what is built is kept for this process, and a warning names the variable to set."""
        user = 1 << 20 | 4321
        environment = {name: value for name, value in self.environment.items() if name not in ("HOME", "USER", "LOGNAME", "XDG_CACHE_HOME")}
        before, how = (), {"user": user, "group": user, "extra_groups": ()}
        if os.geteuid() != 0:
            before, how = ("unshare", "--user", f"--map-user={user}"), {}
        try:
            done = subprocess.run([*before, PROGRAM, "--version"], env=environment, cwd="/", capture_output=True, check=False, **how)
            can = done.returncode == 0 and not os.access("/.cache", os.F_OK)
        except OSError:
            can = False
        if not can:
            self.skipTest("no other user can start it here")
        for done in self.start_each(*before, environment=environment, cwd="/", **how):
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("PASS", done.stdout)
            kept = re.search(r"/\.cache/libpto can not be written: .*: what is built is kept in (\S+) and removed when this process ends; "
                             "name a directory of your own in XDG_CACHE_HOME", done.stderr)
            self.assertIsNotNone(kept, done.stderr)
            self.assertFalse(os.path.exists(kept[1]))


pto_test.tap.main()
