# levels_helper.py: what do children import by path?
# SPDX-License-Identifier: LGPL-2.1-or-later


def add_seven(args):
    args[0][0] += 7


def fan_out(orch, args, config):
    """An orchestration that is imported: every SUB function of its worker's program is there, too."""
    raise LookupError("nothing to fan out to")


class Mismatch(ValueError):
    """With several arguments, and more that it has been told since."""
    def __init__(self, name, wanted, found, *, where=None):
        super().__init__(name, wanted, found)
        self.name, self.wanted, self.found, self.where = name, wanted, found, where

    def __str__(self):
        return f"{self.name}: {self.found},\nbut {self.wanted} is wanted"


class Deep(Exception):
    """Made anew in another process, it says no."""
    home = None

    def __reduce__(self):
        return refuse_elsewhere, (self.args,)


class Diverged(Exception):
    """Its constructor takes what its text is made of, and keeps it."""
    def __init__(self, step, value, more=None):
        super().__init__(f"diverged at step {step}")
        self.step, self.value, self.more = step, value, more


class Missing(FileNotFoundError):
    """As Diverged, of a class of the language with attributes of its own."""
    def __init__(self, step):
        super().__init__(2, "nothing there", f"/a/{step}")
        self.step = step


def refuse_elsewhere(args):
    raise RuntimeError("not here")


class Refused(Exception):
    """Its constructor wants something else than its text."""
    def __init__(self, count):
        super().__init__(f"refused {count} times")
