# test_snippets.py: does every snippet of README.md and of the manual's chapters do what stands there?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each page is gone through once, from top to bottom, in a directory of its own, where examples and build/pto/programs/pto/pto are what they are
# in a checkout, and the files of doc/own.md ("scale.c: ...") lie. What stands behind ``` says what becomes of a block:
#
#   c, cpp, ini, csv   a file: its name is file=NAME, or in the comment of its first line; something that is run has to use it. With
#                      part=NAME the block is compared with that file, which has to contain it when the page is through
#   python             is run by the page's one Python. What `print(...)  # 6.0` says it prints, a number, a list or a text in quotes, is compared
#   js                 all of a page are one module
#   sh                 is run by the shell. Lines with a word that stands for something (PID, FILE) are not
#   console            lines that begin with "$ " are run, the others are what comes out of it: standard output, then standard error
#   output             what the block before it prints, on both streams; below `raises` the error, too. White space is all the same; "..." is
#                      anything; with `rough` any number is as good as another, and so is the unit of a time
#   text               is nothing that can be run: a picture of letters, a form
#
# Words behind the language: status=N of sh and console; raises of python; norun="why" for what can not be run here, and these
# are counted. <!-- run LANGUAGE ... --> is run and not shown.
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

ROOT = os.path.dirname(os.environ["PTO_TEST_README"])
PTO = os.environ["PTO_TEST_PROGRAM"]
PYTHON = os.environ["PTO_TEST_PYTHON"]
GJS = os.environ["PTO_TEST_GJS"]
PAGES = sys.argv[1:] or ["README.md"] + sorted("doc/" + name for name in os.listdir(os.path.join(ROOT, "doc")) if name.endswith(".md") and not name.endswith("-zh.md"))
EXAMPLE = "doc/own.md"  # its files are there on every page
# How many blocks of all pages may be left alone, and how many are no code at all. Who adds one changes the number, and says why there.
NOT_RUN, NOT_CODE = 12, 12

BLOCK = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$|<!-- run (?P<hidden>\w+)\n(?P<unseen>.*?)-->", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\A(?:/\*|//|#) (\S+\.(?:c|cc|h|ini|csv)):")
FILES = {"c", "cpp", "ini", "csv"}
LANGUAGES = FILES | {"python", "js", "sh", "console", "output", "text"}
PLACEHOLDER = re.compile(r"(?:^|\s)(?:\./)?[A-Z][A-Z_]*(?=\s|$)")

# What the page's Python does: a line of JSON asks it to run a block, a line of JSON answers.
CHILD = r"""
import json, os, sys, tempfile, traceback
asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
names = {"__name__": "__main__"}
for line in asked:
    out = tempfile.TemporaryFile()
    os.dup2(out.fileno(), 1)
    os.dup2(out.fileno(), 2)
    raised = None
    try:
        request = json.loads(line)
        exec(compile(request["code"], request["name"], "exec"), names)
    except BaseException as error:
        raised = "".join(traceback.format_exception_only(error))
        names["__error__"] = error
    sys.stdout.flush()
    sys.stderr.flush()
    out.seek(0)
    print(json.dumps({"out": out.read().decode(), "raised": raised}), file=answers, flush=True)
"""


class Block:
    def __init__(self, page, match, text):
        info = match["info"] if match["hidden"] is None else match["hidden"]
        words = re.findall(r'(\w+)(?:=("[^"]*"|\S+))?', info)
        self.language = words[0][0] if words else ""
        self.words = {name: value.strip('"') for name, value in words[1:]}
        self.code = match["code"] if match["hidden"] is None else match["unseen"]
        self.is_hidden = match["hidden"] is not None
        self.line = text.count("\n", 0, match.start()) + 1
        self.place = f"{page}:{self.line}"
        named = NAMED.match(self.code)
        self.part = self.words.get("part")
        self.file = self.words.get("file") or (named[1] if named and self.language in FILES and not self.part else None)
        self.output = None


def blocks(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        text = file.read()
    found = [Block(page, match, text) for match in BLOCK.finditer(text)]
    for before, block in zip([None] + found, found):
        if block.language == "output":
            if before is None or before.language not in ("python", "js", "sh"):
                raise AssertionError(f"{block.place}: output of what?")
            before.output = block
    return found


def pattern(expected, rough):
    words = []
    if rough:
        expected = re.sub(r"(?<=\d) (?=\d{3}\b)", "", expected)
    for word in expected.split():
        if word == "...":
            words.append(r"(?:.*?\S)?")
            continue
        word = re.escape(word).replace(re.escape("..."), ".*?")
        if rough:
            word = re.sub(r"\d(?:[\d,]|\\\.\d)*", lambda _: r"[\d.,]+(?: \d{3}\b)*", re.sub(r"^(ns|us|ms|s)\b", "(?:ns|us|ms|s)", word))
        words.append(word)
    return r"\s*" + r"\s+".join(words).replace(r"(?:.*?\S)?\s+", r"(?:.*?\s)??") + r"\s*\Z"


class Page:
    def __init__(self, test, page, directory):
        self.test, self.page, self.directory, self.python, self.scripts = test, page, directory, None, []
        self.environment = {**os.environ,
                            "PATH": os.pathsep.join([os.path.dirname(PTO), os.path.join(directory, "bin"), os.environ["PATH"]]),
                            "HOME": directory, "XDG_RUNTIME_DIR": directory, "NO_COLOR": "1", "XDG_CACHE_HOME": os.path.join(os.environ["XDG_CACHE_HOME"], "snippets")}
        costs = os.path.join(self.environment["XDG_CACHE_HOME"], "libpto", "costs.json")
        if os.path.exists(costs):
            os.remove(costs)

    def compare(self, block, expected, got, rough=False):
        if not re.match(pattern(expected, rough), got, re.DOTALL):
            self.test.fail(f"{block.place}: this is said to come:\n{expected.rstrip()}\nand this came:\n{got.rstrip()}")

    def run(self, everything):
        for block in everything:
            if block.file:
                with open(os.path.join(self.directory, block.file), "w", encoding="utf-8") as file:
                    file.write(block.code)
        try:
            for block in everything:
                if block.language in ("python", "js", "sh", "console") and "norun" not in block.words and not block.file:
                    getattr(self, "run_" + block.language)(block)
            self.run_module()
            for block in everything:
                if block.part:
                    with open(os.path.join(self.directory, block.part), encoding="utf-8") as file:
                        self.test.assertIn(block.code, file.read(), f"{block.place}: {block.part} has no such lines")
        finally:
            if self.python is not None:
                self.python.stdin.close()
                self.python.stdout.close()
                self.python.wait(60)

    def check(self, block, out, failed):
        if block.output is not None:
            self.compare(block.output, block.output.code, out, "rough" in block.output.words)
        elif failed:
            self.test.fail(f"{block.place}: {out}")

    def run_python(self, block):
        if self.python is None:
            self.python = subprocess.Popen([PYTHON, "-c", CHILD], cwd=self.directory, env=self.environment, text=True, stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE)
        print(json.dumps({"code": "\n" * block.line + block.code, "name": os.path.basename(self.page)}), file=self.python.stdin, flush=True)
        line = self.python.stdout.readline()
        self.test.assertTrue(line, f"{block.place}: Python is gone")
        answer = json.loads(line)
        out, raised = answer["out"], answer["raised"]
        self.test.assertEqual(raised is not None, "raises" in block.words, f"{block.place}: {out}{raised}")
        self.check(block, out + (raised or ""), False)
        said = re.findall(r"^\s*print\(.*\)\s+# ([-\d\['].*)$", block.code, re.MULTILINE)
        printed = iter(out.splitlines())
        for text in said:
            if not any(re.match(pattern(text, False), line) for line in printed):
                self.test.fail(f"{block.place}: it prints no {text!r}, but\n{out}")

    def run_js(self, block):
        self.scripts.append(block)

    def run_module(self):
        if not self.scripts or GJS == "":
            return
        path = os.path.join(self.directory, "page.js")
        with open(path, "w", encoding="utf-8") as file:
            for block in self.scripts:
                file.write(f"{block.code}\nprint('---- {block.place}');\n")
        done = subprocess.run([GJS, "-m", path], cwd=self.directory, env=self.environment, capture_output=True, text=True, timeout=100, check=False)
        self.test.assertEqual((done.returncode, done.stderr), (0, ""), f"{self.page}: {done.stdout}")
        rest = done.stdout
        for block in self.scripts:
            out, _, rest = rest.partition(f"---- {block.place}\n")
            self.check(block, out, False)
            said = re.findall(r"^\s*print\(.*\);\s+// ([-\d\['].*)$", block.code, re.MULTILINE)
            self.test.assertEqual([line for line in out.splitlines() if line in said], said, f"{block.place}: {out}")

    def shell(self, block, command):
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", command], cwd=self.directory, env=self.environment, text=True, timeout=200, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True)
        self.test.assertEqual(done.returncode, int(block.words.get("status", 0)), f"{block.place}: {command}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def run_sh(self, block):
        lines = block.code.replace("\\\n", " ").splitlines()
        kept = [line for line in lines if not PLACEHOLDER.search(line.split(" #")[0])]
        self.test.assertTrue(kept, f"{block.place}: there is nothing to run; say norun=\"why\"")
        self.check(block, self.shell(block, "\n".join(kept)), False)

    def run_console(self, block):
        parts = re.split(r"^\$ ", block.code, flags=re.MULTILINE)
        self.test.assertEqual(parts[0].strip(), "", f"{block.place}: begins without a command")
        for part in parts[1:]:
            command, expected = re.match(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.DOTALL).groups()
            self.compare(block, expected, self.shell(block, command), "rough" in block.words)


class Snippets(unittest.TestCase):
    def page(self, page):
        everything = blocks(page)
        with tempfile.TemporaryDirectory() as directory:
            os.makedirs(os.path.join(directory, "build", "pto", "programs", "pto"))
            os.symlink(PTO, os.path.join(directory, "build", "pto", "programs", "pto", "pto"))
            os.symlink(os.path.join(ROOT, "examples"), os.path.join(directory, "examples"))
            if PYTHON:
                os.mkdir(os.path.join(directory, "bin"))
                os.symlink(PYTHON, os.path.join(directory, "bin", "python3"))
            for block in blocks(EXAMPLE):
                if block.file and page != EXAMPLE:
                    with open(os.path.join(directory, block.file), "w", encoding="utf-8") as file:
                        file.write(block.code)
            Page(self, page, directory).run(everything)
        run = "\n".join(block.code for block in everything if block.file is None)
        others = "\n".join(block.code for block in everything if block.file)
        for block in everything:
            if block.file and page != EXAMPLE:
                used = block.file in run or re.search(rf"(?:source|include|file)\W*{re.escape(block.file)}", others)
                self.assertTrue(used or block.file == "pto.ini", f"{block.place}: nobody uses {block.file}")

    def test_what_is_not_run(self):
        """Every block says what it is; what is not run says why, and how many these are is known."""
        if len(sys.argv) > 1:
            self.skipTest("pages were named")
        not_run, not_code = [], []
        for page in PAGES:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                text = file.read()
            self.assertEqual(text.count("\n```") % 2, 0, page)
            outside = BLOCK.sub("", text)
            found = re.search(r"(?m)^(?!\s*[-*0-9(|]).*\n\n(    \S.*)", outside)
            self.assertIsNone(found, f"{page}: put this between ```: {found and found[1]}")
            for block in blocks(page):
                self.assertIn(block.language, LANGUAGES, f"{block.place}: of which language is it?")
                self.assertLessEqual(set(block.words), {"file", "norun", "part", "rough", "raises", "status"}, block.place)
                if "norun" in block.words:
                    self.assertGreater(len(block.words["norun"]), 10, f"{block.place}: why is it not run?")
                    not_run.append(block.place)
                elif block.language in FILES:
                    self.assertIsNotNone(block.file or block.part, f"{block.place}: which file is it? file=NAME")
                elif block.language == "text":
                    not_code.append(block.place)
        self.assertEqual(len(not_run), NOT_RUN, not_run)
        self.assertEqual(len(not_code), NOT_CODE, not_code)

    def test_patterns(self):
        """What is compared, and what is not."""
        for expected, got, rough, same in (("a b\n", "a  b", False, True), ("a b", "a c", False, False), ("a ... z", "a b c z", False, True),
                                           ("a ... z", "a z", False, True), ("a ... z", "a b", False, False), ("12 ms, 1 234", "13.5 us, 99", True, True),
                                           ("12 ms, 99/s", "13.5 s, 12 345/s", True, True), ("12 ms", "13 kg", True, False), ("12 ms", "13 us", False, False), ("12", "13", False, False), ("x=0x...,", "x=0x7f2,", False, True),
                                           ("a", "a b", False, False), ("a ...", "a b c", False, True), ("... c", "a b c", False, True)):
            with self.subTest(expected=expected, got=got):
                self.assertEqual(re.match(pattern(expected, rough), got, re.DOTALL) is not None, same)


    def test_tutorial(self):
        """It computes what NumPy does, as it says itself; its pictures are of as many tasks as its words are."""
        if PYTHON == "":
            self.skipTest("no Python with gi")
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([PYTHON, os.path.join(ROOT, "doc", "make-tutorial.py"), os.path.join(ROOT, "doc", "tutorial.py"), directory],
                                  capture_output=True, text=True, timeout=200, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            page, pictures = self.read(directory, "tutorial.md"), {}
            for name in sorted(os.listdir(directory)):
                if name.endswith(".svg"):
                    pictures[name] = re.search(r'class="numbers"[^>]*>(\d+) tasks? ', self.read(directory, name))[1]
        self.assertEqual(list(pictures.values()), ["1", "48", "2", "6", "26", "192", "192"])
        for number in "26 tasks", "192 tasks, one after", "into 48 pieces", "seven steps":
            self.assertIn(number, " ".join(page.split()))
        self.assertEqual(re.findall(r"!\[[^]]*\]\((.*)\)", page), list(pictures))

    @staticmethod
    def read(*path):
        with open(os.path.join(*path), encoding="utf-8") as file:
            return file.read()


def test_of(page):
    def test(self):
        if PYTHON == "":
            self.skipTest("no Python with gi")
        self.page(page)
    return test


for name in PAGES:
    if any(b.language in ("python", "js", "sh", "console") and "norun" not in b.words for b in blocks(name)):
        setattr(Snippets, "test_" + re.sub(r"\W", "_", name), test_of(name))

tap.main()
