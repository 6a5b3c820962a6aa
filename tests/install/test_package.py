# test_package.py: is what pip installs one package that works by itself?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Argument: the source directory. What is built is built from a copy of that.
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

source = os.path.abspath(sys.argv.pop(1))
LANGUAGES = ("de", "zh_CN") if shutil.which("msgfmt") else ()
VARIABLES = "GI_TYPELIB_PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PTO_API_DIR", "PTO_LOCALE_DIR", "DESTDIR"

PROGRAM = """
import os, sys
from libpto import Pto
from gi.repository import Pto as same
assert Pto is same
assert os.path.samefile(Pto.dup_api_dir(), os.path.join(os.path.dirname(sys.modules["libpto"].__file__), "api"))
buffer = Pto.Buffer.new(64)
fill = Pto.Callable.kernel(sys.argv[1])  # of the override
with Pto.Worker(platform="a2a3sim") as chip:
    chip.run(lambda orch: orch.submit(fill, Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [16]).write_existing(), 2.5))
print(memoryview(buffer.read(0, 4)).cast("f")[0])
"""

MESSAGE = """
import locale
locale.setlocale(locale.LC_ALL, "")
from libpto import Pto
try:
    Pto.Tensor.of(None)
except TypeError as error:
    print(error)
"""


class Package(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-package-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.env = {name: value for name, value in os.environ.items() if name not in VARIABLES}

    def run_in(self, directory, *command):
        done = subprocess.run(command, cwd=directory, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        return done.stdout

    def setup_options(self):
        with open(os.path.join(source, "pyproject.toml"), encoding="utf-8") as file:
            return re.findall(r'"([^"]+)"', re.search(r"^setup = \[(.*)\]$", file.read(), re.M).group(1))

    @unittest.skipUnless(shutil.which("meson"), "no meson")
    def test_places(self):
        """Nothing goes where a wheel has no place for it."""
        build = os.path.join(self.directory, "build")
        self.run_in(source, "meson", "setup", build, *self.setup_options())
        with open(os.path.join(build, "meson-info", "intro-install_plan.json"), encoding="utf-8") as file:
            places = [entry["destination"] for kind in json.load(file).values() for entry in kind.values()]
        self.assertEqual({place.split("/")[0] for place in places}, {"{py_platlib}"}, places)
        self.assertEqual({place.split("/")[1] for place in places}, {"libpto", "gi", "gi-stubs"})
        for name in ("libpto/__init__.py", "libpto/libpto-1.so.0", "libpto/Pto-1.typelib", "libpto/api/tensor.h", "gi/overrides/Pto.py",
                     "gi-stubs/repository/Pto.pyi", *(f"libpto/locale/{language}/LC_MESSAGES/libpto.mo" for language in LANGUAGES)):
            self.assertIn("{py_platlib}/" + name, places)

    @unittest.skipUnless(importlib.util.find_spec("mesonpy") and importlib.util.find_spec("pip") and importlib.util.find_spec("ensurepip"),
                         "no meson-python, or no pip (install python3-mesonpy, python3-venv)")
    def test_pip(self):
        """In an environment of its own, without a variable that says where anything is."""
        copy, place = os.path.join(self.directory, "source"), os.path.join(self.directory, "environment")
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("build", "build-*", ".git", "__pycache__"))
        self.run_in(self.directory, sys.executable, "-m", "venv", "--system-site-packages", place)
        python = os.path.join(place, "bin", "python")
        self.run_in(copy, python, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index",
                    "--config-settings=setup-args=-Doptimization=0", ".")  # which makes no difference but to the time it takes
        shutil.rmtree(copy)
        said = self.run_in(self.directory, python, "-W", "error::Warning:libpto", "-c", PROGRAM,
                           os.path.join(source, "tests", "gi", "fill.c"))
        self.assertEqual(said, "2.5\n")
        # From glibc 2.41 on LANGUAGE says nothing in C.UTF-8: the same locale by another name.
        shutil.copytree("/usr/lib/locale/C.utf8", os.path.join(self.directory, "zh_CN.utf8"))
        for language in LANGUAGES:
            self.env.update(LC_ALL="zh_CN.UTF-8", LOCPATH=self.directory, LANGUAGE=language)
            self.assertEqual(self.run_in(self.directory, python, "-c", MESSAGE), {
                "de": "None ist kein Tensor: erwartet ist ein Tensor, ein Array oder eine Liste von Zahlen\n",
                "zh_CN": "None 不是张量：应为张量、数组或数的列表\n",
            }[language])


tap.main()
