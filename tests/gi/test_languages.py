# test_languages.py: do the messages of the bindings come in the reader's language?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Argument: gjs, or nothing. Every program is a process of its own: a language is chosen once.
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import tap

gjs = sys.argv.pop(1)
po = pathlib.Path(__file__).resolve().parents[2] / "po"
BEGIN = """
import locale, sys
import gi
gi.require_version("Pto", "1")
from gi.repository import Pto

def said(call):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error, sep="|", flush=True)
"""
ERRORS = """
said(lambda: Pto.Worker(level="a"))
said(lambda: Pto.Callable.kernel("scale.c", "gpu"))
said(lambda: Pto.Tensor.of(None))
"""
ENGLISH = """\
TypeError|level: 'a' is not an integer
ValueError|scale.c: there is no such type of core: it is "aic" or "aiv"
TypeError|None is no tensor: a tensor, an array or a list of numbers is wanted
"""
CHINESE = """\
TypeError|level：'a' 不是整数
ValueError|scale.c：没有这种核类型：应为 "aic" 或 "aiv"
TypeError|None 不是张量：应为张量、数组或数的列表
"""
GERMAN = """\
TypeError|level: 'a' ist keine ganze Zahl
ValueError|scale.c: eine solche Art von Kern gibt es nicht: es ist "aic" oder "aiv"
TypeError|None ist kein Tensor: erwartet ist ein Tensor, ein Array oder eine Liste von Zahlen
"""
SET_LOCALE = 'locale.setlocale(locale.LC_MESSAGES, "")\n'
# In a child, whose exception has the text that it has there.
LEVELS = """
with Pto.Worker(level=3, sub_workers=1) as worker:
    handle = worker.register(Pto.Callable.function(lambda args: Pto.Tensor.of(None), Pto.CallableKind.SUB))
    said(lambda: worker.run(lambda orch: orch.submit_sub(handle)))
"""
# In a process of its own, which has set its locale by itself.
REMOTE = """
with Pto.Worker(level=4) as host:
    host.add_remote_worker("local:", sub_workers=1, roots=sys.argv[1])
    host.start()
    try:
        host.register(Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, "os:system"))
    except Pto.Error as error:
        print(error.message)
"""
PROGRESS = """
with Pto.Worker(platform="a2a3sim") as worker:
    with worker.show_progress(sys.stdout):
        for _ in range(int(sys.argv[1])):
            worker.run(lambda orch: orch.submit_order())
"""
JAVASCRIPT = """
imports.gi.versions.Pto = '1';
const {Pto} = imports.gi;
for (const call of [() => Pto.Tensor.of(3), () => new Pto.TaskArgs().set_block_dim('%s'), () => Pto.Callable.kernel('a%sb', {core: 'gpu'}),
    () => (new Pto.TaskArgs().directon = 1)]) {
    try {
        call();
    } catch (error) {
        print(`${error.name}|${error.message}`);
    }
}
"""
JAVASCRIPT_ENGLISH = """\
TypeError|3 is no tensor: a tensor, a buffer, an array such as a Float32Array or a list of numbers is wanted
TypeError|set_block_dim: "%s" is not a whole number of blocks, 1 to 268435455
TypeError|a%sb: there is no such type of core: "gpu": it is "aic" or "aiv"
TypeError|Pto.TaskArgs.directon does not exist
"""
JAVASCRIPT_CHINESE = """\
TypeError|3 不是张量：应为张量、缓冲区、Float32Array 之类的数组，或数的列表
TypeError|set_block_dim："%s" 不是 1 到 268435455 之间的整数个块
TypeError|a%sb：没有这种核类型："gpu"：应为 "aic" 或 "aiv"
TypeError|Pto.TaskArgs.directon 不存在
"""


class Languages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        # From glibc 2.41 on LANGUAGE says nothing in C.UTF-8: the same locale by another name.
        shutil.copytree("/usr/lib/locale/C.utf8", os.path.join(cls.scratch.name, "zh_CN.utf8"))
        for language in ("de", "zh_CN") if shutil.which("msgfmt") else ():
            place = os.path.join(cls.scratch.name, language, "LC_MESSAGES")
            os.makedirs(place)
            subprocess.run(["msgfmt", "--output-file", os.path.join(place, "libpto.mo"), po / f"{language}.po"], check=True, timeout=60)

    def said(self, *command, language="zh_CN", locale="zh_CN.UTF-8", directory=None):
        env = dict(os.environ, LC_ALL=locale, LOCPATH=self.scratch.name, LANGUAGE=language, PTO_LOCALE_DIR=directory or self.scratch.name, PYTHONIOENCODING="utf-8")
        result = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual((result.returncode, result.stderr.decode()), (0, ""))
        return result.stdout.decode()

    def python(self, program, *args, **choices):
        return self.said(sys.executable, "-c", BEGIN + program, *args, **choices)

    def test_english_is_what_there_is_without_a_catalogue(self):
        self.assertEqual(self.python(SET_LOCALE + ERRORS, directory=os.path.join(self.scratch.name, "nowhere")), ENGLISH)

    def test_the_locale_is_the_program_s_affair(self):
        self.assertEqual(self.python(ERRORS), ENGLISH)
        self.assertEqual(self.python(SET_LOCALE + ERRORS, locale="C"), ENGLISH)

    @unittest.skipUnless(shutil.which("msgfmt"), "no msgfmt (install gettext)")
    def test_python(self):
        self.assertEqual(self.python(SET_LOCALE + ERRORS), CHINESE)
        self.assertEqual(self.python(SET_LOCALE + ERRORS, language="de"), GERMAN)

    @unittest.skipUnless(shutil.which("msgfmt"), "no msgfmt (install gettext)")
    def test_python_in_a_child(self):
        self.assertEqual(self.python(SET_LOCALE + LEVELS), "TypeError|None 不是张量：应为张量、数组或数的列表\n")

    @unittest.skipUnless(shutil.which("msgfmt"), "no msgfmt (install gettext)")
    def test_python_in_a_remote_worker(self):
        roots = os.path.join(os.path.dirname(os.path.abspath(__file__)), "remote-root")
        self.assertIn(f"“os:system”无法导入：os 不在此 worker 可导入的目录中：{roots}", self.python(SET_LOCALE + REMOTE, roots))

    @unittest.skipUnless(shutil.which("msgfmt"), "no msgfmt (install gettext)")
    def test_progress(self):
        for language, n, begin, tasks in (("de", 1, "", "1 von 1 Tasks"), ("de", 2, "2 Läufe: 100 %|", "2 von 2 Tasks"),
                                          ("zh_CN", 2, "2 次运行：100 %|", "2/2 个任务")):
            with self.subTest(language, n=n):
                line = self.python(SET_LOCALE + PROGRESS, str(n), language=language)
                self.assertTrue(line.startswith(begin), line)
                self.assertIn(f"| {tasks} [", line)
        self.assertRegex(self.python(PROGRESS, "2"), r"^2 runs: 100 %\|#{20}\| 2 of 2 tasks \[\d+\.\d s(, \d+ tasks/s)?\]\n$")

    @unittest.skipUnless(gjs, "no gjs")
    def test_javascript(self):
        path = os.path.join(self.scratch.name, "program.js")
        pathlib.Path(path).write_text(JAVASCRIPT, encoding="utf-8")
        self.assertEqual(self.said(gjs, path, locale="C"), JAVASCRIPT_ENGLISH)
        self.assertEqual(self.said(gjs, path, directory=os.path.join(self.scratch.name, "nowhere")), JAVASCRIPT_ENGLISH)
        if shutil.which("msgfmt"):
            self.assertEqual(self.said(gjs, path), JAVASCRIPT_CHINESE)


tap.main()
