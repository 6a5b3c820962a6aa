# test_thread_locals.py: is no thread-local variable used across a switch of threads?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A fiber may continue on another thread after each switch. A compiler computes the address of a thread-local variable
# once per function, and on aarch64 keeps the thread's register. So a function that names such a variable must not be
# inlined, has no loop, and calls nothing that could switch between its first and its last mention of the variable.
#
# Argument: the source directory.
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

source = os.path.abspath(sys.argv[1])
del sys.argv[1:]

DECLARATION = re.compile(r"\b(?:_Thread_local|thread_local|__thread)\b[^;={]*?(?:\{[^}]*\}\s*)?(\w+)\s*"
                         r"(?:__attribute__\s*\(\([^;=]*\)\)\s*)?(?:=[^;]*)?;")
# GNU style: the name and the braces of a function are in the first column.
FUNCTION = re.compile(r"^(?!__attribute__)(\w+) \([^;{}]*\)\n\{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
CANNOT_SWITCH = {"if", "return", "sizeof", "syscall", "pto_store_relaxed", "pto_wall_clock", "pthread_self",
                 "pthread_getattr_np", "pthread_attr_getstack", "pthread_attr_destroy"}
STAY = {
    "pto/api/pto_orchestration_api.h": "an orchestration stays on its thread",
    "pto/compile/compiler-program.c": "a compiler is waited for by a thread, in no fiber",
    "tests/weak/weak.c": "its fibers are those of det, which has one thread",
}


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda comment: re.sub(r"[^\n]", " ", comment[0]), text, flags=re.DOTALL)


def complaints(path):
    with open(path, encoding="utf-8") as file:
        text = without_comments(file.read())
    found = []
    for declaration in DECLARATION.finditer(text):
        name = declaration[1]
        mention = re.compile(rf"(?<![\w.>]){name}\b")
        inside = [function for function in FUNCTION.finditer(text)
                  if function.start() < declaration.start() < function.end()]
        for function in inside or FUNCTION.finditer(text):
            body = function[2].replace(declaration[0], " " * len(declaration[0]))
            mentions = [match.start() for match in mention.finditer(body)]
            if not mentions:
                continue
            head = re.split(r"[;}]", text[:function.start(1)])[-1]
            calls = set(re.findall(r"\b(\w+) \(", body[mentions[0]:mentions[-1]])) - CANNOT_SWITCH
            if not re.search(r"\b(noinline|noipa)\b", head):
                found.append(f"{function[1]}() names {name} and may be inlined")
            if re.search(r"\b(for|while|do|goto)\b", body):
                found.append(f"{function[1]}() names {name} and has a loop")
            if calls:
                found.append(f"{function[1]}() names {name} before and after {', '.join(sorted(calls))}()")
    return found


def files():
    for top in ("pto", "sim", "tests"):
        for directory, _, names in os.walk(os.path.join(source, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cc", ".cpp")):
                    yield os.path.join(directory, name)


class ThreadLocals(unittest.TestCase):
    def test_sources(self):
        found, seen = [], set()
        for path in files():
            relative = os.path.relpath(path, source)
            with open(path, encoding="utf-8") as file:
                if DECLARATION.search(without_comments(file.read())):
                    seen.add(relative)
            if relative not in STAY:
                found += [f"{relative}: {complaint}" for complaint in complaints(path)]
        self.assertEqual(found, [])
        self.assertGreaterEqual(seen, set(STAY) | {"pto/exec/exec.c", "sim/check-kernel.c", "sim/ai-core.c"})

    def test_examples(self):
        """The check finds what it is for."""
        quiet = "static _Thread_local int here;\n\n__attribute__ ((noinline)) void\nset (int to)\n{\n  here = to;\n}\n"
        inlined = quiet.replace("__attribute__ ((noinline)) ", "")
        loop = quiet.replace("  here = to;\n", "  for (int i = 0; i < to; i++)\n    {\n      here = i;\n      work ();\n    }\n")
        across = quiet.replace("  here = to;\n", "  here = to;\n  work ();\n  here = 0;\n")
        expected = {
            quiet: [],
            inlined: ["set() names here and may be inlined"],
            loop: ["set() names here and has a loop"],
            across: ["set() names here before and after work()"],
        }
        for text, complaint in expected.items():
            with self.subTest(text), tempfile.NamedTemporaryFile("w", suffix=".c", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                self.assertEqual(complaints(file.name), complaint)


tap.main()
