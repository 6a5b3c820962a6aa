# test_translations.py: is everything marked that a person reads, and is all of it translated?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# usage: test_translations.py PTO SOURCE_ROOT
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

program, root = sys.argv[1], pathlib.Path(sys.argv[2])
po = root / "po"
tools = [shutil.which(name) for name in ("xgettext", "msgcmp", "msgfmt")]
# As po/meson.build has them, with its preset; msgcmp does not look at places.
keywords = ["_", "N_", "C_:1c,2", "P_:1,2", "g_dngettext:2,3"]
# Whose text a person reads, and which argument it is.
says = {
    "g_set_error": 3, "g_set_error_literal": 3, "g_error_new": 2, "g_error_new_literal": 2, "g_prefix_error": 1,
    "pto_error_set": 3, "pto_error_prefix": 1, "pto_manifest_fail": 3, "pto_report_set": 2, "pto_engine_fail": 2,
    "pto_engine_refuse": 3, "pto_chip_refuse": 1, "pto_chip_refuse_with": 2, "pto_failure_set": 3,
}
token = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\S""", re.S)


def listed(name):
    lines = (po / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def sources():
    for directory in ("pto", "pto/core", "pto/exec", "pto/process", "pto/tools", "sim"):
        yield from sorted((root / directory).glob("*.c"))


def unmarked(text):
    """The texts of errors that are in no macro which marks them."""
    stack = []
    last = ""
    for match in token.finditer(text):
        word = match.group()
        if word.startswith(("/*", "//")):
            continue
        if word in "([{":
            stack.append([last, 0])
        elif word in ")]}" and stack:
            stack.pop()
        elif word == "," and stack:
            stack[-1][1] += 1
        elif word[0] == '"' and stack and says.get(stack[-1][0]) == stack[-1][1]:
            # Placeholders, the option or question that was given, names of groups in files and of functions are no words.
            bare = re.sub(r"^\"(--)?[a-z]+: |%[-+ #0-9.*]*(?:ll|[lzth])?[a-zA-Z]|\[[a-z]+\]|\w+\(\)|\\.", " ", word)
            if re.search(r"[A-Za-z]{2}", bare):
                yield text.count("\n", 0, match.start()) + 1, word
        last = word


def shown(name):
    """What a chapter shows as it is typed and printed: fenced, or indented behind an empty line."""
    text = (root / name).read_text(encoding="utf-8")
    fenced = re.findall(r"^```.*?^```$", text, re.M | re.S)
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return fenced + re.findall(r"(?<=\n\n)    \S.*(?:\n+    .*)*", plain)


def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@unittest.skipUnless(all(tools), "no xgettext, msgcmp and msgfmt (install gettext)")
class Catalogues(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.template = os.path.join(self.scratch.name, "libpto.pot")

    def tool(self, *args):
        result = subprocess.run(args, cwd=root, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def make_template(self):
        told = self.tool("xgettext", "--from-code=UTF-8", "--keyword", "--output", self.template, "--files-from", po / "POTFILES",
                         *("--keyword=" + keyword for keyword in keywords),
                         *(f"--flag=P_:{n}:pass-c-format" for n in (1, 2)))
        # A text that it can not read to its end, such as one with G_GUINT64_FORMAT in it.
        self.assertEqual(told, "")

    def test_every_message_is_translated(self):
        self.make_template()
        self.assertEqual(listed("LINGUAS"), ["de", "zh_CN"])
        for language in listed("LINGUAS"):
            with self.subTest(language):
                self.tool("msgcmp", po / f"{language}.po", self.template)

    def test_translations_take_the_same_arguments(self):
        for language in listed("LINGUAS"):
            with self.subTest(language):
                self.tool("msgfmt", "--check", "--output-file", os.devnull, po / f"{language}.po")


class Marks(unittest.TestCase):
    def test_files_with_marks_are_listed(self):
        marked = [str(path.relative_to(root)) for path in sources()
                  if re.search(r"(?<!\w)(_|N_|C_|P_|g_dngettext) \(", path.read_text(encoding="utf-8"))]
        self.assertEqual(listed("POTFILES"), sorted(marked))

    def test_errors_are_marked(self):
        found = [f"{path.relative_to(root)}:{line}: {text}" for path in sources()
                 for line, text in unmarked(path.read_text(encoding="utf-8"))]
        self.assertEqual(found, [])

    def test_what_is_not_marked_is_found(self):
        self.assertEqual(list(unmarked('g_set_error (e, D, C, "it is %s", a);')), [(1, '"it is %s"')])
        self.assertEqual(list(unmarked('g_set_error (e, D, C, _ ("it is %s"), a);\nf ("not it");')), [])


class Chapters(unittest.TestCase):
    def test_they_show_what_the_english_ones_show(self):
        for english, chinese in ("README.md", "README.zh_CN.md"), ("doc/start.md", "doc/start-zh.md"), ("doc/overview.md", "doc/overview-zh.md"):
            with self.subTest(chinese):
                self.assertEqual(shown(chinese), shown(english))


@unittest.skipUnless(all(tools), "no xgettext, msgcmp and msgfmt (install gettext)")
class Chinese(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        for language in listed("LINGUAS"):
            place = os.path.join(cls.scratch.name, language, "LC_MESSAGES")
            os.makedirs(place)
            subprocess.run(["msgfmt", "--output-file", os.path.join(place, "libpto.mo"), po / f"{language}.po"], check=True, timeout=60)

    def pto(self, *args, status=0, language="zh_CN", locale="C.UTF-8"):
        env = dict(os.environ, LC_ALL=locale, LANGUAGE=language, PTO_LOCALE_DIR=self.scratch.name)
        result = subprocess.run([program, *args], env=env, capture_output=True, timeout=120)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout.decode(), result.stderr.decode()

    def test_the_tool_speaks_it(self):
        self.assertEqual(self.pto("run", "/nonexistent", status=3), ("", "pto: /nonexistent：没有这个目录\n"))
        self.assertEqual(self.pto("run", "/nonexistent", status=3, language="de"),
                         ("", "pto: /nonexistent: dieses Verzeichnis gibt es nicht\n"))
        self.assertEqual(self.pto("run", "/nonexistent", status=3, locale="C"), ("", "pto: /nonexistent: no such directory\n"))

    def test_the_engine_speaks_it(self):
        out, err = self.pto("run", str(root / "examples" / "vector"), "--set", "task-window=4", "--backend", "det", status=3)
        self.assertEqual(out, "")
        self.assertIn("任务环 1 死锁：全部 3 个可用槽位（窗口 4，任务 0 到 2）都被在 ", err)
        self.assertIn("请把 task-window 设为 8 或更大（全部已提交的内容在该环中同时至多占用 5 个任务）。\n", err)

    def test_a_run_is_a_table(self):
        out, err = self.pto("run", str(root / "examples" / "vector"), "--backend", "det")
        self.assertEqual(err, "")
        rows = out.splitlines()[1:]
        self.assertIn("PASS  最大误差 0", out)
        for row in rows:
            name = re.match(r"  \S+( \S+)? +", row).group()
            self.assertEqual(width(name), 16, row)

    def test_what_programs_read_is_not_translated(self):
        args = "run", str(root / "examples" / "vector"), "--backend", "det", "--json"
        here, there = (json.loads(self.pto(*args, language=language)[0]) for language in ("zh_CN", "C"))
        self.assertEqual(here.keys(), there.keys())
        for name in ("result", "backend", "platform"):
            if name in there:
                self.assertEqual(here[name], there[name])
        here, there = (json.loads(self.pto("info", "--json", language=language)[0]) for language in ("zh_CN", "C"))
        self.assertEqual(here["parameters"], there["parameters"])

    def test_pages_are_those_of_the_build(self):
        for kind in "man", "bash", "zsh":
            with self.subTest(kind):
                self.assertEqual(self.pto("--print-page", kind), self.pto("--print-page", kind, language="C"))

    def test_help_names_the_same_values(self):
        for command in "run", "explore", "trace", "whatif", "top", "bench", "calibrate", "new":
            with self.subTest(command):
                here, there = (sorted(re.findall(r"^ +(?:-\w, )?--[a-z-]+=\S+", self.pto("help", command, language=language)[0], re.M))
                               for language in ("zh_CN", "C"))
                self.assertEqual(here, there)


if __name__ == "__main__":
    del sys.argv[1:]
    tap.main()
