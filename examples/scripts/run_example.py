#!/usr/bin/env python3
# run_example.py: does an example in the seeds' Python layout compute what its golden.py expects?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
#     python3 examples/scripts/run_example.py -k DIR/kernels -g DIR/golden.py -p a2a3sim
#                                             [--case NAME | --all]
#
# kernel_config.py gives KERNELS, ORCHESTRATION, and if need be RUNTIME_CONFIG and BUILD_CONFIG; golden.py
# gives generate_inputs(), compute_golden(), and if need be __outputs__, ALL_CASES, DEFAULT_CASE, RTOL and
# ATOL. What generate_inputs() lists becomes the orchestration's arguments in that order: arrays as device
# addresses, numbers by value. Arrays are NumPy's, torch's where torch is installed, or lists of numbers,
# which are float32; a number is Python's, NumPy's or of ctypes: a float is the bits of a C float, as
# everywhere here, and ctypes.c_double those of a double. Without __outputs__ the outputs are those that
# ORCHESTRATION names in "outputs", else every array. Everything else is libpto's public API. Exit status: 0
# when all is as expected, 1 when not, 2 for a wrong command line.
"""Run an example in the kernel_config.py / golden.py layout and compare its outputs."""

import argparse
import ast
import copy
import ctypes
import difflib
import importlib.util
import numbers
import os
import shlex
import struct
import subprocess
import sys
import traceback

SYSTEM_PYTHON = "/usr/bin/python3"
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(REPOSITORY, "build", "pto")
SHOWN_MISMATCHES = 5
RUNTIME = "tensormap_and_ringbuffer"
HOST_GRAPH = "host_build_graph"  # the whole graph is built, then launched
CHIP_GRAPH = "aicpu_build_graph"  # the orchestration builds it by hand
BUILD_KEYS = "include", "include_dirs", "cflags", "cxxflags"  # the first two are the same
MAX_ARGS = 128
TOLERANCES = "RTOL", "ATOL", "EQUAL_NAN", "MISMATCH_SHARE"  # of golden.py
NARROW_FLOATS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # of torch; NumPy lacks them
RULE = "=" * 60


class ExampleError(Exception):
    """Something a person can put right; its text is one line."""


def start_again(interpreter, mark, **environment):
    """Replace this process, once for each mark."""
    if os.environ.get(mark):
        return
    environment[mark] = "1"
    sys.stdout.flush()
    arguments = [interpreter, os.path.abspath(__file__), *sys.argv[1:]]
    os.execve(interpreter, arguments, {**os.environ, **environment})


def prepend(variable, directory):
    rest = os.environ.get(variable)
    return directory + os.pathsep + rest if rest else directory


def import_libraries():
    """NumPy and Pto, by way of another interpreter or the build directory where need be."""
    try:
        import gi
        import numpy
    except ImportError as error:
        probe = [SYSTEM_PYTHON, "-c", "import gi, numpy"]
        if (os.access(SYSTEM_PYTHON, os.X_OK)
                and subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode == 0):
            start_again(SYSTEM_PYTHON, "PTO_RUN_EXAMPLE_PYTHON")
        raise ExampleError(f"{sys.executable}: {error}; "
                           "install python3-gi and python3-numpy") from None
    try:
        gi.require_version("Pto", "1")
        from gi.repository import GLib, Pto
    except (ValueError, ImportError) as error:
        if os.path.exists(os.path.join(BUILD, "Pto-1.typelib")):
            start_again(sys.executable, "PTO_RUN_EXAMPLE_BUILD",
                        PYTHONPATH=prepend("PYTHONPATH", os.path.join(REPOSITORY, "pto")),
                        GI_TYPELIB_PATH=prepend("GI_TYPELIB_PATH", BUILD),
                        LD_LIBRARY_PATH=prepend("LD_LIBRARY_PATH", BUILD))
        raise ExampleError(f"libpto can not be loaded ({error}); install it, "
                           "or run this through: meson devenv -C build") from None
    return numpy, GLib, Pto


def parse_arguments():
    parser = argparse.ArgumentParser(prog="run_example.py", description=__doc__)
    parser.add_argument("-k", "--kernels", required=True, metavar="DIR",
                        help="directory with kernel_config.py and the sources it names")
    parser.add_argument("-g", "--golden", required=True, metavar="FILE", help="golden.py")
    parser.add_argument("-p", "--platform", default="a2a3sim", help="default: a2a3sim")
    cases = parser.add_mutually_exclusive_group()
    cases.add_argument("--case", metavar="NAME", help="one of ALL_CASES; default: DEFAULT_CASE")
    cases.add_argument("--all", action="store_true", help="every case of ALL_CASES")
    parser.add_argument("--backend", metavar="NAME", help="par, det or threads")
    parser.add_argument("--seed", metavar="NUMBER", type=int, help="seed of the det back end")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], dest="settings",
                        help="a parameter of the worker, such as task-window=16")
    options = parser.parse_args()
    options.parameters = []
    if options.backend is not None:
        options.parameters.append(("backend", options.backend))
    if options.seed is not None:
        options.parameters.append(("seed", str(options.seed)))
    for setting in options.settings:
        key, equals, value = setting.partition("=")
        if not key or not equals or not value:
            parser.error(f"--set {setting}: KEY=VALUE wanted")
        options.parameters.append((key, value))
    return options


def describe(error):
    """What went wrong in somebody's file, in one line, with the place in that file."""
    text = " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) or not frames:
        return f"{type(error).__name__}: {text}"
    return f"{frames[-1].filename}:{frames[-1].lineno}: {type(error).__name__}: {text}"


def load_module(path, name):
    if not os.path.isfile(path):
        raise ExampleError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ExampleError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    dont_write_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ExampleError(f"{path}: {describe(error)}") from error
    finally:
        sys.dont_write_bytecode = dont_write_bytecode
        del sys.path[0]
    return module


def nearest(word, words):
    """"; did you mean ...?" for a word that is none of these, or nothing."""
    near = difflib.get_close_matches(str(word), [str(each) for each in words], 1, 0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


def warn(text):
    sys.stdout.flush()
    print(f"run_example.py: warning: {text}", file=sys.stderr)


def warn_of_unread_names(module, known):
    """A setting of the module that nobody knows and that the module does not read itself is often a typing error."""
    with open(module.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    read = {node.id for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for statement in tree.body:
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            if (isinstance(target, ast.Name) and target.id == target.id.upper()
                    and target.id not in read and target.id not in known):
                warn(f"{module.__file__}: nobody reads {target.id} (known: {', '.join(known)})"
                     + nearest(target.id, [each for each in known if not hasattr(module, each)]))


def attribute(module, name, kinds, what):
    value = getattr(module, name, None)
    if value is None:
        raise ExampleError(f"{module.__file__}: {name} is missing")
    if not (callable(value) if kinds is None else isinstance(value, kinds)):
        raise ExampleError(f"{module.__file__}: {name} is not {what}")
    return value


class Config:
    """kernel_config.py, checked."""

    def __init__(self, directory):
        if not os.path.isdir(directory):
            raise ExampleError(f"{directory}: no such directory")
        module = load_module(os.path.join(directory, "kernel_config.py"), "kernel_config")
        self.directory = directory
        self.file = module.__file__
        self.kernels = []
        warn_of_unread_names(module, ("KERNELS", "ORCHESTRATION", "RUNTIME_CONFIG", "BUILD_CONFIG"))
        build = getattr(module, "BUILD_CONFIG", {})
        self.check_keys(build, "BUILD_CONFIG", BUILD_KEYS)
        self.include_dirs = self.dirs(build, "BUILD_CONFIG")
        self.flags = {key: self.words(build, key, "BUILD_CONFIG") for key in ("cflags", "cxxflags")}
        for i, kernel in enumerate(attribute(module, "KERNELS", (list, tuple), "a list")):
            where = f"KERNELS[{i}]"
            self.check_keys(kernel, where, ("func_id", "source", "core_type", "name", "args", *BUILD_KEYS, "flags"))
            func_id = self.entry(kernel, "func_id", where, int)
            core_type = self.entry(kernel, "core_type", where, str)
            if core_type not in ("aic", "aiv"):
                raise ExampleError(f"{self.file}: {where}: core_type {core_type!r}: "
                                   "'aic' or 'aiv' wanted")
            if func_id < 0 or any(func_id == other[0] for other in self.kernels):
                raise ExampleError(f"{self.file}: {where}: func_id {func_id} is taken or negative")
            source = self.source(kernel, where)
            stem = os.path.splitext(os.path.basename(source))[0]
            args = self.entry(kernel, "args", where, int) if "args" in kernel else -1
            if "args" in kernel and not 0 <= args <= MAX_ARGS:
                raise ExampleError(f"{self.file}: {where}: args = {args}: a number from 0 to {MAX_ARGS} wanted")
            self.kernels.append((func_id, str(kernel.get("name", stem)), source, core_type, args,
                                 self.build(kernel, where, source)))
        if not self.kernels:
            raise ExampleError(f"{self.file}: KERNELS is empty")
        orchestration = attribute(module, "ORCHESTRATION", dict, "a dict")
        self.check_keys(orchestration, "ORCHESTRATION", ("source", "function_name", "outputs", *BUILD_KEYS, "flags"))
        self.orchestration = self.source(orchestration, "ORCHESTRATION")
        self.orchestration_build = self.build(orchestration, "ORCHESTRATION", self.orchestration)
        self.outputs = self.names(orchestration, "outputs", "ORCHESTRATION")
        self.function = self.entry(orchestration, "function_name", "ORCHESTRATION", str)
        runtime = getattr(module, "RUNTIME_CONFIG", {})
        if not isinstance(runtime, dict):
            raise ExampleError(f"{self.file}: RUNTIME_CONFIG is not a dict")
        self.check_keys(runtime, "RUNTIME_CONFIG", ("runtime", "aicpu_thread_num", "block_dim", "build_mode"))
        self.runtime = runtime.get("runtime", RUNTIME)
        if self.runtime not in (RUNTIME, HOST_GRAPH, CHIP_GRAPH):
            raise ExampleError(f"{self.file}: RUNTIME_CONFIG: runtime = {self.runtime!r}: there are "
                               f"{RUNTIME!r}, {HOST_GRAPH!r} and {CHIP_GRAPH!r}")
        self.build_mode = runtime.get("build_mode")
        if self.build_mode is not None and (self.runtime != CHIP_GRAPH or self.build_mode not in (0, 1)
                                            or isinstance(self.build_mode, bool)):
            raise ExampleError(f"{self.file}: RUNTIME_CONFIG: build_mode = {self.build_mode!r}: only {CHIP_GRAPH!r} has one, "
                               "0 (build, then schedule) or 1 (both at once)")
        self.thread_num = self.count(runtime, "aicpu_thread_num")
        self.block_dim = self.count(runtime, "block_dim")

    def check_keys(self, table, where, known):
        if not isinstance(table, dict):
            raise ExampleError(f"{self.file}: {where} is not a dict")
        for key in table:
            if key not in known:
                meant = nearest(key, [each for each in known if each not in table])
                raise ExampleError(f"{self.file}: {where}: unknown key {key!r} (known: {', '.join(known)}){meant}")

    def entry(self, table, key, where, kind):
        if not isinstance(table, dict) or key not in table:
            raise ExampleError(f"{self.file}: {where}: {key!r} is missing")
        value = table[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ExampleError(f"{self.file}: {where}: {key} = {value!r} is no {kind.__name__}")
        return value

    def source(self, table, where):
        path = os.path.join(self.directory, os.fspath(self.entry(table, "source", where,
                                                                 (str, os.PathLike))))
        if not os.path.isfile(path):
            raise ExampleError(f"{path}: no such file ({where} of {self.file})")
        return path

    def names(self, table, key, where):
        """A list of texts; empty where nothing is said."""
        value = table.get(key, [])
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, (str, os.PathLike)) for v in value):
            raise ExampleError(f"{self.file}: {where}: {key} = {value!r} is no list of texts")
        return [os.fspath(v) for v in value]

    def dirs(self, table, where):
        """One directory, or a list, beside the file. The key has two names."""
        if "include" in table and "include_dirs" in table:
            raise ExampleError(f"{self.file}: {where}: include and include_dirs are the same: one of them")
        key = "include" if "include" in table else "include_dirs"
        if key == "include" and isinstance(table[key], (str, os.PathLike)):
            return [os.path.join(self.directory, table[key])]
        return [os.path.join(self.directory, path) for path in self.names(table, key, where)]

    def words(self, table, key, where):
        """Flags: a list, or one text as in a shell."""
        value = table.get(key, [])
        if not isinstance(value, str):
            return self.names(table, key, where)
        try:
            return shlex.split(value)
        except ValueError as error:
            raise ExampleError(f"{self.file}: {where}: {key} = {value!r}: {error}") from None

    def build(self, table, where, source):
        """With what a source is compiled: what is said of it itself is stronger than what is said of all."""
        key, other = ("cflags", "cxxflags") if source.endswith(".c") else ("cxxflags", "cflags")
        if other in table and not source.endswith(".so"):
            raise ExampleError(f"{self.file}: {where}: {other} says nothing of {source}: {key} does")
        return (self.dirs(table, where) + self.include_dirs,
                self.flags[key] + self.words(table, key, where) + self.words(table, "flags", where))

    def count(self, table, key):
        if key not in table:
            return None
        value = self.entry(table, key, "RUNTIME_CONFIG", int)
        if not 1 <= value < 2**31:
            raise ExampleError(f"{self.file}: RUNTIME_CONFIG: {key} = {value}: a number from 1 to {2**31 - 1} wanted")
        return value


class Golden:
    """golden.py, checked."""

    def __init__(self, path):
        self.module = module = load_module(path, "golden")
        self.file = path
        warn_of_unread_names(module, ("ALL_CASES", "DEFAULT_CASE", *TOLERANCES, "__outputs__"))
        self.generate_inputs = attribute(module, "generate_inputs", None, "a function")
        self.compute_golden = attribute(module, "compute_golden", None, "a function")
        self.outputs = []
        if hasattr(module, "__outputs__"):
            self.outputs = list(attribute(module, "__outputs__", (list, tuple), "a list of names"))
            if not self.outputs:
                raise ExampleError(f"{path}: __outputs__ is empty")
        self.rtol = self.number("RTOL", 1e-5, sys.float_info.max)
        self.atol = self.number("ATOL", 1e-5, sys.float_info.max)
        self.mismatch_share = self.number("MISMATCH_SHARE", 0, 1)
        self.equal_nan = getattr(module, "EQUAL_NAN", False)
        if not isinstance(self.equal_nan, bool):
            raise ExampleError(f"{path}: EQUAL_NAN = {self.equal_nan!r}: True or False wanted")
        self.cases = getattr(module, "ALL_CASES", None) or {"Default": {}}
        if not isinstance(self.cases, dict):
            raise ExampleError(f"{path}: ALL_CASES is not a dict")
        self.default_case = getattr(module, "DEFAULT_CASE", None) or next(iter(self.cases))

    def number(self, name, default, most):
        value = getattr(self.module, name, default)
        if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 <= value <= most:
            wanted = f"a number from 0 to {most}" if most == 1 else "a number that is not negative"
            wanted += ", and finite," if isinstance(value, numbers.Real) and value > most > 1 else ""
            raise ExampleError(f"{self.file}: {name} = {value!r}: {wanted} wanted")
        return float(value)

    def choose(self, options):
        if options.all:
            return list(self.cases)
        name = self.default_case if options.case is None else options.case
        if name not in self.cases:
            known = ", ".join(map(str, self.cases))
            raise ExampleError(f"{self.file}: there is no case {name!r}; cases: {known}")
        return [name]

    def call(self, function, *arguments):
        try:
            return function(*arguments)
        except Exception as error:
            raise ExampleError(f"{self.file}: {function.__name__}() failed: "
                               f"{describe(error)}") from error


class Params(dict):
    """A case's parameters, which know what was read of them."""

    def __init__(self, params):
        super().__init__(params)
        self.unread = set(params)
        self.missed = set()  # read, and not there

    def read(self, key):
        self.unread.discard(key)
        if key not in self:
            self.missed.add(key)

    def __getitem__(self, key):
        self.read(key)
        return super().__getitem__(key)

    def get(self, key, default=None):
        self.read(key)
        return super().get(key, default)

    def pop(self, key, *default):
        self.read(key)
        return super().pop(key, *default)

    def __iter__(self):
        self.unread.clear()
        return super().__iter__()

    def keys(self):
        self.unread.clear()
        return super().keys()

    def values(self):
        self.unread.clear()
        return super().values()

    def items(self):
        self.unread.clear()
        return super().items()


def is_tensor(value):
    """Whether that is a torch tensor; torch itself is never imported here."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def type_name(value):
    return str(value.dtype).replace("torch.", "")


def memory_of(numpy, value):
    """What goes to the device: a contiguous array; the floats of torch that NumPy lacks, as their bits."""
    if is_tensor(value):
        value = value.detach().cpu().contiguous()
        if type_name(value) in NARROW_FLOATS:
            bits = "uint16" if value.element_size() == 2 else "uint8"
            return value.view(getattr(sys.modules["torch"], bits.replace("uint16", "int16"))).numpy().view(bits)
        value = value.numpy()
    return numpy.ascontiguousarray(value).reshape(value.shape)


def numbers_of(numpy, memory, dtype):
    """Memory as numbers that can be compared."""
    if dtype == "bfloat16":
        return (memory.astype(numpy.uint32) << 16).view(numpy.float32)
    if dtype == "float8_e5m2":  # the upper half of a half
        return (memory.astype(numpy.uint16) << 8).view(numpy.float16).astype(numpy.float32)
    if dtype == "float8_e4m3fn":
        exponent, fraction = (memory >> 3 & 15).astype(int), (memory & 7).astype(numpy.float32)
        numbers_ = numpy.where(exponent == 0, numpy.ldexp(fraction, -9), numpy.ldexp(fraction + 8, exponent - 10))
        numbers_ = numpy.where(memory & 127 == 127, numpy.nan, numbers_)
        return numpy.where(memory >> 7 == 1, -numbers_, numbers_).astype(numpy.float32)
    return memory


def copy_of(value):
    if is_tensor(value):
        return value.clone()
    return value.copy() if hasattr(value, "copy") else copy.copy(value)


def is_number(value):
    """A Python or NumPy number, or one of ctypes."""
    texts = (ctypes.c_char_p, ctypes.c_wchar_p, ctypes.c_wchar, ctypes.py_object, ctypes.c_longdouble)
    if isinstance(value, ctypes._SimpleCData):
        return not isinstance(value, texts)
    return isinstance(value, numbers.Real) or type(value).__name__ == "bool_"  # NumPy's is no number


def scalar_bits(value):
    """A number as the 64 bits the orchestration gets: floats by their bit pattern."""
    if not isinstance(value, ctypes._SimpleCData):
        if isinstance(value, numbers.Integral) or type(value).__name__ == "bool_":
            if not -2**63 <= int(value) < 2**64:
                raise OverflowError(f"{value} does not fit in 64 bits")
            return int(value) & 0xffffffffffffffff
        return int.from_bytes(struct.pack("=f", float(value)), sys.byteorder)
    raw = value.value
    if isinstance(value, (ctypes.c_float, ctypes.c_double)):
        return int.from_bytes(bytes(value), sys.byteorder)
    if isinstance(raw, bytes):
        raw = raw[0]
    return int(raw or 0) & 0xffffffffffffffff


class Arguments:
    """What generate_inputs() gave, its device memory, and the arguments made of it."""

    def __init__(self, numpy, golden, items, outputs):
        self.numpy = numpy
        self.values = {}
        self.memory = {}
        self.addresses = {}
        if isinstance(items, dict):
            items = list(items.items())
        if not isinstance(items, (list, tuple)):
            raise ExampleError(f"{golden.file}: generate_inputs() gave no list of (name, value)")
        for item in items:
            if (not isinstance(item, (list, tuple)) or len(item) != 2
                    or not isinstance(item[0], str)):
                raise ExampleError(f"{golden.file}: generate_inputs(): {item!r:.60} "
                                   "is no (name, value)")
            self.add(golden, *item)
        names = golden.outputs or outputs
        for name in names:
            if name not in self.memory:
                says = f"{golden.file}: __outputs__" if golden.outputs else "ORCHESTRATION: outputs"
                raise ExampleError(f"{says} names {name!r}, "
                                   f"which generate_inputs() of {golden.file} does not give as an array")
        self.outputs = names or list(self.memory)
        if not self.outputs:
            raise ExampleError(f"{golden.file}: generate_inputs() gives no array: there is nothing to compare")

    def add(self, golden, name, value):
        where = f"{golden.file}: generate_inputs(): {name!r}"
        if name in self.values:
            raise ExampleError(f"{where} comes twice")
        if isinstance(value, (list, tuple, range)):
            value = self.array_of(value, where)
        if isinstance(value, self.numpy.ndarray) or is_tensor(value):
            memory = memory_of(self.numpy, value)
            if memory.nbytes == 0:
                raise ExampleError(f"{where} is empty")
            if memory.dtype.kind not in "biuf" or not memory.dtype.isnative:
                raise ExampleError(f"{where} has the type {memory.dtype}, "
                                   "which has no place on a device")
            self.memory[name] = memory
        elif not is_number(value):
            raise ExampleError(f"{where} is neither an array nor a number: {type(value).__name__}")
        else:
            try:
                scalar_bits(value)
            except OverflowError as error:
                raise ExampleError(f"{where}: {error}") from None
        self.values[name] = value

    def array_of(self, value, where):
        """A list of numbers, which have no type: float32, if that can hold them."""
        try:
            given = self.numpy.asarray(value)
        except ValueError as error:
            raise ExampleError(f"{where}: {error}") from None
        if given.dtype.kind not in "biuf":
            raise ExampleError(f"{where} is no list of numbers")
        array = given.astype(self.numpy.float32)
        if given.dtype.kind != "f" and not (array.astype(object) == given.astype(object)).all():
            raise ExampleError(f"{where}: a list becomes float32, which can not hold these integers: "
                               "give an array of the type you mean")
        return array

    def upload(self, Pto, worker, task_args):
        for name, value in self.values.items():
            memory = self.memory.get(name)
            if memory is None:
                task_args.add_scalar(scalar_bits(value))
                continue
            address = worker.malloc(memory.nbytes)
            if not address:
                raise ExampleError(f"no device memory for {name} ({memory.nbytes} bytes)")
            self.addresses[name] = address
            worker.copy_to_address(address, memory.ctypes.data, memory.nbytes)
            dtype = getattr(Pto.Dtype, type_name(value).upper(), None)
            if dtype is None or not 1 <= memory.ndim <= 5:  # no tensor, but memory all the same
                task_args.add_scalar(address)
            else:
                tensor = Pto.Tensor.new_external(address, dtype, list(memory.shape))
                task_args.add_tensor(tensor, Pto.Direction.INOUT)

    def download(self, worker, name):
        result = self.numpy.empty_like(self.memory[name])
        worker.copy_from_address(result.ctypes.data, self.addresses[name], result.nbytes)
        return numbers_of(self.numpy, result, type_name(self.values[name]))

    def free(self, worker):
        for address in self.addresses.values():
            worker.free(address)
        self.addresses.clear()


def distance_of(numpy, actual, wanted):
    """How far the elements are apart; exact for integers, of which two of 64 bits may need 65."""
    if "f" in (actual.dtype.kind, wanted.dtype.kind):
        with numpy.errstate(all="ignore"):
            return numpy.abs(actual.astype(numpy.float64) - wanted.astype(numpy.float64))
    return abs(actual.astype(object) - wanted.astype(object))


def worst_of(numpy, actual, wanted, matches):
    """The largest differences, in words: of all elements, and of those that are finite where another one differs."""
    finite = numpy.isfinite(actual) & numpy.isfinite(wanted)
    error = distance_of(numpy, actual[finite], wanted[finite]).astype(numpy.float64)
    with numpy.errstate(all="ignore"):
        relative = error / numpy.abs(wanted[finite].astype(numpy.float64))
    largest = error.max(initial=0), relative[wanted[finite] != 0].max(initial=0)
    is_nan = numpy.isnan(actual) | numpy.isnan(wanted)
    n_nan, n_infinite = (int(numpy.count_nonzero(~matches & of)) for of in (is_nan, ~finite & ~is_nan))
    if n_nan + n_infinite == 0:
        return f"max error {largest[0]:.2g}, relative {largest[1]:.2g}"
    kind = "nan" if n_nan > 0 else "inf"
    return (f"max error {kind}, relative {kind}; not finite: {n_nan} elements that differ have NaN, {n_infinite} have infinity; "
            f"the others: max error {largest[0]:.2g}, relative {largest[1]:.2g}")


def matches_of(numpy, golden, actual, wanted):
    """Which elements are near enough, as pto run finds it: RTOL is for floats only."""
    is_float = actual.dtype.kind == "f"
    if is_float or wanted.dtype.kind == "f":
        with numpy.errstate(invalid="ignore", over="ignore"):
            return numpy.isclose(actual.astype(numpy.float64), wanted.astype(numpy.float64),
                                 rtol=golden.rtol if is_float else 0, atol=golden.atol, equal_nan=golden.equal_nan)
    if golden.atol < 1:
        return actual == wanted
    return distance_of(numpy, actual, wanted) <= golden.atol


def compare(numpy, golden, name, value, actual, expected):
    """Prints how one output fared; gives whether it passed."""
    shape = tuple(value.shape)
    print(f"Comparing {name}: shape={shape}, dtype={type_name(value)}")
    if not is_tensor(expected):
        expected = numpy.asarray(expected)
    wanted = numbers_of(numpy, memory_of(numpy, expected), type_name(expected))
    if wanted.shape != actual.shape:
        print(f"  {name}: FAIL (compute_golden() made its shape {tuple(wanted.shape)})")
        return False
    matches = numpy.asarray(matches_of(numpy, golden, actual, wanted))
    matched = int(numpy.count_nonzero(matches))
    passed = actual.size - matched <= golden.mismatch_share * actual.size
    print(f"  {name}: {'PASS' if passed else 'FAIL'} ({matched}/{actual.size} elements matched)")
    for index in numpy.argwhere(~matches)[:SHOWN_MISMATCHES]:
        place = tuple(index)
        where = ", ".join(map(str, place))
        print(f"    [{where}]: got {actual[place]}, expected {wanted[place]}")
    if actual.size - matched > SHOWN_MISMATCHES:
        print(f"    ... and {actual.size - matched - SHOWN_MISMATCHES} more")
    if actual.size > matched:
        print(f"    {worst_of(numpy, actual, wanted, matches)}")
    return passed


def run_case(numpy, Pto, golden, case, worker, handle, config):
    """Runs one case and compares; gives whether every output is as expected."""
    params = golden.cases[case]
    if isinstance(params, dict):
        params = Params(params)
    arguments = Arguments(numpy, golden, golden.call(golden.generate_inputs, params),
                          config.outputs)
    expected = {name: copy_of(value) if name in arguments.memory else value
                for name, value in arguments.values.items()}
    task_args = Pto.TaskArgs.new()
    call_config = Pto.CallConfig.new()
    if config.block_dim is not None:
        call_config.set_block_dim(config.block_dim)
    if config.thread_num is not None:
        # A graph is the host's, so one thread is enough: it schedules, beside the one that launches.
        call_config.set_aicpu_thread_num(max(config.thread_num, 2) if config.runtime == HOST_GRAPH else config.thread_num)
    try:
        arguments.upload(Pto, worker, task_args)
        if config.runtime == HOST_GRAPH:
            graph = worker.capture_callable(handle, task_args, call_config, None)
            worker.run_graph(graph, task_args, call_config, None)
        else:
            worker.run_callable(handle, task_args, call_config, None)
        actual = {name: arguments.download(worker, name) for name in arguments.outputs}
    finally:
        arguments.free(worker)
    golden.call(golden.compute_golden, expected, params)
    if isinstance(params, Params) and params.unread:
        for key in sorted(map(str, params.unread)):
            warn(f"{golden.file}: case {case}: nobody reads {key}{nearest(key, params.missed)}")

    print("=== Comparing Results ===")
    passed = [compare(numpy, golden, name, arguments.values[name], actual[name], expected[name])
              for name in arguments.outputs]
    return all(passed)


def set_build(callable_, build):
    """What is not asked for is not set: of a shared object it would have no effect, and is refused."""
    include_dirs, flags = build
    if include_dirs:
        callable_.set_include_dirs(include_dirs)
    if flags:
        callable_.set_compiler_flags(flags)


def run(options):
    numpy, GLib, Pto = import_libraries()
    config = Config(options.kernels)
    golden = Golden(options.golden)
    cases = golden.choose(options)
    failed = []

    print(f"=== Building Runtime: {config.runtime} (platform: {options.platform}) ===")
    try:
        worker = Pto.Worker.new(2, options.platform)
        if config.build_mode is not None:
            worker.set_parameter("build-mode", str(config.build_mode))
        for key, value in options.parameters:
            if (name := key.upper().replace("-", "_")) in TOLERANCES:
                raise ExampleError(f"--set {key}={value}: {key} is no parameter of the worker; write {name} = {value} in {golden.file}")
            worker.set_parameter(key, value)
        worker.start(None)
        try:
            chip = Pto.ChipOrchestration.new(config.orchestration, config.function)
            set_build(chip, config.orchestration_build)
            for func_id, name, source, core_type, args, build in config.kernels:
                core = Pto.CoreType.AIC if core_type == "aic" else Pto.CoreType.AIV
                kernel = Pto.Kernel.new(core, source, "kernel_entry")
                kernel.set_n_args(args)
                set_build(kernel, build)
                chip.add_kernel(func_id, name, kernel)
            handle = worker.register(chip, None)
            for case in cases:
                print(f"=== Running Case: {case} ===", flush=True)
                if not run_case(numpy, Pto, golden, case, worker, handle, config):
                    failed.append(str(case))
        finally:
            worker.close()
    except GLib.Error as error:
        raise ExampleError(error.message) from error

    print(f"\n{RULE}")
    print(f"TEST FAILED: {', '.join(failed)}" if failed else "TEST PASSED")
    print(RULE)
    return 1 if failed else 0


def main():
    options = parse_arguments()
    try:
        status = run(options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        sys.stdout.flush()
        print("run_example.py: cancelled", file=sys.stderr)
        return 130
    except ExampleError as error:
        sys.stdout.flush()
        print(f"run_example.py: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        # What print() could not write is written again at the end, and must go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"run_example.py: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
