# PtoProgress.py: how far is a run, and how is that seen while it lasts?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A thread asks the worker, as pto top does, which costs a run nothing; it is there while somebody wants to see it. It is no
# handler of run-progress: that is called by the run, which a function of Python, or a kernel on det, may keep for long.
import collections
import contextlib
import html
import json
import os
import sys
import threading
import time
import unicodedata

from .PtoText import P_, _

_CELLS = 20
_NOTHING = {"runs": 0, "submitted": 0, "completed": 0, "failed": 0, "run_ns": 0}

Progress = collections.namedtuple("Progress", "done submitted failed")
Progress.__doc__ = "Tasks of a run: done, of those that were submitted so far, and of the done ones those that failed, or were not run for that."


def _state_of(worker):
    """The run under way, or None, and what all runs before it have done."""
    workers = json.loads(worker.describe_state_json())["workers"]
    if not workers:
        return None, _NOTHING
    return workers[0].get("run"), workers[0].get("totals") or _NOTHING


def _progress(counts):
    return Progress(counts["completed"], counts["submitted"], counts["failed"])


def of(worker):
    """Of the run under way; None: there is none."""
    is_running, *counts = worker.get_progress()
    return Progress(*counts) if is_running else None


def _line(title, progress, seconds, is_over):
    done, submitted, failed = progress
    part = done / submitted if submitted else float(is_over)
    bar = "#" * int(part * _CELLS)
    rate = _(", {n} tasks/s").format(n=f"{done / seconds:.0f}") if seconds > 0 and done else ""
    return (_("{title}: {percent} %|{bar}| {done} of {submitted} tasks [{seconds} s{rate}]").format(
        title=title, percent=f"{int(100 * part):3d}", bar=f"{bar:{_CELLS}}", done=done, submitted=submitted, seconds=f"{seconds:.1f}", rate=rate)
        + (_(", {n} failed").format(n=failed) if failed else ""))


def _cut(text, columns):
    """What does not reach the last column, behind which a terminal goes on in the next line."""
    for i, letter in enumerate(text):
        columns -= 0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        if columns < 1:
            return text[:i]
    return text


class _Terminal:
    """One line that is written over; where nobody sees it grow, only what is left of it in the end."""

    def __init__(self, file):
        self.file, self.shown = file, 0
        self.is_terminal = file.isatty() and os.environ.get("TERM", "") not in ("", "dumb")

    def show(self, text, is_over):
        if self.is_terminal:
            text = _cut(text, os.get_terminal_size(self.file.fileno()).columns or 80)
            # Past the file's own lock: a child may be forked meanwhile.
            os.write(self.file.fileno(), f"\r{text:{self.shown}}".encode() + b"\n" * is_over)
            self.shown = len(text)
        elif is_over:
            print(text, file=self.file, flush=True)


class _Notebook:
    """One output of a cell that is put in place of itself."""

    def __init__(self, display):
        self.display, self.handle = display, None

    def show(self, text, is_over):
        shown = self.display.HTML(f"<pre>{html.escape(text)}</pre>")
        if self.handle is None:
            self.handle = self.display.display(shown, display_id=True)
        else:
            self.handle.update(shown)


def _place(file):
    """A notebook's cell, if it is one that runs and nothing else is said, or the standard error."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if file is None and hasattr(shell, "kernel"):
        from IPython import display
        return _Notebook(display)
    return _Terminal(sys.stderr if file is None else file)


class _Watch:
    def __init__(self, worker, place):
        self.worker, self.place = worker, place
        self.begin = time.monotonic()
        _, self.before = _state_of(worker)
        self.title = "waiting"

    def look(self):
        run = _state_of(self.worker)[0]
        if run is not None:
            self.title = run.get("title") or P_("{n} run", "{n} runs", 1).format(n=1)
            self.place.show(_line(self.title, _progress(run), run["for_ns"] / 1e9, False), False)

    def end(self):
        """What all runs have done since the begin, with the time that they took."""
        _, now = _state_of(self.worker)
        since = {name: now[name] - self.before[name] for name in _NOTHING}
        title = self.title if self.title != "waiting" and since["runs"] == 1 else P_("{n} run", "{n} runs", since["runs"]).format(n=since["runs"])
        self.place.show(_line(title, _progress(since), since["run_ns"] / 1e9, True), True)


@contextlib.contextmanager
def shown(worker, file, interval):
    watch, over = _Watch(worker, _place(file)), threading.Event()

    def look():
        while not over.wait(interval):
            watch.look()

    thread = threading.Thread(target=look, name="pto-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        watch.end()
