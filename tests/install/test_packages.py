# test_packages.py: does each file that is installed belong to exactly one package, of Debian and of the rpm distribution?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What would be installed is known once Meson has been set up as debian/rules does it: nothing is built. Argument: the source
# directory.
import fnmatch
import glob
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
LIBDIR = "lib/x86_64-linux-gnu"
PACKAGES = {"libpto-1-0", "libpto-1-common", "libpto-1-dev", "libpto-1-ucx", "gir1.2-pto-1", "python3-pto", "pto-tools", "libpto-doc"}
TOOLS = "gi-docgen", "meson", "vapigen"
MACROS = {"_bindir": "/usr/bin", "_libdir": "/usr/" + LIBDIR, "_includedir": "/usr/include", "_datadir": "/usr/share",
          "_mandir": "/usr/share/man", "_docdir": "/usr/share/doc", "python3_sitelib": "/usr/lib/python3/dist-packages"}


def read(*path):
    with open(os.path.join(source, *path), encoding="utf-8") as file:
        return file.read()


def claims(pattern, path):
    """As dh_install and rpmbuild do: an asterisk stays within a directory, and what is below a directory comes with it."""
    patterns, parts = pattern.strip("/").split("/"), path.strip("/").split("/")
    return len(patterns) <= len(parts) and all(map(fnmatch.fnmatchcase, parts, patterns))


def debian():
    """Patterns, each with its package."""
    for path in glob.glob(os.path.join(source, "debian", "*.install")):
        for line in read("debian", path).splitlines():
            if line.strip() and not line.startswith("#"):
                yield line.split()[0], os.path.basename(path).removesuffix(".install")


def spec():
    text = re.sub(r"%\{(\w+)\}", lambda found: MACROS.get(found[1], found[0]), read("doc", "packaging", "libpto.spec"))
    package = None
    for line in text.split("\n%changelog\n")[0].splitlines():
        if line.startswith("%files"):
            package = line
            # What %find_lang has found.
            if ".lang" in line:
                yield "/usr/share/locale/*/LC_MESSAGES/libpto.mo", package
        elif package is not None and line.startswith("/"):
            yield line.strip(), package


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing:
            raise unittest.SkipTest(f"no {missing[0]}")
        if subprocess.run(["pkg-config", "--exists", "ucx"], check=False).returncode != 0:
            raise unittest.SkipTest("no UCX (libucx-dev)")
        options = re.search(r"^override_dh_auto_configure:\n(.*?)\n\n", read("debian", "rules"), re.M | re.S)[1]
        options = re.findall(r" (-D\S+)", options.replace("$(tests)", "disabled"))
        with tempfile.TemporaryDirectory(prefix="pto-packages-") as build:
            env = {name: value for name, value in os.environ.items() if name != "DESTDIR"}
            done = subprocess.run(["meson", "setup", build, source, "--prefix=/usr", "--libdir=" + LIBDIR, *options], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
            if done.returncode != 0:
                raise AssertionError(done.stdout[-4000:])
            with open(os.path.join(build, "meson-info", "intro-installed.json"), encoding="utf-8") as file:
                cls.installed = sorted(json.load(file).values())

    def each_is_claimed_once(self, where, patterns):
        patterns = list(patterns)
        self.assertGreater(len(self.installed), 80)
        said = []
        for path in self.installed:
            by = [f"{package} ({pattern})" for pattern, package in patterns if claims(pattern, path)]
            if len(by) != 1:
                said.append(f"{where}: {path} belongs to " + (", ".join(by) or "no package"))
        said += [f"{where}: nothing of {package} is {pattern}" for pattern, package in patterns
                 if not any(claims(pattern, path) for path in self.installed)]
        if said:
            self.fail("\n".join(said))

    def test_debian(self):
        self.each_is_claimed_once("debian", debian())
        self.assertEqual({package for _, package in debian()}, PACKAGES)
        self.assertEqual(set(re.findall(r"^Package: (\S+)$", read("debian", "control"), re.M)), PACKAGES)

    def test_spec(self):
        self.each_is_claimed_once("libpto.spec", spec())

    def test_usual_place(self):
        """Where nobody says where the override goes, and the prefix is the system's, it goes where Debian's Python looks."""
        setup = re.search(r"^choose_dir = '''\n(.*?)'''", read("pto", "gi", "meson.build").replace("  choose_dir", "choose_dir"), re.M | re.S)[1]
        for usual in ("/usr/lib/python3/dist-packages", "/usr/lib/python3/dist-packages/"):
            program = f"import sys\nsys.path = ['', '/usr/lib/python311.zip', '/usr/lib/python3/dist-packages']\n{setup}"
            said = subprocess.run([sys.executable, "-c", program, usual, "/usr"], check=True, capture_output=True, text=True).stdout
            self.assertEqual(said, "/usr/lib/python3/dist-packages\n")

    def test_versions(self):
        version = re.search(r"^  version: '(.*)',$", read("meson.build"), re.M)[1]
        self.assertEqual(re.match(r"libpto \((.*)-\w+\) ", read("debian", "changelog"))[1], version)
        self.assertEqual(re.search(r"^Version: +(\S+)$", read("doc", "packaging", "libpto.spec"), re.M)[1], version)

    def test_address(self):
        """One address, wherever a person is told to write."""
        address = re.search(r"^Maintainer: (libpto maintainers <\S+@\S+>)$", read("debian", "control"), re.M)[1]
        bare = address.split(" ")[-1]
        for path, line in ((("debian", "changelog"), f" -- {address}  "), (("debian", "copyright"), f"Upstream-Contact: {address}\n"),
                           (("debian", "upstream", "metadata"), f"\nSecurity-Contact: {bare[1:-1]}\n"),
                           (("doc", "releases.md"), f"Write to {bare}"), (("doc", "packaging", "libpto.spec"), f" {address} - ")):
            with self.subTest(path=path):
                self.assertIn(line, read(*path))
        self.assertIn("(doc/releases.md)", read("CONTRIBUTING.md"))

    def test_watch(self):
        """What meson dist calls the archive is what is looked for, at the host of the maintainers."""
        version, url, pattern = re.search(r"\Aversion=(\d)\n(?:#.*\n)*(https://\S+/) (\S+)\n\Z", read("debian", "watch")).groups()
        self.assertEqual(version, "4")
        self.assertIn("." + url.split("/")[2] + ">", read("debian", "control"))
        # As uscan(1) has them.
        pattern = pattern.replace("@ANY_VERSION@", r"[-_]?[Vv]?(\d[\-+\.:\~\da-zA-Z]*)").replace("@ARCHIVE_EXT@", r"(?i)(?:\.(?:tar\.xz|tar\.bz2|tar\.gz|tar\.zstd?|zip|tgz|tbz|txz))")
        name, number = re.search(r"^project\('(\w+)', .*?^  version: '(.*?)',$", read("meson.build"), re.M | re.S).groups()
        found = re.fullmatch(pattern.replace("(?i)", ""), f"{name}-{number}.tar.xz")
        self.assertEqual(found[1], number)

    def test_hardening(self):
        """What a packager switches off is not seen in a build that passes."""
        rules = read("debian", "rules")
        self.assertIn("export DEB_BUILD_MAINT_OPTIONS = hardening=+all\n", rules)
        self.assertNotIn("hardening=-", rules)
        self.assertIn("Rules-Requires-Root: no\n", read("debian", "control"))

    def test_tests(self):
        names = re.findall(r"^Tests: (.*)$", read("debian", "tests", "control"), re.M)
        names = [name for line in names for name in line.split(", ")]
        self.assertEqual(sorted(names), sorted(set(os.listdir(os.path.join(source, "debian", "tests"))) - {"control"}))
        for name in names:
            self.assertTrue(os.access(os.path.join(source, "debian", "tests", name), os.X_OK), name)


tap.main()
