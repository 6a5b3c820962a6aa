#!/usr/bin/env python3
# test_pto_doctor.py: does `pto doctor` find what is missing, and say how it is had?
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import resource
import shutil
import subprocess

import pto_test
from pto_test import DEADLINE, HERE, PROGRAM, PtoTest

NEEDED = ["headers", "C compiler", "cache", "processes", "shared memory"]
MORE = ["C++ compiler", "process limit", "file limit", "address space", "file size", "membarrier", "clock", "Python", "typelib",
        "Python override", "NumPy", "JavaScript", "browser", "screen", "TLS", "remote workers", "UCX", "MPI"]
STATES = ("ok", "low", "missing")


class Doctor(PtoTest):
    has_own_cache = True

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.directory, "tmp"))
        os.mkdir(os.path.join(self.directory, "bin"))
        # Most tests need no language, which takes long to start.
        self.script("python3", "printf '%s\\n' /my/python 3.99 'Pto 1' /my/Pto.py 1.99\n")
        self.script("gjs", "echo override\n")
        self.environment = dict(self.environment, TMPDIR=os.path.join(self.directory, "tmp"),
                                PATH=os.path.join(self.directory, "bin") + ":" + os.environ["PATH"])

    def tearDown(self):
        self.assertEqual(os.listdir(os.path.join(self.directory, "tmp")), [])
        super().tearDown()

    def check(self, status=0, before=None, limits=(), **environment):
        """By name."""
        words = ["sh", "-c", f'{before} && exec "$@"', "sh"] if before is not None else []

        def prepare():
            for kind, most in limits:
                resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
        result = subprocess.run([*words, PROGRAM, "doctor", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, encoding="utf-8", cwd=self.directory, timeout=DEADLINE,
                                env=dict(self.environment, **environment), preexec_fn=prepare)
        self.assertEqual(result.returncode, status, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(list(answer), ["ready", "checks"])
        checks = {check["name"]: check for check in answer["checks"]}
        self.assertEqual([check["name"] for check in answer["checks"]], NEEDED + MORE)
        missing = [name for name in NEEDED if checks[name]["state"] == "missing"]
        self.assertEqual((answer["ready"], status), (not missing, 1 if missing else 0))
        self.assertEqual(result.stderr, f"pto: no graph runs here: {', '.join(missing)}\n" if missing else "")
        for name, check in checks.items():
            self.assertEqual(list(check), ["name", "needed", "state", "found", "advice"])
            self.assertEqual((check["needed"], check["state"] in STATES), (name in NEEDED, True))
            self.assertTrue(check["found"])
            self.assertTrue(check["state"] != "ok" or check["advice"] is None)
        return checks

    def script(self, name, text):
        path = os.path.join(self.directory, "bin", name)
        self.write(path, "#!/bin/sh\n" + text)
        os.chmod(path, 0o700)
        return path

    def test_well(self):
        checks = self.check(PATH=os.environ["PATH"])
        self.assertEqual([checks[name]["state"] for name in NEEDED], ["ok"] * len(NEEDED))
        self.assertEqual(checks["C compiler"]["found"], json.loads(self.passes("info", "--json"))["machine"]["c_compiler"])
        self.assertEqual(checks["cache"]["found"], os.path.join(self.cache, "libpto"))

    def test_text(self):
        """A line each, and what the object says."""
        checks = self.check()
        lines = {False: ["For more"], True: ["Needed"]}
        for name, check in checks.items():
            advice = f": {check['advice']}" if check["advice"] is not None else ""
            lines[check["needed"]].append("  %-8s %-16s %s%s" % (check["state"], name, check["found"], advice))
        self.assertEqual(self.passes("doctor").splitlines(), [*lines[True], "", *lines[False]])

    def test_compiler(self):
        """Missing, broken, and one that says why."""
        found = self.check(1, CC="/nonexistent/compiler")["C compiler"]
        self.assertEqual(found["state"], "missing")
        self.assertIn("/nonexistent/compiler", found["found"])
        self.assertIn("apt install gcc", found["advice"])
        found = self.check(1, CC="false")["C compiler"]
        self.assertRegex(found["found"], r"^/\S*false compiles no kernel: ")
        found = self.check(1, CC=self.script("broken-cc", 'echo "no header: stdint.h" >&2; echo more >&2; exit 1\n'))["C compiler"]
        self.assertEqual(found["found"], f"{self.directory}/bin/broken-cc compiles no kernel: no header: stdint.h")
        checks = self.check(CXX="/nonexistent/compiler")
        self.assertEqual((checks["C++ compiler"]["state"], "apt install g++" in checks["C++ compiler"]["advice"]), ("missing", True))

    def test_text_of_failure(self):
        result = self.fails(1, ["no graph runs here: C compiler"], "doctor", environment={"CC": "false"})
        self.assertRegex(result.stdout, r"(?m)^  missing  C compiler       \S*false compiles no kernel: .*: apt install gcc")

    def test_headers(self):
        found = self.check(1, PTO_API_DIR="/nonexistent/headers")["headers"]
        self.assertIn("/nonexistent/headers/tensor.h", found["found"])
        self.assertIn("PTO_API_DIR", found["advice"])

    def test_cache(self):
        found = self.check(1, XDG_CACHE_HOME="/proc/nowhere")["cache"]
        self.assertIn("/proc/nowhere/libpto can not be written", found["found"])
        self.assertIn("XDG_CACHE_HOME", found["advice"])
        shared = os.path.join(self.directory, "shared")
        os.makedirs(os.path.join(shared, "libpto"))
        os.chmod(os.path.join(shared, "libpto"), 0o777)
        self.assertIn("others may write to", self.check(1, XDG_CACHE_HOME=shared)["cache"]["found"])

    def test_cache_stays_as_it_is(self):
        """But for one object, which is the same each time."""
        self.check()
        before = sorted(name for _, _, names in os.walk(self.cache) for name in names)
        self.check()
        self.assertEqual(sorted(name for _, _, names in os.walk(self.cache) for name in names), before)

    def test_limits(self):
        limits = [("file limit", resource.RLIMIT_NOFILE, 64)]
        if os.geteuid() == 0:  # whoever else has more processes than that could start none
            limits.append(("process limit", resource.RLIMIT_NPROC, 255))
        checks = self.check(limits=[limit[1:] for limit in limits])
        for name, _, least in limits:
            self.assertEqual((checks[name]["state"], checks[name]["found"]), ("low", str(least)))
            self.assertIn("ulimit", checks[name]["advice"])
        checks = self.check(1, limits=((resource.RLIMIT_FSIZE, 2 ** 19),))
        self.assertEqual((checks["file size"]["state"], checks["shared memory"]["state"]), ("low", "missing"))
        self.assertIn("ulimit -f", checks["shared memory"]["advice"])

    def test_no_languages(self):
        path = os.path.join(self.directory, "tools")
        os.mkdir(path)
        # What ccache calls a compiler looks for that on PATH, and there is none on this one.
        places = os.pathsep.join(place for place in os.environ["PATH"].split(os.pathsep)
                                 if os.path.basename(os.path.realpath(os.path.join(place, "cc"))) != "ccache")
        for name in ("cc", "c++", "as", "ld", "collect2", "gcc", "g++"):
            tool = shutil.which(name, path=places)
            if tool is not None:
                os.symlink(tool, os.path.join(path, name))
        checks = self.check(PATH=path)
        self.assertEqual((checks["JavaScript"]["found"], checks["browser"]["found"]), ("there is no gjs", "none that is known"))
        self.assertIn("apt install gjs", checks["JavaScript"]["advice"])
        self.assertEqual((checks["MPI"]["state"], checks["MPI"]["found"]), ("missing", "there is no mpirun"))
        self.assertIn("apt install openmpi-bin", checks["MPI"]["advice"])
        # Either package alone would be asked for the other.
        checks = self.check(PATH=path, PTO_REMOTE=self.script("pto-remote", "echo pto-remote 1.0\n"))
        self.assertIn("apt install openmpi-bin libopenmpi-dev, and build", checks["MPI"]["advice"])

    def test_python(self):
        """What it says is what is told; the one of Debian is asked where the first has no gi."""
        checks = self.check()
        self.assertEqual([checks[name]["found"] for name in ("Python", "typelib", "Python override", "NumPy")],
                         ["/my/python, PyGObject 3.99", "Pto 1", "/my/Pto.py", "1.99"])
        self.script("python3", 'printf "%s\\n" /my/python 3.99 "" "" 1.99\n')
        checks = self.check()
        self.assertEqual([checks[name]["state"] for name in ("Python", "typelib", "Python override", "NumPy")],
                         ["ok", "missing", "missing", "ok"])
        self.assertEqual(checks["Python override"]["found"], "not looked for without the typelib")
        self.script("python3", 'printf "%s\\n" /my/python 3.99 "Pto 1" "" ""\n')
        checks = self.check()
        self.assertEqual([checks[name]["state"] for name in ("typelib", "Python override", "NumPy")], ["ok", "missing", "missing"])
        self.assertIn("PYTHONPATH", checks["Python override"]["advice"])
        self.assertIn("python3-numpy", checks["NumPy"]["advice"])

    def test_javascript(self):
        for text, state, words in (("echo override", "ok", "gjs"), ("echo none", "low", "does not find the override"),
                                   ("exit 1", "missing", "does not find the typelib")):
            self.script("gjs", text + "\n")
            check = self.check()["JavaScript"]
            self.assertEqual((check["state"], words in check["found"]), (state, True))

    def test_remote(self):
        """The program, of this version; where the environment says, or on the path."""
        check = self.check()["remote workers"]
        self.assertEqual((check["state"], check["found"]), ("ok", os.environ["PTO_REMOTE"]))
        check = self.check(PTO_REMOTE="/nonexistent/pto-remote")["remote workers"]
        self.assertEqual((check["state"], check["found"]), ("missing", "there is no pto-remote"))
        self.assertIn("PTO_REMOTE", check["advice"])
        other = self.script("pto-remote", "echo pto-remote 0.0.7\necho more\n")
        version = self.passes("--version").split()[1]
        for where in {"PTO_REMOTE": other}, {"PTO_REMOTE": ""}:
            check = self.check(**where)["remote workers"]
            self.assertEqual((check["state"], check["found"]), ("low", f'{other} is not of this version, {version}, but says "pto-remote 0.0.7"'))
        self.script("pto-remote", "echo Unknown option --version >&2; exit 64\n")
        self.assertIn('but says "Unknown option --version"', self.check(PTO_REMOTE=other)["remote workers"]["found"])

    def test_ucx(self):
        """The module, what it needs, and what UCX finds here."""
        check = self.check(PTO_MODULE_DIR="/nonexistent/modules")["UCX"]
        self.assertEqual((check["state"], check["found"]), ("missing", "there is no /nonexistent/modules/pto-ucx.so"))
        self.assertIn("libpto-1-ucx", check["advice"])
        os.mkdir(os.path.join(self.directory, "modules"))
        self.write("modules/pto-ucx.so", "x")
        check = self.check(PTO_MODULE_DIR=os.path.join(self.directory, "modules"))["UCX"]
        self.assertEqual((check["state"], "modules/pto-ucx.so" in check["found"]), ("missing", True))
        modules = os.environ.get("PTO_TEST_MODULE_DIR")
        if modules is None:
            self.skipTest("built without UCX")
        check = self.check(PTO_MODULE_DIR=modules, UCX_TLS="self,tcp")["UCX"]
        self.assertEqual(check["state"], "ok")
        # Networks are what the system says in a file system that need not be there.
        network = r"(?=.*\btcp/lo\b)" if os.path.isdir("/sys/class/net") else ""
        self.assertRegex(check["found"], rf"^UCX [0-9.]+: (?=.*\bself/memory){network}(?!.*\bsysv)[\w/, .@-]+$")
        check = self.check(PTO_MODULE_DIR=modules, UCX_TLS="nothing")["UCX"]
        self.assertEqual(check["state"], "missing")
        self.assertRegex(check["found"], "^No such device .*nothing")
        self.assertIn("UCX_TLS", check["advice"])

    def test_mpi(self):
        """Which one, and the program of ranks beside pto-remote."""
        path = os.path.join(self.directory, "bin")
        remote = self.script("pto-remote", "echo pto-remote 1.0\n")
        self.script("mpirun", "echo 'mpirun (Open MPI) 9.9.9'\necho\necho Report bugs\n")
        check = self.check(PTO_REMOTE=remote)["MPI"]
        self.assertEqual((check["state"], check["found"]), ("missing", "mpirun (Open MPI) 9.9.9, but there is no pto-mpi-rank beside pto-remote"))
        self.assertIn("libopenmpi-dev", check["advice"])
        rank = self.script("pto-mpi-rank", "exit 1\n")
        check = self.check(PTO_REMOTE=remote)["MPI"]
        self.assertEqual((check["state"], check["found"], check["advice"]), ("ok", f"mpirun (Open MPI) 9.9.9, {rank}", None))
        self.script("mpirun", "echo HYDRA build details:\n")
        check = self.check(PTO_REMOTE=remote)["MPI"]
        self.assertEqual((check["state"], check["found"]), ("low", f"HYDRA build details:, {rank}"))
        self.script("mpirun", "echo no library >&2; exit 127\n")
        check = self.check(PTO_REMOTE=remote)["MPI"]
        self.assertEqual((check["state"], check["found"]), ("missing", f"{path}/mpirun does not say its version: no library"))

    def test_typelib(self):
        """The line that it prints is the line that is missing."""
        directory = os.path.dirname(os.path.dirname(PROGRAM))
        if not os.path.exists(os.path.join(directory, "Pto-1.typelib")):
            self.skipTest("no introspection data here")
        environment = {"PATH": os.environ["PATH"], "GI_TYPELIB_PATH": "", "LD_LIBRARY_PATH": "", "PYTHONPATH": ""}
        checks = self.check(**environment)
        if checks["Python"]["state"] != "ok":
            self.skipTest("no Python with gi here")
        if checks["typelib"]["state"] == "ok":
            self.skipTest("it is installed, too")
        advice = checks["typelib"]["advice"]
        self.assertTrue(advice.startswith(f'export GI_TYPELIB_PATH="{directory}'), advice)
        source = os.path.abspath(os.path.join(HERE, "..", "..", "pto"))
        checks = self.check(before=advice + f' PYTHONPATH="{source}"', **environment)
        self.assertEqual([checks[name]["found"] for name in ("typelib", "Python override")],
                         ["Pto 1", os.path.join(source, "gi", "overrides", "Pto.py")])

    def test_usage(self):
        self.fails(2, ['doctor takes no "me"'], "doctor", "me")


pto_test.tap.main()
