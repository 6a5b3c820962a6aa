#!/usr/bin/env python3
# test_pto_terminal.py: what does the pto program do for who looks on, and leave alone for who does not?
# SPDX-License-Identifier: LGPL-2.1-or-later
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

import pto_test
from pto_test import DEADLINE, EXAMPLES, FLOAT32, PROGRAM, PtoTest

GOOD, BAD, PLAIN = "\x1b[32m", "\x1b[1;31m", "\x1b[0m"


class TerminalTest(PtoTest):
    def setUp(self):
        super().setUp()
        for name in ("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
            self.environment.pop(name, None)
        self.environment["TERM"] = "xterm"

    def begin(self, *words, columns=80, environment=None, piped=False):
        """Standard error is a terminal; standard output, too, unless it is piped."""
        self.master, terminal = pty.openpty()
        self.addCleanup(os.close, self.master)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        attributes = termios.tcgetattr(terminal)
        attributes[1] &= ~termios.OPOST  # what is written is what is read
        termios.tcsetattr(terminal, termios.TCSANOW, attributes)
        self.process = subprocess.Popen([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if piped else terminal,
                                        stderr=terminal, cwd=self.directory, env=dict(self.environment, **(environment or {})))
        os.close(terminal)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.said = b""

    def read(self, until=None):
        """All that is written, or what is there when that is so."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if until is not None and until(self.said.decode("utf-8", "replace")):
                return self.said.decode("utf-8", "replace")
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    more = os.read(self.master, 65536)
                except OSError:  # nobody has it open any more
                    more = b""
                self.said += more
                if not more and until is None:
                    return self.said.decode("utf-8")
                self.assertTrue(more, self.said)
        self.fail(f"it did not come: {self.said}")
        return None

    def on_terminal(self, *words, status=0, **options):
        self.begin(*words, **options)
        text = self.read()
        out = self.process.stdout.read().decode("utf-8") if self.process.stdout is not None else None
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.assertEqual(self.process.wait(timeout=DEADLINE), status, text)
        return text if out is None else (out, text)


class Colours(TerminalTest):
    def setUp(self):
        super().setUp()
        self.vector = os.path.join(EXAMPLES, "vector")
        self.passes("run", self.vector)

    def wrong(self):
        self.copy_example(dtype=FLOAT32, got=0, expected=0x3f800000)
        self.pto("run", "copy")

    def test_terminal(self):
        self.assertIn(f"  result        {GOOD}PASS{PLAIN}  max error 0\n", self.on_terminal("run", self.vector))
        self.wrong()
        text = self.on_terminal("run", "copy", status=1)
        self.assertIn(f"  result        {BAD}FAIL{PLAIN}  max error 1\n", text)
        self.assertIn(f"{BAD}pto:{PLAIN} copy: case \"plain\": 5 of 6 elements are wrong", text)
        self.assertIn(f"  in order      {GOOD}PASS{PLAIN}  max error 0\n", self.on_terminal("explore", self.vector, "--budget", "1"))
        self.assertRegex(self.on_terminal("doctor"), r"\n  \x1b\[32mok\x1b\[0m       headers   ")

    def test_each_stream(self):
        """Standard output is a pipe: only what goes to the terminal has colours."""
        self.wrong()
        out, text = self.on_terminal("run", "copy", status=1, piped=True)
        self.assertIn("  result        FAIL  max error 1\n", out)
        self.assertNotIn("\x1b", out)
        self.assertIn(f"{BAD}pto:{PLAIN} copy", text)

    def test_piped(self):
        self.wrong()
        for environment in ({}, {"CLICOLOR_FORCE": "1"}, {"CLICOLOR": "1"}):
            result = self.pto("run", "copy", environment=environment)
            self.assertNotIn("\x1b", result.stdout + result.stderr)

    def test_not_wanted(self):
        for words, environment in (([], {"NO_COLOR": "1"}), ([], {"NO_COLOR": "0"}), ([], {"TERM": "dumb"}), ([], {"TERM": ""}),
                                   (["--color=never"], {}), (["--color", "auto"], {"NO_COLOR": "1"})):
            with self.subTest(words=words, environment=environment):
                text = self.on_terminal("run", self.vector, *words, environment=environment)
                self.assertNotIn("\x1b[3", text)
                self.assertNotIn("\x1b[1", text)
                self.assertIn("PASS  max", text)
        self.assertIn(GOOD, self.on_terminal("run", self.vector, environment={"NO_COLOR": ""}))

    def test_always(self):
        """Said here and now: it counts more than what is said for all programs."""
        for words in (["run", self.vector, "--color=always"], ["--color=always", "run", self.vector]):
            for environment in ({}, {"NO_COLOR": "1", "TERM": "dumb"}):
                self.assertIn(f"{GOOD}PASS{PLAIN}", self.passes(*words, environment=environment))
        self.assertNotIn("\x1b", self.passes("--color=always", "run", self.vector, "--color=never"))
        result = self.pto("--color=always", "run", "nowhere")
        self.assertEqual(result.stderr, f"{BAD}pto:{PLAIN} nowhere: no such directory\n")

    def test_json(self):
        """Programs read it."""
        for words in (["run", self.vector], ["doctor"], ["info"]):
            json.loads(self.passes(*words, "--json", "--color=always"))

    def test_names(self):
        """Colours are the program's own: what is in a name stays harmless."""
        result = self.pto("run", "\x1b[31mno", "--color=always")
        self.assertEqual(result.stderr, f"{BAD}pto:{PLAIN} ?[31mno: no such directory\n")

    def test_usage(self):
        self.fails(2, ["--color sometimes: auto, always or never is wanted"], "run", self.vector, "--color", "sometimes")
        self.fails(2, ["--color : auto"], "--color=", "info")


# A kernel that goes on when the file is there.
HOLD = """
#include <time.h>
#include <unistd.h>
#define HOLD while (access ("%s", F_OK) != 0) nanosleep (&(struct timespec){ .tv_nsec = 1000000 }, 0);
"""
# A chain: each task takes 40 ms or more.
N_TASKS, TASK_SECONDS = 50, 0.04


class Progress(TerminalTest):
    """The line: "pto: DONE of SUBMITTED tasks, RATE/s", or what a run that stands waits for."""

    line = re.compile(r"\r(pto: [^\r\x1b]*)\x1b\[K")

    def told(self, text):
        """Not of what is built."""
        return [line for line in self.line.findall(text) if not line.startswith("pto: building")]

    def hold(self):
        self.example()
        path = os.path.join(self.directory, "ex", "kernels", "mul.c")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.write(path, HOLD % os.path.join(self.directory, "go") + text.replace("{\n", "{\n  HOLD\n", 1))
        return ["run", "ex", "--set", "timeout=600000"]

    def chain(self, n_tasks=N_TASKS):
        self.copy_example(dtype=FLOAT32, got=0, expected=0)
        self.edit("copy/orch.c", "pto2_rt_submit_task (", f"for (int i = 0; i < {n_tasks}; i++) pto2_rt_submit_task (")
        self.edit("copy/copy.c", "#include <string.h>", "#include <string.h>\n#include <time.h>")
        self.edit("copy/copy.c", "memcpy (", f"nanosleep (&(struct timespec){{ .tv_nsec = {int(TASK_SECONDS * 1e9)} }}, 0); memcpy (")
        return ["run", "copy"]

    def go(self):
        self.write("go", "")
        text = self.read()
        self.assertEqual(self.process.wait(timeout=DEADLINE), 0, text)
        return text

    def cleared(self, text):
        """Nothing of it is left where something else is printed."""
        table = text.index(" on a2a3sim: ")
        self.assertIn("\r\x1b[K", text[:table])
        before = text[:table].rindex("\r\x1b[K")
        self.assertNotIn("pto:", text[before:])

    def test_stall(self):
        for words in [], ["--no-isolate"], ["--backend", "det"], ["--backend", "threads"]:
            with self.subTest(words=words):
                shutil.rmtree(os.path.join(self.directory, "ex"), ignore_errors=True)
                if os.path.exists(os.path.join(self.directory, "go")):
                    os.unlink(os.path.join(self.directory, "go"))
                self.begin(*self.hold(), *words)
                # A busy machine draws it later.
                said = self.read(lambda text: re.search(r"none for (?!1 )\d+ s", "".join(self.told(text)[-1:])))
                lines = self.told(said)
                self.assertRegex(lines[-1], r"^pto: \d of 5 tasks, none for (?!1 )\d+ s: waits for task 1:\d \(mul\) on AIV\d+(, and 1 more cores?)?$")
                self.assertRegex(lines[0], r"^pto: \d of 5 tasks, \d+/s$")
                self.cleared(self.go())

    def test_rate(self):
        begun = time.monotonic()
        text = self.on_terminal(*self.chain())
        lasted = time.monotonic() - begun
        lines = re.findall(r"pto: (\d+) of (\d+) tasks, (\d+)/s\x1b", text)
        self.assertGreater(len(lines), 5)
        # At most five times a second, and the first not at once.
        self.assertLessEqual(len(lines), 5 * lasted)
        done = [int(line[0]) for line in lines]
        self.assertEqual(done, sorted(done))
        self.assertLessEqual(done[-1], N_TASKS)
        self.assertEqual({line[1] for line in lines}, {str(N_TASKS)})
        rates = [int(line[2]) for line in lines]
        self.assertGreater(max(rates), 0)
        # No kernel takes less; on a machine under load the moment of a look is not that of its clock.
        self.assertLessEqual(max(rates[5:]), 2 / TASK_SECONDS)
        self.cleared(text)

    def test_short(self):
        """A run that is over at once is not looked at."""
        self.copy_example(dtype=FLOAT32, got=0, expected=0)
        self.pto("run", "copy")
        self.assertEqual(self.told(self.on_terminal("run", "copy")), [])

    def test_width(self):
        """No line is so long that the terminal would begin another one."""
        for columns in 30, 12:
            with self.subTest(columns=columns):
                if os.path.exists(os.path.join(self.directory, "go")):
                    os.unlink(os.path.join(self.directory, "go"))
                    shutil.rmtree(os.path.join(self.directory, "ex"))
                self.begin(*self.hold(), columns=columns)
                self.read(lambda text: len(self.told(text)) > 7)
                text = self.go()
                lengths = [len(line) for line in self.line.findall(text)]
                self.assertEqual(max(lengths), columns - 1)
                self.cleared(text)

    def test_resized(self):
        self.begin(*self.hold(), columns=100)
        self.read(lambda text: "waits for task" in text)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
        self.read(lambda text: re.search(r"\rpto: \d of 5 tasks, \x1b", text))
        self.cleared(self.go())

    def test_wide(self):
        """A name in two columns a letter."""
        self.example()
        with open(os.path.join(self.directory, "ex", "pto.ini"), encoding="utf-8") as file:
            text = file.read()
        self.write("ex/pto.ini", text.replace("name=add\n", "name=" + "加" * 40 + "\n", 1))
        lines = self.line.findall(self.on_terminal("run", "ex", environment={"LC_ALL": "C.UTF-8"}))
        widths = [sum(2 if ord(c) > 0x2e80 else 1 for c in line) for line in lines if "加" in line]
        self.assertEqual([width in (78, 79) for width in widths], [True] * len(widths))
        self.assertTrue(widths)

    def test_nobody_looks(self):
        """Piped, or a terminal that can not take it back: not a byte."""
        words = self.chain(30)
        result = self.pto(*words)
        self.assertEqual((result.returncode, result.stderr, "\r" in result.stdout, "\x1b" in result.stdout), (0, "", False, False))
        for term in "dumb", "":
            text = self.on_terminal(*words, environment={"TERM": term})
            self.assertEqual((text.startswith("copy on a2a3sim: "), "\r" in text, "\x1b" in text), (True, False, False))

    def test_json(self):
        """The object is whole, wherever the line is."""
        out, text = self.on_terminal(*self.chain(), "--json", piped=True)
        self.assertEqual(json.loads(out)["tasks"], N_TASKS)
        self.assertGreater(len(self.told(text)), 3)
        self.assertTrue(text.endswith("\r\x1b[K"))

    def test_failure(self):
        """What is printed stands alone in its line."""
        words = self.chain()
        self.edit("copy/copy.c", "void kernel_entry", "static int n;\nextern void abort (void);\nvoid kernel_entry")
        self.edit("copy/copy.c", "nanosleep", "if (n++ == 20) abort (); nanosleep")
        text = self.on_terminal(*words, status=3)
        self.assertGreater(len(self.told(text)), 1)
        self.assertRegex(text, r"\r\x1b\[K\x1b\[1;31mpto:\x1b\[0m copy: case \"plain\": [^\r\x1b]*\n$")

    def test_interrupt(self):
        self.begin(*self.hold())
        self.read(lambda text: "of 5 tasks" in text)
        self.process.send_signal(signal.SIGINT)
        text = self.read()
        self.assertEqual(self.process.wait(timeout=DEADLINE), 130)
        self.assertTrue(text.endswith("\x1b[K\r\x1b[Kpto: cancelled\n"), text[-200:])

    def test_explore(self):
        self.chain(10)
        text = self.on_terminal("explore", "copy", "--budget", "3")
        self.assertRegex(text, r"\rpto: exploring: \d of 3 schedules\x1b\[K")
        self.assertEqual(self.pto("explore", "copy", "--budget", "3").stderr, "")


pto_test.tap.main()
