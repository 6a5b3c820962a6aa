# test_configure.py: what does the build leave out where an optional part is missing, or there only by half?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each test hides one part: PATH and PKG_CONFIG_LIBDIR are directories of links to what this system has, without that part.
# Half a part is a library that pkg-config finds without its files, or a program that fails.
# Argument: the source directory.
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
# What makes no difference to a part is not configured.
FEW = ("-Dtests=disabled", "-Dgir=disabled", "-Ddocs=disabled")
# What a macro leaves unused, the compiler says without optimization as well.
COMPILED = (*FEW, "-Dwerror=true", "-Doptimization=0")
NO_TESTS = ("-Dtests=disabled",)
NO_DOCS = ("-Ddocs=disabled", "-Dvapi=disabled")
VARIABLES = "DESTDIR", "CC", "CXX", "PKG_CONFIG_PATH", "PYTHONPATH"
FAILS = "#!/bin/sh\nexit 1\n"
NOT_LINKED = "Name: stand-in\nDescription: a library without its files\nVersion: 99\nLibs: -lpto-there-is-none\n"
# openmpi-bin without libopenmpi-dev.
HALF_MPICC = ("#!/bin/sh\ncase $1 in\n--showme:compile) echo -I/nowhere/include ;;\n--showme:link) ;;\n"
              "--showme:version) echo 'mpicc: Open MPI 4.1.4 (Language: C)' ;;\n*) exec cc \"$@\" ;;\nesac\n")
HALF_LIBRARIES = {"programs": "mpi|ompi", "libraries": "mpi|ompi", "stand_ins": {
    "bin/mpicc": HALF_MPICC, "pkgconfig/ncursesw.pc": NOT_LINKED, "pkgconfig/gnutls.pc": NOT_LINKED, "pkgconfig/ucx.pc": NOT_LINKED,
    "bin/gjs": FAILS, "bin/valac": FAILS}}
HALF_GENERATORS = {"bin/vapigen": FAILS, "bin/gi-docgen": FAILS}


def link(directory, paths):
    """A directory of links to what is in others."""
    os.makedirs(directory)
    for path in paths:
        for name in os.listdir(path) if os.path.isdir(path) else ():
            if not os.path.lexists(os.path.join(directory, name)):
                os.symlink(os.path.join(path, name), os.path.join(directory, name))


class Configure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.system = tempfile.mkdtemp(prefix="pto-configure-")
        cls.halves = {}
        cls.addClassCleanup(shutil.rmtree, cls.system)
        path = subprocess.run(["pkg-config", "--variable=pc_path", "pkg-config"], stdout=subprocess.PIPE, text=True, check=True).stdout
        link(os.path.join(cls.system, "bin"), ["/usr/local/bin", "/usr/bin", "/bin"])
        link(os.path.join(cls.system, "pkgconfig"), path.strip().split(":"))

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-configure-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.build = os.path.join(self.directory, "build")
        self.env = {name: value for name, value in os.environ.items() if name not in VARIABLES}

    def hide(self, place, hidden):
        """Until the test ends, what matches is not in that directory of the system."""
        directory = os.path.join(self.system, place)
        for name in os.listdir(directory):
            if re.match(hidden, name):
                self.addCleanup(os.symlink, os.readlink(os.path.join(directory, name)), os.path.join(directory, name))
                os.unlink(os.path.join(directory, name))

    def configure(self, *options, programs="$", libraries="$", modules=(), stand_ins={}):
        """The exit status of `meson setup` and what it says: what matches is hidden, and stand-ins come before the others."""
        self.hide("bin", programs)
        self.hide("pkgconfig", libraries)
        files = {os.path.join("python", module, "__init__.py"): "raise ImportError('hidden by a test')\n" for module in modules}
        for name, text in (files | stand_ins).items():
            file = os.path.join(self.directory, name)
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "w", encoding="utf-8") as output:
                output.write(text)
            os.chmod(file, 0o755)
        for variable, place in (("PATH", "bin"), ("PKG_CONFIG_LIBDIR", "pkgconfig")):
            self.env[variable] = os.path.join(self.directory, place) + ":" + os.path.join(self.system, place)
        self.env["LC_ALL"] = "C.UTF-8"
        if modules:
            self.env["PYTHONPATH"] = os.path.join(self.directory, "python")
        done = subprocess.run([shutil.which("meson"), "setup", self.build, source, *options], env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def left_out(self, text, *options, **hidden):
        """Configures, and finds the text among what the summary says is left out."""
        self.finds_left_out(text, *self.configure(*options, **hidden))

    def finds_left_out(self, text, status, said):
        self.assertEqual(status, 0, said[-3000:])
        summary = re.search(r"left out +: (.*?)\n\n", said, re.S)
        lines = [line.strip() for line in summary.group(1).split("\n")] if summary else []
        self.assertTrue(any(line.startswith(text) for line in lines), lines)
        # A line says what to install.
        self.assertIn("(install ", next(line for line in lines if line.startswith(text)))

    def compile_all(self, word):
        """What asks the preprocessor for this word is compiled without the part."""
        listed = subprocess.run(["ninja", "-C", self.build, "-t", "targets", "all"], env=self.env, stdout=subprocess.PIPE,
                                text=True, check=True).stdout
        files = subprocess.run(["grep", "-rlw", word, "--include=*.c", os.path.join(source, "pto")], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split()
        names = {os.path.basename(file) + ".o" for file in files}
        objects = [line.split(":")[0] for line in listed.splitlines() if os.path.basename(line.split(":")[0]) in names]
        self.assertNotEqual(objects, [])
        done = subprocess.run(["ninja", "-C", self.build, *objects], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])

    # Without a part.

    def test_mpi(self):
        hidden = "mpi|ompi|opal|orte|osh"
        self.left_out("collectives of remote workers by MPI", *FEW, programs=hidden, libraries=hidden)

    def test_ncurses(self):
        self.left_out("pto top on a screen", *COMPILED, programs="ncurses.*-config", libraries="ncurses")
        self.compile_all("HAVE_NCURSES")

    def test_tls(self):
        self.left_out("remote workers at tls://", *COMPILED, libraries="gnutls")
        self.compile_all("HAVE_GNUTLS")

    def test_ucx(self):
        self.left_out("large tensors of remote workers by UCX", *FEW, libraries="ucx")

    def test_msgfmt(self):
        self.left_out("translations", *FEW, programs="msgfmt$")

    def test_scanner(self):
        self.left_out("introspection data", *NO_TESTS, programs="g-ir-scanner$")

    def test_introspection(self):
        self.left_out("introspection data", *NO_TESTS, libraries="gobject-introspection")

    def test_vapigen(self):
        self.left_out("Vala bindings", *NO_TESTS, programs="vapigen", libraries="vapigen")

    def test_docgen(self):
        self.left_out("reference manual", *NO_TESTS, programs="gi-docgen$")

    def test_gjs(self):
        self.left_out("JavaScript tests", *NO_DOCS, programs="gjs")

    def test_valac(self):
        self.left_out("Vala tests", "-Ddocs=disabled", programs="vala")

    def test_cplusplus(self):
        self.left_out("tests of the C++ headers", "-Dgir=disabled", programs=r"(.*-)?(g\+\+|c\+\+|clang\+\+)")

    def test_gi_of_python(self):
        self.left_out("Python tests", *NO_DOCS, modules=["gi"])

    def test_numpy(self):
        if shutil.which("gi-docgen") is None:
            self.skipTest("no gi-docgen, which makes the manual")
        self.left_out("pictures of the tutorial in the manual", *NO_TESTS, modules=["numpy"])

    # With half of one. Halves of which none needs another are there together.

    def half(self, text, *options, **change):
        """As left_out(), with one configuration for all tests that ask for the same."""
        key = str((options, sorted(change.items())))
        if key not in self.halves:
            self.halves[key] = self.configure(*options, **change)
        self.finds_left_out(text, *self.halves[key])

    def test_half_mpi(self):
        self.half("collectives of remote workers by MPI", "-Ddocs=disabled", **HALF_LIBRARIES)
        # Asked for, it is an error that names the packages.
        shutil.rmtree(self.directory)
        status, said = self.configure("-Dmpi=enabled", *FEW, **HALF_LIBRARIES)
        self.assertEqual(status, 1, said[-3000:])
        self.assertRegex(said, "ERROR: (Problem encountered: )?mpi: .* [(]install libopenmpi-dev")

    def test_half_ncurses(self):
        self.half("pto top on a screen", "-Ddocs=disabled", **HALF_LIBRARIES)

    def test_half_tls(self):
        self.half("remote workers at tls://", "-Ddocs=disabled", **HALF_LIBRARIES)

    def test_half_ucx(self):
        self.half("large tensors of remote workers by UCX", "-Ddocs=disabled", **HALF_LIBRARIES)

    def test_half_gjs(self):
        self.half("JavaScript tests", "-Ddocs=disabled", **HALF_LIBRARIES)

    def test_half_valac(self):
        self.half("Vala tests", "-Ddocs=disabled", **HALF_LIBRARIES)

    def test_half_scanner(self):
        self.half("introspection data", *NO_TESTS, "-Ddocs=disabled", stand_ins={"bin/g-ir-scanner": FAILS})

    def test_half_vapigen(self):
        self.half("Vala bindings", *NO_TESTS, stand_ins=HALF_GENERATORS)

    def test_half_docgen(self):
        self.half("reference manual", *NO_TESTS, stand_ins=HALF_GENERATORS)


tap.main()
