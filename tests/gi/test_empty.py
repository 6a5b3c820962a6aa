# test_empty.py: does everything that can be asked of a value have an answer where the value is empty?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import unittest
import xml.etree.ElementTree

import gi

gi.require_version("Pto", "1")
from gi.repository import GObject, Pto  # noqa: E402

import tap  # noqa: E402

CORE, G = "{http://www.gtk.org/introspection/core/1.0}", "{http://www.gtk.org/introspection/glib/1.0}"
NUMBERS = {"gint", "guint", "gint32", "guint32", "gint64", "guint64", "gsize", "gboolean", "gdouble"}
# Ends what is asked, or waits.
LEFT_OUT = {"unref", "free"}


def parameters_of(method):
    """Zeros for numbers; None: it wants something else."""
    found = method.findall(f"{CORE}parameters/{CORE}parameter")
    types = [parameter.find(f"{CORE}type") for parameter in found if parameter.get("direction") != "out"]
    return [0] * len(types) if all(type_ is not None and type_.get("name") in NUMBERS for type_ in types) else None


def methods_of(element):
    for method in element.findall(f"{CORE}method"):
        zeros = parameters_of(method)
        if method.get("introspectable") != "0" and method.get("name") not in LEFT_OUT and zeros is not None:
            yield method.get("name"), zeros


def types():
    """Every type of the library: its name, and what makes an empty one."""
    tree = xml.etree.ElementTree.parse(os.environ["PTO_TEST_GIR"]).getroot()
    for element in (*tree.iter(f"{CORE}record"), *tree.iter(f"{CORE}class")):
        if element.get(f"{G}get-type") and not element.get(f"{G}is-gtype-struct-for"):
            yield element, getattr(Pto, element.get("name"))


def ends_well(call):
    """In a child: a crash is the child's. What it prints of empty values is not read."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            call()
        except Exception:  # an answer, too
            pass
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


class Empty(unittest.TestCase):
    def test_every_getter(self):
        asked = set()
        for element, type_ in types():
            try:
                value = GObject.new(type_) if element.tag == f"{CORE}class" else type_()
            except TypeError:  # none is made that is empty
                continue
            calls = [(name, lambda name=name, zeros=zeros: getattr(value, name)(*zeros)) for name, zeros in methods_of(element)]
            calls += [("repr", lambda: repr(value)), ("str", lambda: str(value)), ("==", lambda: value == value)]
            if element.tag == f"{CORE}class":
                calls += [(spec.name, lambda name=spec.name: value.get_property(name)) for spec in GObject.list_properties(type_)]
            for name, call in calls:
                with self.subTest(type=element.get("name"), asked=name):
                    self.assertTrue(ends_well(call))
                    asked.add(f"{element.get('name')}.{name}")
        self.assertEqual(set(), {"TraceTask.get_bytes_sent", "TraceEdge.get_hazards", "TraceCore.get_name", "Trace.list_tasks", "Worker.get_level",
                              "TaskArgs.get_n_tensors", "CallConfig.get_block_dim"} - asked)

    def test_values(self):
        task, edge, core = Pto.TraceTask(), Pto.TraceEdge(), Pto.TraceCore()
        self.assertEqual((task.get_bytes_sent(), task.get_bytes_received(), task.get_bytes_saved()), (0, 0, 0))
        self.assertEqual(list(task.list_members()), [])
        self.assertEqual((edge.get_producer(), edge.get_consumer()), (-1, 0))
        self.assertEqual(core.get_bytes_sent(), 0)
        with self.assertRaises(AttributeError):
            task.x


if __name__ == "__main__":
    tap.main()
