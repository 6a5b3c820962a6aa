# test_install.py: is what is installed complete, usable, and free of the build machine?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: source directory, build directory, prefix, library directory, a Python with gi or nothing.
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

source, build, prefix, libdir, gi_python = sys.argv[1:6]
here = os.path.dirname(os.path.abspath(__file__))
kernel = os.path.join(here, "..", "gi", "fill.c")


def run(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command} gave {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="pto-install-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        destination = os.path.join(cls.directory, "destination")
        cls.said = run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", destination])
        # Moved elsewhere: nothing may depend on where it was installed.
        cls.root = os.path.join(cls.directory, "moved")
        os.rename(destination + prefix, cls.root)
        cls.libdir = os.path.join(cls.root, libdir)
        pkgconfig = os.path.join(cls.libdir, "pkgconfig")
        with open(os.path.join(pkgconfig, "pto-1.pc"), encoding="utf-8") as file:
            text = file.read()
        cls.pc = text
        for name in ("pto-1.pc", "pto-seeds-1.pc"):
            with open(os.path.join(pkgconfig, name), encoding="utf-8") as file:
                text = file.read()
            with open(os.path.join(pkgconfig, name), "w", encoding="utf-8") as file:
                file.write(re.sub(r"^prefix=.*$", "prefix=" + cls.root, text, flags=re.M))
        cls.env = dict(os.environ, LD_LIBRARY_PATH=cls.libdir, PKG_CONFIG_PATH=pkgconfig,
                       GI_TYPELIB_PATH=os.path.join(cls.libdir, "girepository-1.0"),
                       XDG_CACHE_HOME=os.path.join(cls.directory, "cache"))
        del cls.env["PTO_API_DIR"]

    def test_program(self):
        flags = run(["pkg-config", "--cflags", "--libs", "pto-1"], env=self.env).split()
        program = os.path.join(self.directory, "program")
        compiler = os.environ.get("CC", "cc").split()
        run([*compiler, "-Wall", "-Wextra", "-Werror", os.path.join(here, "program.c"), "-o", program, *flags], env=self.env)
        self.assertEqual(run([program, kernel], env=self.env, cwd="/"), "42.5 42.5 42.5 42.5\n")

    def test_hello(self):
        flags = run(["pkg-config", "--cflags", "--libs", "pto-1"], env=self.env).split()
        program = os.path.join(self.directory, "hello")
        examples = os.path.join(source, "examples")
        run([*os.environ.get("CC", "cc").split(), os.path.join(examples, "hello.c"), "-o", program, *flags], env=self.env)
        kernels = os.path.join(examples, "vector", "kernels")
        self.assertEqual(run([program, kernels], env=self.env, cwd="/"), "(2 + 3) * (2 + 3) = 25\n")

    def test_cplusplus(self):
        """Each header on its own, what C++ makes of its macros, and a program: without a warning, also of casts."""
        compilers = [["g++", "-Wuseless-cast", "-Wzero-as-null-pointer-constant"], ["clang++"]]
        compilers = [words for words in compilers if shutil.which(words[0]) is not None]
        if not compilers:
            self.skipTest("neither g++ nor clang++")
        libs = run(["pkg-config", "--libs", "pto-1"], env=self.env).split()
        flags = run(["pkg-config", "--cflags", "pto-1"], env=self.env).split()
        # What GLib's own headers say is not ours.
        flags = ["-isystem" + flag[2:] if flag.startswith("-I") and self.root not in flag else flag for flag in flags]
        api = run(["pkg-config", "--variable=apidir", "pto-1"], env=self.env).strip()
        headers = ["pto/pto.h", *(f"pto/api/{name}" for name in sorted(os.listdir(api)))]
        program = os.path.join(self.directory, "cplusplus")
        vector = os.path.join(source, "examples", "vector")
        for words in compilers:
            strict = [*words, "-std=c++17", "-Wall", "-Wextra", "-Wold-style-cast", "-Werror"]
            for header in headers:
                run([*strict, "-fsyntax-only", *flags, "-x", "c++", "-"], input=f"#include <{header}>\n", env=self.env)
            run([*strict, "-fsyntax-only", "-I" + api, os.path.join(here, "strict.cc")])
            run([*strict, os.path.join(vector, "vector.cc"), "-o", program, *flags, *libs], env=self.env)
            self.assertEqual(run([program, os.path.join(vector, "kernels")], env=self.env, cwd="/"), "16384 elements, 5 tasks, 6 edges: PASS\n")

    def test_vala(self):
        """With the bindings, which bring along what they need."""
        bindings = os.path.join(self.root, "share", "vala", "vapi")
        if not os.path.isdir(bindings):
            self.skipTest("built without vapigen")
        self.assertEqual(sorted(os.listdir(bindings)), ["pto-1.deps", "pto-1.vapi"])
        if shutil.which("valac") is None:
            self.skipTest("no valac")
        program = os.path.join(self.directory, "vala")
        vector = os.path.join(source, "examples", "vector")
        run(["valac", "--quiet", "--vapidir", bindings, "--pkg", "pto-1", "-X", "-w", os.path.join(vector, "vector.vala"), "-o", program],
            env=self.env, cwd=self.directory)
        self.assertEqual(run([program, os.path.join(vector, "kernels")], env=self.env, cwd="/"), "16384 elements, 5 tasks, 6 edges: PASS\n")

    def test_javascript(self):
        """With the override and what it is made of, where XDG_DATA_DIRS finds them."""
        if shutil.which("gjs") is None or not os.path.isdir(os.path.join(self.root, "share", "gjs-1.0")):
            self.skipTest("no gjs, or no introspection data")
        env = {name: value for name, value in self.env.items() if name != "GJS_PATH"}
        env["XDG_DATA_DIRS"] = os.path.join(self.root, "share") + ":/usr/share"
        said = run(["gjs", "-m", os.path.join(source, "examples", "vector", "vector.js")], env=env, cwd="/")
        self.assertEqual(said, "16384 elements, 5 tasks, 6 edges: PASS\n")

    def test_kernel_headers(self):
        directory = run(["pkg-config", "--variable=apidir", "pto-1"], env=self.env).strip()
        self.assertEqual(sorted(os.listdir(directory)), ["pto_access.h", "pto_block.h", "pto_build_graph.h", "pto_limits.h", "pto_orchestration_api.h", "pto_reference.h", "tensor.h"])
        self.assertTrue(directory.startswith(self.root))

    def test_seeds(self):
        """Headers, library and modules with the names of the seeds."""
        compiler = os.environ.get("CXX", "c++").split()
        if shutil.which(compiler[0]) is None:
            self.skipTest("no compiler of C++")
        flags = run(["pkg-config", "--cflags", "--libs", "pto-seeds-1"], env=self.env).split()
        program = os.path.join(self.directory, "seeds")
        run([*compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", os.path.join(here, "seeds.cc"), "-o", program, *flags],
            env=self.env)
        add = os.path.join(source, "examples", "worked-example", "add")
        self.assertEqual(run([program, add], env=self.env, cwd="/"), "2 + 3 = 5\n")
        modules = run(["pkg-config", "--variable=pythondir", "pto-seeds-1"], env=self.env).strip()
        self.assertTrue(modules.startswith(self.root), modules)
        if not gi_python:
            return
        override = next(d for d, _, names in os.walk(self.root) if "Pto.py" in names)
        packages = os.path.dirname(os.path.dirname(override))
        text = ("from simpler.task_interface import ChipWorker\nfrom binary_compiler import BinaryCompiler\n"
                "from bindings import bind_host_binary\nimport sys\n"
                "ChipWorker().init()\nRuntime = bind_host_binary(BinaryCompiler().compile('host', [], [sys.argv[1]]))\n"
                "runtime = Runtime()\nruntime.initialize()\nruntime.finalize()\nprint('well')\n")
        said = run([gi_python, "-c", text, os.path.join(source, "tests", "seeds", "wrong")], cwd="/",
                   env=dict(self.env, PYTHONPATH=os.pathsep.join([modules, packages])))
        self.assertEqual(said, "well\n")

    def test_command(self):
        self.assertIn("a2a3sim", run([os.path.join(self.root, "bin", "pto"), "info"], env=self.env, cwd="/"))

    def test_pages(self):
        """The manual page and the completions, where man, bash and zsh look, as the program makes them."""
        for kind, place in (("man", "man/man1/pto.1"), ("bash", "bash-completion/completions/pto"), ("zsh", "zsh/site-functions/_pto")):
            with open(os.path.join(self.root, "share", place), encoding="utf-8") as file:
                self.assertEqual(file.read(), run([os.path.join(self.root, "bin", "pto"), "--print-page", kind], env=dict(self.env, LC_ALL="C")))

    def test_python(self):
        if not gi_python:
            self.skipTest("no Python with gi, or no introspection data")
        script = os.path.join(here, "..", "gi", "ten_lines.py")
        self.assertEqual(run([gi_python, script, kernel], env=self.env, cwd="/"), "42.5 42.5 42.5 42.5\n")
        # Beside the package that it describes, where type checkers look.
        override = next(d for d, _, names in os.walk(self.root) if "Pto.py" in names)
        stubs = os.path.join(os.path.dirname(os.path.dirname(override)), "gi-stubs")
        self.assertEqual(sorted(os.listdir(stubs)), ["__init__.pyi", "repository"])
        self.assertEqual(sorted(os.listdir(os.path.join(stubs, "repository"))), ["Pto.pyi", "__init__.pyi"])

    def say_how(self, where, override=True):
        packages = {"/usr": "/usr/lib/python3/dist-packages"}.get(where, where + "/lib/python3/dist-packages")
        said = run([sys.executable, os.path.join(source, "pto", "gi", "say_how.py"), where, where + "/bin",
                    os.path.join(where, libdir), where + "/share" if override else "",
                    packages + "/gi/overrides" if override else "", gi_python],
                   env={**os.environ, "PATH": "/usr/bin:/bin:/sbin"})
        return said, re.findall(r'^    export (\w+)="([^$]*?):?\$', said, re.M)

    def test_last_words(self):
        """What must be set is said, with the places that it will have: not more, and not those below DESTDIR."""
        directory = os.path.join(prefix, libdir)
        self.assertTrue(f"libpto is in {prefix}, where" in self.said, self.said[-1000:])
        self.assertNotIn(self.directory, "".join(re.findall("export .*", self.said)))
        if prefix == "/usr/local" and gi_python:
            self.assertIn(f'export GI_TYPELIB_PATH="{directory}/girepository-1.0$', self.said)
        nowhere = os.path.join(self.directory, "no where")
        there = os.path.join(nowhere, libdir)
        lines = [("LD_LIBRARY_PATH", there), ("PKG_CONFIG_PATH", there + "/pkgconfig"), ("PATH", nowhere + "/bin")]
        self.assertEqual(self.say_how(nowhere, False)[1], lines)
        if gi_python:
            lines[2:2] = [("GI_TYPELIB_PATH", there + "/girepository-1.0"),
                          ("XDG_DATA_DIRS", nowhere + "/share"),
                          ("PYTHONPATH", nowhere + "/lib/python3/dist-packages")]
            self.assertEqual(self.say_how(nowhere)[1], lines)
        if gi_python == "/usr/bin/python3" and os.path.isdir(os.path.join("/usr", libdir, "girepository-1.0")):
            self.assertEqual(self.say_how("/usr"), ("libpto is in /usr, where programs find it by themselves.\n", []))

    def test_last_words_beside_a_file(self):
        """What meson writes into a file is whole, and the last words are on standard error."""
        log = os.path.join(self.directory, "log")
        with open(log, "w", encoding="utf-8") as file:
            said = subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir",
                                   os.path.join(self.directory, "again")], stdout=file, stderr=subprocess.PIPE, text=True,
                                  check=True).stderr
        self.assertIn(f"libpto is in {prefix}, where", said)
        with open(log, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("libpto is in", text)
        self.assertTrue(text.splitlines()[-1].startswith("Running custom install script"), text[-300:])

    def test_last_words_are_enough(self):
        """README.md's program in a shell that was told nothing else, after everything has moved."""
        if not gi_python:
            self.skipTest("no Python with gi, or no introspection data")
        override = next(d for d, _, names in os.walk(self.root) if "Pto.py" in names)
        here = os.path.join(self.directory, "six")
        os.mkdir(here)
        for name, page, pattern in (("six.py", "README.md", r"```python\n(.*?)```"), ("scale.c", "doc/own.md", r"```c\n(/\* scale\.c.*?)```")):
            with open(os.path.join(here, name), "w", encoding="utf-8") as file, open(os.path.join(source, page), encoding="utf-8") as text:
                file.write(re.search(pattern, text.read(), re.DOTALL).group(1))
        said = run([sys.executable, os.path.join(source, "pto", "gi", "say_how.py"), self.root,
                    os.path.join(self.root, "bin"), self.libdir, os.path.join(self.root, "share"), override, gi_python])
        lines = re.findall("export .*", said)
        plain = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": os.path.join(self.directory, "cache")}

        def shell(lines, command):
            return subprocess.run(["sh", "-c", "\n".join(lines) + f"\nexec {command}"], env=plain, cwd=here,
                                  capture_output=True, text=True)

        six = shell(lines, f"{gi_python} six.py")
        self.assertEqual((six.stdout, six.stderr), ("[6. 6. 6. 6.]\n", ""))
        # Each override that is missing is told by the library itself, with the line that was left out.
        with open(os.path.join(here, "one.js"), "w", encoding="utf-8") as file:
            file.write("imports.gi.Pto.Buffer.new(8);\n")
        for variable, command in (("PYTHONPATH", f"{gi_python} six.py"), ("XDG_DATA_DIRS", shutil.which("gjs") and "gjs one.js")):
            left_out = [line for line in lines if variable in line]
            if command:
                self.assertEqual(len(left_out), 1, lines)
                stderr = shell([line for line in lines if variable not in line], command).stderr
                self.assertEqual(stderr.count("but not its override"), 1, stderr)
                self.assertEqual(re.findall("export .*", stderr), left_out)
                self.assertEqual(shell(lines, command).stderr, "")

    def test_bench(self):
        """Nothing that links what a compiler does not bring along."""
        names = sorted(os.listdir(os.path.join(self.root, "libexec", "pto", "bench")))
        self.assertLessEqual(set(names), {"bench-pto", "bench-level", "bench-remote-functions.so", "bench-gthreadpool", "bench-libgomp"})

    def test_nothing_of_the_build_machine(self):
        for directory, _, names in os.walk(self.root):
            for name in names:
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    content = file.read()
                if name == "pto-1.pc":
                    content = self.pc.encode()
                for secret in (source, build):
                    self.assertFalse(secret.encode() in content, f"{secret} is in {path}")

    def test_no_names(self):
        """Memory, semaphores and queues have no names that outlive a process. What lies in /dev/shm is for the whole
        machine, so this is seen in the library, not there."""
        library = os.path.join(self.libdir, "libpto-1.so.0")
        taken = {line.split()[-1].split("@")[0] for line in run(["nm", "-D", "--undefined-only", library]).splitlines()}
        self.assertIn("memfd_create", taken)
        self.assertEqual(taken & {"shm_open", "sem_open", "mq_open", "shmget", "semget", "msgget", "mkfifo", "mkfifoat",
                                  "tmpfile", "tmpnam", "mktemp"}, set())
        with open(library, "rb") as file:
            self.assertFalse(b"/dev/shm" in file.read())

    def test_private_headers_stay(self):
        for directory, _, names in os.walk(os.path.join(self.root, "include")):
            for name in names:
                self.assertNotIn("private", name)


tap.main()
