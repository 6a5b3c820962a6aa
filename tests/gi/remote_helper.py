# remote_helper.py: what do tests of remote workers share?
# SPDX-License-Identifier: LGPL-2.1-or-later
import contextlib
import os
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    np = None

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "remote-root")
sys.path.insert(0, root)
import remote_steps  # noqa: E402

__all__ = "here", "lives", "np", "remote_steps", "root", "said", "until"


def until(look, seconds=120):
    """What it has found."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.002)
    return found


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as text:
            return text.read().rpartition(")")[2].split()[0] != "Z"
    # It may end between the two calls.
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextlib.contextmanager
def said():
    """What comes to standard error meanwhile: lines, once it is over."""
    text = []
    with tempfile.TemporaryFile("w+") as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield text
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            text.extend(file.read().splitlines())
