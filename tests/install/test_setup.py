# test_setup.py: does examples/setup.sh install what is missing, and only that, as root and as somebody else?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The PATH holds stand-ins, which write down how they were called, and the few tools that the script itself uses: what
# this machine has, and who runs the test, makes no difference. Argument: the source directory.
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

source = os.path.abspath(sys.argv.pop(1))
TOOLS = ("basename", "env", "mktemp", "rm", "sh", "tail")
UPDATE = "apt-get[noninteractive] update"
INSTALL = "apt-get[noninteractive] install -y --no-install-recommends"

STAND_INS = {
    "id": """echo "$TEST_UID"\n""",
    "dpkg-query": """for package; do :; done
case " $TEST_INSTALLED " in
  *" $package "*) printf 'install ok installed' ;;
  *" $package:half "*) printf 'install ok half-configured' ;;
  *) echo "dpkg-query: no packages found matching $package" >&2; exit 1 ;;
esac
""",
    "sudo": """echo "sudo $*" >> "$TEST_LOG"\nexec "$@"\n""",
    "apt-get": """echo "apt-get[$DEBIAN_FRONTEND] $*" >> "$TEST_LOG"
echo "apt-get says $1"
test "$1" != "$TEST_FAILS"
""",
}


class Setup(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="pto-setup-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = os.path.join(self.directory, "bin")
        self.scratch = os.path.join(self.directory, "tmp")
        os.mkdir(self.path)
        os.mkdir(self.scratch)
        for name in TOOLS:
            os.symlink(shutil.which(name), os.path.join(self.path, name))
        for name, text in STAND_INS.items():
            with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + text)
            os.chmod(os.path.join(self.path, name), 0o755)

    def install(self, *packages, uid=0, installed=(), fails="", without=()):
        """Exit status, standard output, standard error, and the calls of sudo and apt-get, in order."""
        for name in without:
            os.unlink(os.path.join(self.path, name))
        log = os.path.join(self.directory, "log")
        script = f'set -eu\n. "{source}/examples/setup.sh"\ninstall_packages "$@"\necho and on\n'
        done = subprocess.run([shutil.which("sh"), "-c", script, "run.sh", *packages], text=True, capture_output=True,
                              timeout=60, check=False,
                              env={"PATH": self.path, "TMPDIR": self.scratch, "TEST_LOG": log, "TEST_UID": str(uid),
                                   "TEST_INSTALLED": " ".join(installed), "TEST_FAILS": fails})
        calls = []
        if os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                calls = file.read().splitlines()
        self.assertEqual(os.listdir(self.scratch), [], "a log was left behind")
        return done.returncode, done.stdout, done.stderr, calls

    def test_nothing_missing(self):
        for uid in (0, 1000):
            self.assertEqual(self.install("gcc", "ninja-build", uid=uid, installed=("gcc", "ninja-build")),
                             (0, "and on\n", "", []))

    def test_root(self):
        self.assertEqual(self.install("gcc", "meson", "pkg-config", installed=("meson",), without=("sudo",)),
                         (0, "Installing 2 packages ... done\nand on\n", "",
                          [UPDATE, f"{INSTALL} gcc pkg-config"]))

    def test_somebody(self):
        self.assertEqual(self.install("gcc", "meson", uid=1000, installed=("meson",)),
                         (0, "Installing 1 packages ... done\nand on\n", "",
                          ["sudo env DEBIAN_FRONTEND=noninteractive apt-get update", UPDATE,
                           "sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc",
                           f"{INSTALL} gcc"]))

    def test_half_installed(self):
        status, _, _, calls = self.install("gcc", installed=("gcc:half",))
        self.assertEqual((status, calls), (0, [UPDATE, f"{INSTALL} gcc"]))

    def test_nobody_may(self):
        self.assertEqual(self.install("gcc", "meson", uid=1000, without=("sudo",)),
                         (1, "", "run.sh: not root and no sudo; as root: apt-get install gcc meson\n", []))

    def test_other_system(self):
        self.assertEqual(self.install("gcc", without=("apt-get", "dpkg-query")),
                         (1, "", "run.sh: no apt-get here; install by hand: gcc\n", []))

    def test_apt_fails(self):
        for uid in (0, 1000):
            for fails, said in (("update", "apt-get says update\n"),
                                ("install", "apt-get says update\napt-get says install\n")):
                with self.subTest(uid=uid, fails=fails):
                    status, out, err, calls = self.install("gcc", "meson", uid=uid, fails=fails)
                    self.assertEqual((status, out), (1, "Installing 2 packages ... failed\n"))
                    self.assertEqual(err, said + "run.sh: these packages could not be installed: gcc meson\n")
                    self.assertTrue(calls[-1].startswith(f"apt-get[noninteractive] {fails}"), calls)
                    os.unlink(os.path.join(self.directory, "log"))

    def test_what_a_build_needs(self):
        """The list itself goes through the same way, a word a package."""
        script = f'. "{source}/examples/setup.sh"; set -- $build_packages; echo $#; install_packages "$@"'
        log = os.path.join(self.directory, "log")
        done = subprocess.run([shutil.which("sh"), "-c", script, "run.sh"], text=True, capture_output=True, timeout=60,
                              check=False, env={"PATH": self.path, "TMPDIR": self.scratch, "TEST_LOG": log,
                                                "TEST_UID": "0", "TEST_INSTALLED": "", "TEST_FAILS": ""})
        count = done.stdout.split()[0]
        self.assertEqual(done.stdout, f"{count}\nInstalling {count} packages ... done\n", done.stderr)
        with open(log, encoding="utf-8") as file:
            words = file.read().splitlines()[-1].split()
        self.assertIn("ninja-build", words)
        self.assertEqual(len(words) - len(INSTALL.split()), int(count))


tap.main()
