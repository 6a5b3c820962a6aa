# test_architectures.py: where does libpto refuse to be built, and for which machines are there packages?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: the source directory, and Meson's command.
import os
import platform
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

source = os.path.abspath(sys.argv[1])
meson = sys.argv[2:]
del sys.argv[1:]

# Nothing is linked and nothing runs before the refusal, so the libraries of such a machine need not be there.
CROSS = """[binaries]
c = ['cc', {arguments}]
[properties]
needs_exe_wrapper = true
[host_machine]
system = 'linux'
cpu_family = '{family}'
cpu = '{family}'
endian = '{endian}'
"""


def read(*path):
    with open(os.path.join(source, *path), encoding="utf-8") as file:
        return file.read()


def set_up(family, endian, *arguments):
    """Exit status of `meson setup` for that machine, and what it prints."""
    with tempfile.TemporaryDirectory(prefix="pto-architecture-") as directory:
        cross = os.path.join(directory, "cross.ini")
        with open(cross, "w", encoding="utf-8") as file:
            file.write(CROSS.format(family=family, endian=endian, arguments=", ".join(map(repr, arguments))))
        done = subprocess.run([*meson, "setup", os.path.join(directory, "build"), source, "--cross-file", cross],
                              text=True, capture_output=True, timeout=90, check=False)
        return done.returncode, done.stdout + done.stderr


class Refusals(unittest.TestCase):
    def assert_refused(self, outcome, sentence):
        status, text = outcome
        self.assertEqual(status, 1, text)
        self.assertIn("ERROR: Problem encountered: " + sentence, text)

    def test_32_bits(self):
        # Other compilers than those for x86 have no such option: then the one that asks is told so.
        option = ["-m32"] if platform.machine() == "x86_64" else ["-U__SIZEOF_POINTER__", "-D__SIZEOF_POINTER__=4"]
        self.assert_refused(set_up("x86", "little", *option),
                            "libpto needs a machine with 64 bits, and addresses have fewer on x86: ")

    def test_big_endian(self):
        self.assert_refused(set_up("s390x", "big"), "libpto needs a little-endian machine, and s390x is none: ")


class Packages(unittest.TestCase):
    def test_debian(self):
        self.assertEqual(set(re.findall(r"^Architecture: (.*)$", read("debian", "control"), re.MULTILINE)),
                         {"amd64 arm64", "all"})

    def test_open_euler(self):
        self.assertEqual(re.findall(r"^ExclusiveArch: *(.*)$", read("doc", "packaging", "libpto.spec"), re.MULTILINE),
                         ["x86_64 aarch64 noarch"])

    def test_the_page_names_them(self):
        page = read("doc", "platforms.md")
        for name in ("amd64", "arm64"):
            self.assertRegex(page, rf"\| [^|]*\b{name}\b[^|]*\| yes \|")


tap.main()
