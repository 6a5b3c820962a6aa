# test_docstrings.py: does everything public say what it is, where one asks it in Python?
# SPDX-License-Identifier: LGPL-2.1-or-later
import inspect
import os
import re
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

import tap  # noqa: E402

OVERRIDES = os.path.dirname(inspect.getsourcefile(Pto.seeds))


def written_here(what):
    """A function that the override's own lines define: not one of the library's that it wraps."""
    what = inspect.unwrap(what) if inspect.isfunction(what) else what
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

    def test_the_manual(self):
        """Everything that Python can call says what the manual says of it: behind its arguments a sentence, of what may fail the errors."""
        seen, types_ = 0, [type_ for name in dir(Pto) if isinstance(type_ := getattr(Pto, name), type) and not name.endswith("Class")]
        places = [(type_.__name__, {member: getattr(type_, member) for base in type_.__mro__ if base.__module__ in ("gi.repository.Pto", "gi.overrides.Pto")
                                    for member in vars(base)}) for type_ in types_]
        for name, members in [*places, ("Pto", {name: getattr(Pto, name) for name in dir(Pto)})]:
            for member, what in members.items():
                if member.startswith("_") or isinstance(what, type) or not callable(what) or written_here(what) or what.__doc__ is None:
                    continue
                if re.fullmatch(r"\w+\(.*\)( -> .*)?", what.__doc__.partition("\n")[0]):
                    self.assertRegex(what.__doc__, r"(?s)^\w+\(.*\).*\n\n.+\w", f"{name}.{member}")
                    self.assertNotRegex(what.__doc__, r"@\w+@|%[A-Z]|\[\w+@", f"{name}.{member}")
                    seen += 1
        self.assertGreater(seen, 300)

    def test_what_memory_says(self):
        for type_, names in ((Pto.Worker, "alloc_buffer malloc free copy_to copy_from copy_to_address register_on lookup unregister import_buffer"),
                             (Pto.Buffer, "read write is_remote get_size")):
            for name in names.split():
                text = getattr(type_, name).__doc__
                self.assertRegex(text, r"(?s)^\w+\(self.*\n\n[A-Z].*Thread safety: ", name)
        text = Pto.Worker.alloc_buffer.__doc__
        self.assertTrue(text.startswith("alloc_buffer(self, size:int) -> Pto.Buffer\n\nTakes device memory that belongs to a buffer"), text)
        self.assertIn("\nsize: bytes\nReturns: a buffer", text)
        self.assertIn("Pto.Buffer.read", text)
        self.assertIn("Source: seed 000 section 2.3", Pto.Platform.__doc__)


tap.main()
