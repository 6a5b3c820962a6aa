# test_stub.py: does the stub have the names that the module has, and do type checkers find mistakes with it, and no others?
# SPDX-License-Identifier: LGPL-2.1-or-later
import ast
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import venv

import gi

gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

import tap  # noqa: E402

STUBS = os.environ["PTO_TEST_STUBS"]
STUB = os.path.join(STUBS, "gi", "repository", "Pto.pyi")

PROGRAM = '''\
import asyncio
from typing import Any

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto

scale = Pto.Callable.kernel("scale.c", core="aiv", args=3, flags="-O2")
scale.set_signature([Pto.Direction.INPUT, Pto.Direction.OUTPUT, Pto.Direction.SCALAR])


@Pto.kernel("double.c", core=Pto.CoreType.AIV)
def double(x: Pto.Tensor, y: Pto.Tensor) -> list[Any]:
    return [x[0:512].read(), y[..., 3, ::2].write_existing()]


@Pto.sub
def total(x: Any, out: Any) -> None:
    out[0] = x.sum()


def graph(orch: Pto.Orchestrator, x: Pto.Tensor, y: Pto.Tensor) -> None:
    double(orch, Pto.Tensor.from_dlpack(x), y, after=[orch.submit(double, x, y)])
    total(orch, x.read(), y.write_existing())
    doubled = orch.tensor(x.shape, x.dtype)
    first: int = orch.submit(scale, x.read(), doubled.write(), 2, priority=1)
    orch.submit(scale, [doubled.read(), y.write_existing(), 3.5], after=[first], when=(x, 0))
    orch.submit(scale, x.reduce("sum"), block_dim=4)
    with orch.scope() as inner:
        inner.fill(x, 0)
    orch.priority = orch.n_clusters


async def later(chip: Pto.Worker, x: Any) -> bool:
    return await chip.run_async(graph, x, x)


def fails(chip: Pto.Worker) -> str:
    try:
        chip.run(graph, Pto.Buffer.array(4), config=Pto.CallConfig(3, enable_access_check=1))
    except Pto.CompileError as error:
        return error.message
    except GLib.Error as error:
        return str(error.matches(Pto.error_quark(), Pto.Error.BUSY))
    return repr(Pto.Error.BUSY.value_nick)


with Pto.Worker(platform="a2a3sim") as chip, Pto.Worker(level=3, devices=2, sub_workers=1, restart="on-failure") as host:
    chip.set_parameter("trace", True)
    chip.set_parameter("task-window", [16, 16, 16, 16])
    handle: Pto.CallableHandle = host.register(lambda args: None)
    step: Pto.Graph = chip.capture(graph, [1.0], [2.0])
    chip.run(step, [1.0], [2.0])
    asyncio.run(later(chip, [1.0]))
    if chip.trace is not None and chip.statistics is not None:
        chip.trace.save("run.svg")
        text: str = chip.trace.describe("critical-path") + str(chip.statistics.tasks)
    Pto.seeds.make_ct([1])
'''

# A line, and what is wrong with it.
MISTAKES = (
    ("chip.rum(graph)", '"Worker" has no attribute "rum"'),
    ("Pto.Callable.kernel(3)", 'Argument 1 to "kernel" of "Callable" has incompatible type "int"'),
    ("Pto.Worker(platfrom=1)", 'Unexpected keyword argument "platfrom" for "Worker"'),
    ("Pto.Dtype.FLOAT", 'ype[Dtype]" has no attribute "FLOAT"'),
    ("Pto.Wroker", 'Module has no attribute "Wroker"'),
    ("chip.level = 3", 'Property "level" defined in "Worker" is read-only'),
    ("size: str = Pto.Buffer.new(8).get_size()", 'Incompatible types in assignment (expression has type "int", variable has type "str")'),
    ("Pto.CallConfig(blok_dim=3)", 'Unexpected keyword argument "blok_dim" for "CallConfig"'),
    ("Pto.CompileError('x').mesage", '"CompileError" has no attribute "mesage"'),
    ("chip.run_async(graph, callback=print) + 1", 'Unsupported operand types for + ("None" and "int")'),
    ("lambda orch: orch.nothing if isinstance(orch, Pto.Orchestrator) else 0", '"Orchestrator" has no attribute "nothing"'),
    ("def bad(orch: Pto.Orchestrator, x: Pto.Tensor) -> None: orch.submit(scale, x)", 'No overload variant of "submit"'),
    ("Pto.Tensor.of([1]).reduce(3)", 'Argument 1 to "reduce" of "Tensor" has incompatible type "int"'),
)


def public(names):
    return {name for name in names if not name.startswith("_")}


class Stub(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(STUB, encoding="utf-8") as file:
            cls.tree = ast.parse(file.read(), STUB)
        cls.classes = {node.name: node for node in cls.tree.body if isinstance(node, ast.ClassDef)}

    @staticmethod
    def named(body):
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                yield node.name
            elif isinstance(node, ast.AnnAssign):
                yield node.target.id

    def members(self, name):
        """Of a class and those that it is derived from."""
        node = self.classes.get(name)
        while node is not None:
            yield from self.named(node.body)
            node = self.classes.get(node.bases[0].id) if node.bases and isinstance(node.bases[0], ast.Name) else None

    def test_names_of_the_module(self):
        self.assertEqual(public(self.named(self.tree.body)), public(dir(Pto)))
        self.assertGreater(len(public(dir(Pto))), 120)

    def test_names_of_the_types(self):
        """Of each type what it, or a type of Pto below it, has itself; what comes of GObject is not looked at."""
        seen = 0
        for name in public(self.classes):
            type_ = getattr(Pto, name)
            own = {member for line in type_.__mro__ if "Pto" in line.__module__ or line.__module__ == "gi.repository.Pto"
                   for member in public(vars(line))}
            own -= {"parent_class", "parent_instance", "value_names", "value_nicks"}
            said = public(self.members(name))
            self.assertEqual(own - said, set(), f"Pto.{name} has what the stub has not")
            gone = {member for member in said if not hasattr(type_, member)}
            self.assertEqual(gone - {"message", "domain", "code", "value_name", "value_nick", "value_names", "value_nicks"}, set(),
                             f"the stub has what Pto.{name} has not")
            seen += len(own)
        self.assertGreater(seen, 600)

    def test_parameters_of_the_override(self):
        """A function of the override is given what the stub says, by the same names."""
        import inspect
        seen = 0
        for name, node in self.classes.items():
            for function in node.body:
                if not isinstance(function, ast.FunctionDef) or function.decorator_list and any(
                        ast.unparse(d) in ("property", "overload") or d.__class__ is ast.Attribute for d in function.decorator_list):
                    continue
                real = getattr(getattr(Pto, name, None), function.name, None)
                real = inspect.unwrap(real) if inspect.isfunction(real) else real
                if not inspect.isfunction(real) or not real.__code__.co_filename.endswith(
                        tuple(f"Pto{part}.py" for part in ("", "Arguments", "Functions", "Graphs", "Tensors", "Traces"))):
                    continue
                wanted = [p.name for p in inspect.signature(real).parameters.values() if p.kind != p.VAR_KEYWORD]
                said = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
                said += [function.args.vararg.arg] if function.args.vararg else []
                said += [a.arg for a in function.args.kwonlyargs]
                self.assertEqual(said[:len(wanted)], wanted, f"Pto.{name}.{function.name}")
                seen += 1
        self.assertGreater(seen, 80)


@unittest.skipUnless(shutil.which("mypy"), "no mypy (install it)")
class Mypy(unittest.TestCase):
    def check(self, *paths, stubs=STUBS, **files):
        """What mypy says of files, and how it ends."""
        with tempfile.TemporaryDirectory() as directory:
            for name, text in files.items():
                with open(os.path.join(directory, name + ".py"), "w", encoding="utf-8") as file:
                    file.write(text)
            done = subprocess.run(
                ["mypy", "--strict", "--no-error-summary", "--cache-dir", os.path.join(directory, "cache"), *paths,
                 *(os.path.join(directory, name + ".py") for name in files)],
                capture_output=True, text=True, timeout=280, cwd=directory, env={**os.environ, "MYPYPATH": stubs, "PYTHONPATH": ""})
        return done.returncode, done.stdout + done.stderr

    def test_stub(self):
        self.assertEqual(self.check("-p", "gi"), (0, ""))

    def test_program(self):
        self.assertEqual(self.check(program=PROGRAM), (0, ""))

    def test_installed(self):
        """As gi-stubs among the packages of a Python, and programs that use other libraries, too, of which nothing is said."""
        with tempfile.TemporaryDirectory() as directory:
            venv.create(directory, with_pip=False)
            packages = glob.glob(os.path.join(directory, "lib", "python3*", "site-packages"))[0]
            shutil.copytree(os.path.join(STUBS, "gi"), os.path.join(packages, "gi-stubs"))
            program = PROGRAM + "from gi.repository import Gtk\nGtk.Window().show()\nchip.rum()\n"
            status, said = self.check("--python-executable", os.path.join(directory, "bin", "python"), stubs="", program=program)
        self.assertEqual(status, 1)
        self.assertRegex(said, rf'^\S*program\.py:{PROGRAM.count(chr(10)) + 3}: error: "Worker" has no attribute "rum"  \[attr-defined\]\n$')

    def test_mistakes(self):
        """Each is found, in its line, and nothing else."""
        first = PROGRAM.count("\n") + 1
        status, said = self.check(program=PROGRAM + "".join(f"{line}\n" for line, _ in MISTAKES))
        self.assertEqual(status, 1)
        found = {}
        for line in said.splitlines():
            if (match := re.match(r"\S*program\.py:(\d+): error: (.*)", line)):
                found.setdefault(int(match[1]), []).append(match[2])
        for i, (line, wrong) in enumerate(MISTAKES):
            self.assertTrue(any(wrong in text for text in found.get(first + i, ())), (line, wrong, said))
        self.assertEqual(set(found), set(range(first, first + len(MISTAKES))), said)


tap.main()
