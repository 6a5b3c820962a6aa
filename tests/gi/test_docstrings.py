# test_docstrings.py: does everything public say what it is, where one asks it in Python?
# SPDX-License-Identifier: LGPL-2.1-or-later
import inspect
import os
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

import tap  # noqa: E402

OVERRIDES = os.path.dirname(inspect.getsourcefile(Pto.seeds))


def written_here(what):
    """A function that the override's own lines define: not one of the library's that it wraps."""
    return inspect.isfunction(what) and os.path.dirname(what.__code__.co_filename) == OVERRIDES and "<locals>" not in what.__code__.co_qualname


class Docstrings(unittest.TestCase):
    def test_the_override(self):
        seen = 0
        classes = {name: type_ for name in dir(Pto) if isinstance(type_ := getattr(Pto, name), type) and not name.startswith("_")}
        classes.update({"seeds." + name: type_ for name, type_ in vars(Pto.seeds).items()
                        if isinstance(type_, type) and type_.__module__ == Pto.seeds.__name__})
        for name, type_ in classes.items():
            if type_.__module__.startswith("gi.overrides"):
                self.assertIn("__doc__", vars(type_), name)
                self.assertTrue(type_.__doc__, name)
            for member, what in vars(type_).items():
                what = what.__func__ if isinstance(what, staticmethod) else what.fget if isinstance(what, property) else what
                if not member.startswith("_") and written_here(what):
                    self.assertTrue(what.__doc__, f"Pto.{name}.{member} has no docstring")
                    self.assertRegex(what.__doc__, r"(?s)^[^\s].*[.:?)]\s*$", f"Pto.{name}.{member}")
                    seen += 1
        self.assertGreater(seen, 100)

    def test_the_library(self):
        """What is the library's says at least what it is given and what it gives."""
        for function in (Pto.Worker.list_parameters, Pto.Buffer.get_size, Pto.Worker.copy_to, Pto.platform_lookup):
            self.assertIn("->", function.__doc__)
        self.assertIn("address", Pto.Worker.copy_to.__doc__)


tap.main()
