# test_pto_top.py: does `pto top` show what a run does that hangs?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""On a terminal of its own, whose picture is read here; and in lines. The run is one of the program's: a kernel waits for a file."""
import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from pto_test import DEADLINE, PROGRAM, PtoTest, tap

HOLD = """\
#include <time.h>
#include <unistd.h>
#define HOLD while (access ("%s", F_OK) != 0) nanosleep (&(struct timespec){ .tv_nsec = 1000000 }, 0);
"""


class Terminal:
    """As much of one as TERM=xterm asks for: what stands on it, and is it the program's own picture or what was there before?"""
    def __init__(self, rows, columns):
        self.alternate, self.cursor_is_shown, self.text = False, True, ""
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns, self.y, self.x = rows, columns, 0, 0
        self.region = 0, rows
        self.lines = [[" "] * columns for _ in range(rows)]

    def put(self, character):
        if self.x < self.columns:
            self.lines[self.y][self.x] = character
        self.x += 1
        self.last = character

    def clear(self, y, first, end):
        self.lines[y][first:end] = [" "] * (end - first)

    def scroll(self, n, first):
        """Lines from that one to the end of the region go up by n, or down."""
        end = self.region[1]
        blank, lines = [[" "] * self.columns for _ in range(min(abs(n), end - first))], self.lines[first:end]
        self.lines[first:end] = lines[n:] + blank if n > 0 else blank + lines[:len(lines) + n if -n < len(lines) else 0]

    def control(self, private, numbers, final):
        n = numbers[0] if numbers else 0
        one = max(n, 1)
        if private:
            for number in numbers:
                if number == 1049:
                    self.alternate = final == "h"
                elif number == 25:
                    self.cursor_is_shown = final == "h"
        elif final in "Hf":
            y, x = (max(numbers[i], 1) - 1 if i < len(numbers) else 0 for i in range(2))
            self.y, self.x = min(y, self.rows - 1), min(x, self.columns - 1)
        elif final in "ABCDGd":
            self.y += {"A": -one, "B": one}.get(final, 0)
            self.x += {"C": one, "D": -one}.get(final, 0)
            self.x = one - 1 if final == "G" else self.x
            self.y = one - 1 if final == "d" else self.y
        elif final == "J":
            assert n in (0, 2), n
            self.clear(self.y, 0 if n == 2 else self.x, self.columns)
            for y in range(0 if n == 2 else self.y + 1, self.rows):
                self.clear(y, 0, self.columns)
        elif final == "K":
            self.clear(self.y, 0 if n else self.x, self.x + 1 if n == 1 else self.columns)
        elif final == "X":
            self.clear(self.y, self.x, min(self.x + one, self.columns))
        elif final == "P":
            self.lines[self.y][self.x:] = self.lines[self.y][self.x + one:] + [" "] * one
        elif final == "@":
            self.lines[self.y][self.x:] = ([" "] * one + self.lines[self.y][self.x:])[:self.columns - self.x]
        elif final in "LMST":
            self.scroll(one if final in "MS" else -one, self.y if final in "LM" else self.region[0])
        elif final == "r":
            self.region = max(n, 1) - 1, numbers[1] if len(numbers) > 1 else self.rows
            self.y = self.x = 0
        elif final == "b":
            for _ in range(one):
                self.put(self.last)
        elif final == "Z":
            self.x = max((self.x - 1) // 8 - one + 1, 0) * 8
        else:
            assert final in "mhltnc", final

    def feed(self, data):
        self.text += self.decoder.decode(data)
        text = self.text
        position = 0
        for found in re.finditer(r"\x1b\[([?>]?)([\d;]*)([@-~])|\x1b[()*+].|\x1b[^\[()*+]|[^\x1b]", text):
            if found.start() != position:
                break
            position = found.end()
            character = found[0]
            if found[3]:
                self.control(found[1], [int(n or 0) for n in found[2].split(";")] if found[2] else [], found[3])
            elif character == "\r":
                self.x = 0
            elif character in ("\n", "\x1bD"):
                if self.y == self.region[1] - 1:
                    self.scroll(1, self.region[0])
                else:
                    self.y = min(self.y + 1, self.rows - 1)
            elif character == "\x1bM":
                if self.y == self.region[0]:
                    self.scroll(-1, self.region[0])
                else:
                    self.y = max(self.y - 1, 0)
            elif character == "\t":
                self.x = min(self.x // 8 * 8 + 8, self.columns - 1)
            elif character == "\b":
                self.x = max(self.x - 1, 0)
            elif character >= " " and len(character) == 1:
                self.put(character)
            else:
                assert character[1:2] in [*"()*+78=>"], repr(character)
        self.text = text[position:]

    def __str__(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)


def page(text):
    """Which of how many rows are shown; None while that is drawn: there are 28."""
    found = re.search(r"rows (\d+)-(\d+) of (\d+)$", text.splitlines()[-1])
    first, last, rows = map(int, found.groups()) if found else (0, 0, 0)
    return (first, last, rows) if last - first == 27 and rows >= last else None


@unittest.skipIf(os.environ.get("PTO_TEST_NO_NCURSES"), "built without ncurses")
class Top(PtoTest):
    def setUp(self):
        super().setUp()
        self.go_on = os.path.join(self.directory, "go-on")
        example = self.example()
        self.edit("ex/kernels/mul.c", '#include "tensor.h"\n', '#include "tensor.h"\n' + HOLD % self.go_on)
        with open(os.path.join(example, "kernels", "mul.c"), encoding="utf-8") as file:
            text = file.read()
        head, body = text[:text.index("kernel_entry")], text[text.index("kernel_entry"):]
        with open(os.path.join(example, "kernels", "mul.c"), "w", encoding="utf-8") as file:
            file.write(head + body.replace("{\n", "{\n  HOLD\n", 1))

    def begin(self, *words):
        """A run that hangs: its number. What it says is looked at when it has ended."""
        self.run = subprocess.Popen([PROGRAM, "run", "ex", "--set", "timeout=600000", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, encoding="utf-8", cwd=self.directory, env=self.environment)
        self.addCleanup(self.end)
        deadline = time.monotonic() + DEADLINE
        while True:
            asked = self.pto("top", "--json", str(self.run.pid))
            if asked.returncode == 0:
                worker = (json.loads(asked.stdout)["workers"] or [{}])[0]
                held = [core for core in worker.get("cores", []) if core.get("kernel") == "mul" and core.get("for_ns")]
                if held and worker["run"]["submitter"]["doing"] in ("end", "turn"):
                    self.worker, self.core = worker, held[0]
                    return self.run.pid
            self.assertIsNone(self.run.poll(), asked.stderr)
            self.assertLess(time.monotonic(), deadline, asked.stdout + asked.stderr)

    def end(self):
        """It goes on, and ends rightly."""
        if self.run.returncode is not None:
            return
        with open(self.go_on, "w", encoding="utf-8"):
            pass
        out, err = self.run.communicate(timeout=DEADLINE)
        self.assertEqual(self.run.returncode, 0, err)
        self.assertIn("PASS  max error 0", out)
        self.said = err

    # --- a terminal ---

    def open(self, *words, rows=30, columns=100, term="xterm"):
        self.terminal = Terminal(rows, columns)
        self.child, self.master = pty.fork()
        if self.child == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execvpe(PROGRAM, [PROGRAM, "top", "--interval", "50", *words], dict(self.environment, TERM=term))
            finally:
                os._exit(127)
        self.addCleanup(os.close, self.master)
        self.before = termios.tcgetattr(self.master)

    def read(self, good, what):
        """Until the picture is good."""
        deadline = time.monotonic() + DEADLINE
        while not good(str(self.terminal)):
            self.assertLess(time.monotonic(), deadline, f"{what}:\n{self.terminal}")
            if select.select([self.master], [], [], 1)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:
                    data = b""
                if not data:
                    self.fail(f"{what}: it has ended:\n{self.terminal}")
                self.terminal.feed(data)

    def waits(self):
        """It sleeps for longer than between two pictures: what draws again and again would be found running."""
        deadline = time.monotonic() + DEADLINE
        woken = time.monotonic()
        while time.monotonic() - woken < 0.5:
            self.assertLess(time.monotonic(), deadline, "it does not sleep")
            with open(f"/proc/{self.child}/stat", encoding="utf-8") as stat:
                if stat.read().rpartition(") ")[2][0] != "S":
                    woken = time.monotonic()

    def closed(self, status):
        """It has ended so, and the terminal is as it was."""
        rest = b""
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            if not data:
                break
            rest += data
            self.terminal.feed(data)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1]), status)
        self.assertEqual((self.terminal.alternate, self.terminal.cursor_is_shown), (False, True))
        return rest.decode()

    def key(self, keys):
        os.write(self.master, keys)

    def test_unwritten(self):
        """Printed once: to a pipe without a reader, to a full disk, to nothing."""
        pid = str(self.begin())
        for words in ["--once"], ["--json"], ["--metrics"], []:
            for check in self.cut, self.full, self.unopened:
                with self.subTest(words=words, check=check.__name__):
                    check("top", *words, pid)

    def test_picture(self):
        pid = self.begin("--backend", "par")
        self.open(str(pid))
        name, task = self.core["core"], self.core["task"]
        self.read(page, "the first rows are shown")
        self.assertTrue(self.terminal.alternate)
        text = str(self.terminal).splitlines()
        self.assertRegex(text[0], rf"^process {pid}  pto  libpto \d+\.\d+\.\d+$")
        self.assertRegex(text[1], r"^L2/0  a2a3sim  vector: five tasks, .*  [\d.]+ (m?s)$")
        self.assertEqual(text[2].split(), ["tasks", "5", "submitted,", "3", "complete,", "1", "running,", "0", "ready,", "1", "blocked"])
        self.assertRegex(text[3], r"^  submitter +waits for the end +[\d.]+ m?s")
        ring = next(line for line in text if line.startswith("  ring 1"))
        self.assertRegex(ring, r"^  ring 1 +\[# {19}\] \d/65535  heap \[# {19}\] [\d.]+ (KiB|MiB)/1\.0 GiB$")
        shown = next(r for r in self.worker["rings"] if r["ring"] == 1)
        self.assertIn(f"] {shown['tasks']}/65535  heap ", ring)
        self.assertRegex("\n".join(text), rf"(?m)^  scheduler{self.core['scheduler']} +\[# {{19}}\] 1/24  runs a core$")
        # All 72 cores and who waits, line by line.
        seen = set()
        at = None
        for _ in range(200):
            # The last line is drawn last, cell by cell.
            self.read(lambda text, at=at: page(text) not in (None, at), "it has scrolled")
            at = page(str(self.terminal))
            seen.update(str(self.terminal).splitlines()[1:-1])
            first, last, rows = at
            if last == rows:
                break
            self.key(b"\x1b[6~" if first == 1 else b"\x1bOB")
        cores = {line.split()[0] for line in seen if re.match(r"  AI[CV]\d+ ", line)}
        self.assertEqual(cores, {f"AIC{i}" for i in range(24)} | {f"AIV{i}" for i in range(48)})
        # Which core it is, and so how far down, is up to who was fast.
        self.assertRegex("\n".join(seen), rf"(?m)^  {name} +runs +[\d.]+ m?s +{task} mul$")
        self.assertTrue(any(re.match(rf"  waiting .* 1:\d add +for {task} mul \(running\)$", line) or re.search(rf"add +for {task} mul", line) for line in seen), seen)
        # Backwards.
        self.key(b"\x1b[5~" * 10)
        self.read(lambda text: " rows 1-28 of " in text, "it is at the top")
        # Paused: nothing is asked any more.
        self.key(b"p")
        self.read(lambda text: text.splitlines()[0].endswith("[paused]"), "it pauses")
        self.waits()
        # Another size, while nothing of the old one is on its way.
        self.terminal.resize(12, 60)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 60, 0, 0))
        self.read(lambda text: re.search(r" rows 1-10 of \d+$", text) and text.startswith("process "), "it has another size")
        self.key(b"p")
        self.read(lambda text: "[paused]" not in text, "it goes on")
        self.key(b"q")
        self.closed(0)

    def test_colours(self):
        """What is busy is green, unless somebody wants no colours."""
        pid = self.begin()
        self.environment.pop("NO_COLOR", None)
        for words, environment, coloured in (([], {}, True), (["--color=never"], {}, False), ([], {"NO_COLOR": "1"}, False)):
            self.environment.update(environment)
            self.open(str(pid), *words)
            said, feed = [], self.terminal.feed
            self.terminal.feed = lambda data, said=said, feed=feed: (said.append(data), feed(data))
            self.read(lambda text: " rows 1-28 of " in text, "it is shown")
            self.key(b"q")
            self.closed(0)
            self.assertEqual(re.search(rb"\x1b\[[0-9;]*3[23]m", b"".join(said)) is not None, coloured, (words, environment))

    def test_interrupt(self):
        pid = self.begin()
        self.open(str(pid))
        self.read(lambda text: " rows 1-28 of " in text, "it is shown")
        self.key(b"\x03")
        self.closed(130)
        self.assertIsNone(self.run.poll())

    def test_terminated(self):
        pid = self.begin()
        self.open(str(pid))
        self.read(lambda text: " rows 1-28 of " in text, "it is shown")
        os.kill(self.child, signal.SIGTERM)
        self.closed(1)

    def test_ended(self):
        """The run ends while it is watched."""
        pid = self.begin()
        self.open(str(pid))
        self.read(lambda text: " rows 1-28 of " in text, "it is shown")
        self.end()
        self.assertIn(f"process {pid} has ended", self.closed(0))

    def test_dumb(self):
        """A terminal that can do nothing: lines."""
        pid = self.begin()
        self.open(str(pid), term="dumb", columns=300)
        text = self.closed(0)
        self.assertRegex(text, r"(?m)^  AIV\d+ +runs task \d of ring 1 \(mul\), for ")
        self.assertNotIn("\x1b", text)

    def test_once(self):
        for backend in "par", "det", "threads":
            for where in [], ["--no-isolate"]:
                with self.subTest(backend=backend, where=where):
                    pid = self.begin("--backend", backend, *where)
                    text = self.passes("top", "--once", str(pid))
                    self.assertEqual(self.passes("top", str(pid)).splitlines()[0], f"process {pid} (pto), libpto {text.splitlines()[0].split()[-1]}")
                    name = self.core["core"]
                    self.assertRegex(text, rf"(?m)^L2/0: a2a3sim on {backend}{'' if where else ' in a process of its own'}, \"vector: five tasks, .*\" has been running for ")
                    self.assertRegex(text, rf"(?m)^  {name} +runs task \d of ring 1 \(mul\), for [\d.]+ m?s; argument 0 float32 \[16384\] at 0x")
                    self.end()
                    os.unlink(self.go_on)

    def test_quit(self):
        """SIGQUIT: the same on its own standard error; it goes on."""
        pid = self.begin()
        os.kill(pid, signal.SIGQUIT)
        text = ""
        while " of heap, " not in text:
            text += self.run.stderr.readline()
        self.assertRegex(text, rf"(?s)^process {pid} \(pto\), libpto .*\nL2/0: .*runs task \d of ring 1 \(mul\), for ")

    def test_explore(self):
        """It listens, too."""
        self.run = subprocess.Popen([PROGRAM, "explore", "ex", "--budget", "2", "--set", "timeout=600000"], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", cwd=self.directory, env=self.environment)
        self.addCleanup(self.run.communicate)
        self.addCleanup(self.run.kill)
        deadline = time.monotonic() + DEADLINE
        while " (mul), for " not in (text := self.pto("top", "--once", str(self.run.pid)).stdout):
            self.assertIsNone(self.run.poll())
            self.assertLess(time.monotonic(), deadline, text)
        with open(self.go_on, "w", encoding="utf-8"):
            pass
        self.assertEqual((self.run.communicate(timeout=DEADLINE)[1], self.run.returncode), ("", 0))

    def test_metrics(self):
        metrics = os.path.join(self.directory, "metrics")
        pid = self.begin("--metrics", metrics, "--repeat", "3")
        asked = self.passes("top", "--metrics", str(pid))
        self.assertIn('\npto_tasks{worker="L2/0",number="1",state="running"} 1\n', asked)
        self.assertTrue(asked.endswith("\n# EOF\n"))
        self.end()
        with open(metrics, encoding="utf-8") as file:
            text = file.read()
        for name, value in ("pto_runs_total", 3), ("pto_tasks_submitted_total", 15), ("pto_tasks_completed_total", 15), ("pto_tasks_failed_total", 0), ("pto_edges_total", 18):
            self.assertIn(f'\n{name}{{worker="L2/0",number="1"}} {value}\n', text)
        self.assertTrue(text.endswith("\n# EOF\n"))

    def test_refused(self):
        self.run = subprocess.Popen(["true"])
        self.run.wait()
        for status, fragments, words in ((2, ["which process?"], []), (2, ["one process at a time, not \"2\" too"], ["1", "2"]),
                                         (2, ["\"x\": a number from 1 to"], ["x"]), (2, ["\"0\": a number from 1"], ["0"]),
                                         (2, ["--json and --metrics"], ["--json", "--metrics", "1"]), (2, ["--interval \"5\""], ["--interval", "5", "1"]),
                                         (2, ["--often"], ["--often", "1"]), (3, [f"there is no process {self.run.pid}"], [str(self.run.pid)])):
            self.fails(status, fragments, "top", *words)
        self.fails(3, ["metrics", "nowhere"], "run", "ex", "--metrics", "nowhere/metrics")


if __name__ == "__main__":
    tap.main()
