# test_seeds.py: do the listings of the founding documents run as they are written there?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A listing is a text here, and is run as it stands. What it leaves open stands before it, in the test.
import ast
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

import gi

gi.require_version("Pto", "1")
from gi.repository import GLib, Pto  # noqa: E402

import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

examples = os.environ["PTO_TEST_EXAMPLES"]
ADD = os.path.join(examples, "worked-example", "add")
OWN = os.environ["PTO_TEST_SEEDS"]

# Seed 001, section 9.
RECURSION = '''
# L3 child: sub-only (no chips for this example)
l3 = Worker(level=3, num_sub_workers=1)
l3_sub_handle = l3.register(lambda: verify_result())

def my_l3_orch(orch, args, config):
    orch.submit_sub(l3_sub_handle)

# L4 parent
w4 = Worker(level=4, num_sub_workers=0)
l3_handle = w4.register(my_l3_orch) # register L3 orch fn in Python dict
w4.add_worker(l3)                   # add un-init'd L3 Worker as child
w4.init()

def my_l4_orch(orch, args, config):
    orch.submit_next_level(l3_handle, TaskArgs(), CallConfig())

w4.run(my_l4_orch)
w4.close()
'''

# Seed 001, section 10. Between its worker and its run chip_kernel_handle is made, which the listing has from before.
ONE_CHIP_TASK = ('''
a = torch.randn(N).share_memory_()
b = torch.randn(N).share_memory_()
c = torch.zeros(N).share_memory_()

args = TaskArgs()
args.add_tensor(make_ct(a), IN)
args.add_tensor(make_ct(b), IN)
args.add_tensor(make_ct(c), OUT)

def my_orch(orch, view, cfg):
    chip_args = TaskArgs()
    for i in range(view.tensor_count):
        chip_args.add_tensor(view.tensors[i], IN if i < 2 else OUT)
    orch.submit_next_level(chip_kernel_handle, chip_args, cfg)

w3 = Worker(level=3, child_mode=PROCESS)
w3.add_worker(NEXT_LEVEL, chip_worker_0)
w3.init()    # fork chip_0 here
''', '''
w3.run(my_orch, args, CallConfig(block_dim=3))
''')

# Seed 003, layer 3.
CHIP_WORKER = '''
from simpler.task_interface import ChipWorker, ChipCallable, ChipStorageTaskArgs, CallConfig

worker = ChipWorker()
worker.init(device_id=0, bins=bins)   # bins = RuntimeBuilder(platform).get_binaries(...)

config = CallConfig()
# config.block_dim defaults to 0 = auto (DeviceRunner resolves to the max
# the AICore stream allows). Set explicitly to pin a smaller value.
config.aicpu_thread_num = 3
config.enable_pmu = 0
worker.run(callable, args, config)
worker.finalize()
'''

# Seed 003, "3. Execution Phase", where the configuration has its values without names.
EXECUTION_PHASE = '''
worker.run(callable, args, CallConfig(block_dim, aicpu_thread_num))
'''

# Seed 004, "Platforms", its second line; the first is of the chip itself.
PLATFORMS = ('''
builder = RuntimeBuilder(platform="a2a3")      # Real hardware
''', '''
builder = RuntimeBuilder(platform="a2a3sim")   # Simulation
''')

# Seed 004, "Build Process", without the compiler of the chip itself, which is refused.
BUILD_PROCESS = ('''
from binary_compiler import BinaryCompiler

# For real Ascend hardware (requires CANN toolkit)
compiler = BinaryCompiler(platform="a2a3")
''', '''
from binary_compiler import BinaryCompiler

# For simulation (no Ascend SDK needed)
compiler = BinaryCompiler(platform="a2a3sim")

# Compile each component to independent binaries
aicore_binary = compiler.compile("aicore", include_dirs, source_dirs)    # → .o file
aicpu_binary = compiler.compile("aicpu", include_dirs, source_dirs)      # → .so file
host_binary = compiler.compile("host", include_dirs, source_dirs)        # → .so file
''')

# Seed 004, "Quick Start - Python Example". "[...include_dirs...]" is no Python: there, and only there, lists are put in. The listing
# takes launch_runtime() for granted, which is where bind_host_binary() is.
QUICK_START = '''
from bindings import bind_host_binary
from binary_compiler import BinaryCompiler

# Compile all binaries
compiler = BinaryCompiler()
aicore_bin = compiler.compile("aicore", [...include_dirs...], [...source_dirs...])
aicpu_bin = compiler.compile("aicpu", [...include_dirs...], [...source_dirs...])
host_bin = compiler.compile("host", [...include_dirs...], [...source_dirs...])

# Load and initialize runtime
Runtime = bind_host_binary(host_bin)
runtime = Runtime()
runtime.initialize()  # C++ builds runtime and allocates tensors

# Execute runtime on device
launch_runtime(runtime,
               aicpu_thread_num=1,
               block_dim=1,
               device_id=9,
               aicpu_binary=aicpu_bin,
               aicore_binary=aicore_bin)

runtime.finalize()  # Verify and cleanup
'''

# Seed 004, "Layer 3: Python API".
LAYER_3 = '''
Runtime = bind_host_binary(host_binary)
runtime = Runtime()
runtime.initialize()
launch_runtime(runtime, aicpu_thread_num=1, block_dim=1,
               device_id=device_id, aicpu_binary=aicpu_bytes,
               aicore_binary=aicore_bytes)
runtime.finalize()
'''

# Seed 004, "Runtime Configuration". "..." is what the values are put in for.
RUNNER_INIT = '''
runner.init(
    device_id=0,              # Device ID (0-15)
    num_cores=3,              # Number of cores for handshake
    aicpu_binary=...,         # AICPU .so binary
    aicore_binary=...,        # AICore .o binary
    pto_isa_root="/path/to/pto-isa"  # PTO-ISA headers location
)
'''

# Seed 000, section 12.1.
KERNEL_CONFIG = '''
KERNELS = [
    {"func_id": 0, "name": "QK",      "source": "aic/aic_qk_matmul.cpp",       "core_type": "aic"},
    {"func_id": 1, "name": "SF",      "source": "aiv/aiv_softmax_prepare.cpp", "core_type": "aiv"},
    {"func_id": 2, "name": "PV",      "source": "aic/aic_pv_matmul.cpp",       "core_type": "aic"},
    {"func_id": 3, "name": "UP",      "source": "aiv/aiv_online_update.cpp",   "core_type": "aiv"},
    {"func_id": 5, "name": "AIV_HUB", "source": "aiv/aiv_hub.cpp",            "core_type": "aiv"},
]

ORCHESTRATION = {
    "source": "orchestration/paged_attention_orch.cpp",
    "function_name": "aicpu_orchestration_entry",
}

RUNTIME_CONFIG = {
    "runtime": "tensormap_and_ringbuffer",
    "aicpu_thread_num": 4,
    "block_dim": 24,
}
'''


HAS_COMPILER = unittest.skipIf(
    shutil.which("pkg-config") is None or shutil.which(os.environ.get("CXX", "c++").split()[0]) is None,
    "no compiler of C++, or no pkg-config")


def seeds(**more):
    return {**{name: getattr(Pto.seeds, name) for name in dir(Pto.seeds) if not name.startswith("_")}, **more}


class Torch:
    """As much of torch as the listing uses: tensors in memory that processes share."""

    class Tensor:
        def __init__(self, values):
            self.values = values

        def share_memory_(self):
            memory = mmap.mmap(-1, max(self.values.nbytes, 1))
            shared = np.frombuffer(memory, self.values.dtype)[:self.values.size]
            shared[:] = self.values
            return shared

    def randn(self, n):
        return self.Tensor(np.random.default_rng(n).standard_normal(n).astype("f4"))

    def zeros(self, n):
        return self.Tensor(np.zeros(n, "f4"))


@unittest.skipIf(np is None, "no numpy")
class Listings(unittest.TestCase):
    def test_recursion(self):
        notes = Pto.Buffer.array(2, "i8")

        def verify_result():
            notes[0] += 1
            notes[1] = os.getpid()

        exec(RECURSION, seeds(verify_result=verify_result))
        self.assertEqual(notes[0], 1)
        self.assertNotIn(notes[1], (0, os.getpid()))

    def test_one_chip_task(self):
        first, second = ONE_CHIP_TASK
        names = seeds(torch=Torch(), N=10000, chip_worker_0=Pto.seeds.ChipWorker())
        exec(first, names)
        names["chip_kernel_handle"] = names["w3"].register(Pto.Callable.chip(ADD))
        exec(second, names)
        names["w3"].close()
        self.assertTrue(np.array_equal(names["c"], names["a"] + names["b"]))
        self.assertTrue(names["c"].any())

    def add_args(self):
        a, b, c = (np.full(10000, value, "f4") for value in (2, 3, 0))
        args = Pto.seeds.ChipStorageTaskArgs()
        for array, tag in ((a, Pto.seeds.IN), (b, Pto.seeds.IN), (c, Pto.seeds.OUTPUT_EXISTING)):
            args.add_tensor(Pto.seeds.make_ct(array), tag)
        return args, c

    def test_chip_worker(self):
        for runtime in ("tensormap_and_ringbuffer", "host_build_graph", "aicpu_build_graph"):
            with self.subTest(runtime=runtime):
                bins = Pto.seeds.RuntimeBuilder("a5sim").get_binaries(runtime)
                args, c = self.add_args()
                names = {"bins": bins, "callable": Pto.Callable.chip(ADD), "args": args}
                exec(CHIP_WORKER, names)
                self.assertTrue((c == 5).all())
                self.assertEqual(names["worker"].worker.platform, "a5sim")

    def test_begins_again(self):
        """After finalize() init() begins as if the worker had just been made, as often as one likes."""
        worker, add = Pto.seeds.ChipWorker(), Pto.Callable.chip(ADD)
        bins = Pto.seeds.RuntimeBuilder("a5sim").get_binaries("host_build_graph")
        for more, platform, runtime in (({"device_id": 3, "bins": bins}, "a5sim", "host_build_graph"),
                                        ({}, "a2a3sim", "tensormap_and_ringbuffer"), ({"bins": bins}, "a5sim", "host_build_graph")):
            worker.init(**more)
            self.assertEqual((worker.worker.platform, worker.worker.get_device_id(), worker.runtime),
                             (platform, more.get("device_id", 0), runtime))
            args, c = self.add_args()
            worker.run(add, args)
            self.assertTrue((c == 5).all())
            worker.finalize()
            with self.assertRaisesRegex(GLib.Error, "closed"):
                worker.run(add, args)

    def test_graph_first(self):
        """On host_build_graph nothing runs while the graph is built."""
        array = np.full(3, 7, "f4")
        for runtime in ("tensormap_and_ringbuffer", "host_build_graph"):
            worker, read = Pto.seeds.ChipWorker(), []
            worker.init(bins=Pto.seeds.RuntimeBuilder().get_binaries(runtime))
            args = Pto.seeds.TaskArgs()
            args.add_tensor(Pto.seeds.make_ct(array))

            def graph(orch, given, config):
                read.append(orch.get_element(given.get_tensor(0), 0))
            if runtime == "host_build_graph":
                with self.assertRaisesRegex(GLib.Error, "while a graph is captured"):
                    worker.run(graph, args)
                one, added, c = Pto.CallConfig(aicpu_thread_num=1), *self.add_args()
                worker.run(Pto.Callable.chip(ADD), added, one)
                self.assertTrue((c == 5).all())
                self.assertEqual(one.get_aicpu_thread_num(), 1)
            else:
                worker.run(graph, args)
                self.assertEqual(read, [7])
            worker.finalize()

    def test_execution_phase(self):
        worker = Pto.seeds.ChipWorker()
        worker.init(device_id=9)
        self.assertEqual(worker.worker.get_device_id(), 9)
        args, c = self.add_args()
        exec(EXECUTION_PHASE, seeds(worker=worker, callable=Pto.Callable.chip(ADD), args=args, block_dim=3, aicpu_thread_num=3))
        self.assertTrue((c == 5).all())
        worker.finalize()

    @HAS_COMPILER
    def test_quick_start(self):
        """It is run twice, by itself: the host's binary prints what it has verified."""
        lists = f"[{os.path.join(OWN, 'include')!r}], [{{}}]"
        program = "from bindings import launch_runtime\n" + QUICK_START
        for target, folder in (("aicore", "kernels"), ("aicpu", None), ("host", "host")):
            directories = "" if folder is None else repr(os.path.join(OWN, folder))
            program = program.replace(f'("{target}", [...include_dirs...], [...source_dirs...])',
                                      f'("{target}", {lists.format(directories)})')
        self.assertNotIn("[...", program)
        again = "\n".join(LAYER_3.splitlines()[2:])
        program += f"host_binary, device_id, aicpu_bytes, aicore_bytes = host_bin, 9, aicpu_bin, aicore_bin\n{again}\n"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "# f: PASS (16384/16384 elements matched)\n" * 2, ""))

    @HAS_COMPILER
    def test_build_process(self):
        includes, sources = [os.path.join(OWN, "include")], [os.path.join(OWN, "host")]
        names = {"include_dirs": includes, "source_dirs": sources}
        with self.assertRaisesRegex(GLib.Error, "the chip itself"):
            exec(BUILD_PROCESS[0], names)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            exec(BUILD_PROCESS[1], names)
        self.assertEqual([str(warning.message) for warning in told],
                         [f"{sources[0]}/runtime_maker.cpp is not compiled: the scheduler of a2a3sim is libpto's"])
        self.assertEqual(names["aicore_binary"].decode(), f"a2a3sim\ninclude {includes[0]}\nsource {sources[0]}")
        self.assertEqual(names["aicpu_binary"], b"host_build_graph")
        self.assertEqual(names["host_binary"][:4], b"\177ELF")

    def test_platforms(self):
        from runtime_builder import RuntimeBuilder
        names = {"RuntimeBuilder": RuntimeBuilder}
        with self.assertRaisesRegex(GLib.Error, "the chip itself"):
            exec(PLATFORMS[0], names)
        exec(PLATFORMS[1], names)
        binaries = names["builder"].get_binaries()
        self.assertEqual((binaries.platform, binaries.aicpu, binaries.aicore), ("a2a3sim", b"tensormap_and_ringbuffer", b"a2a3sim"))

    def test_batch_paged_attention(self):
        """The layout's own example is the listing, and runs in test_seed_layout.py."""
        listing = {}
        exec(KERNEL_CONFIG, listing)
        path = os.path.join(examples, "seed-layout", "batch_paged_attention", "kernels", "kernel_config.py")
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        found = {node.targets[0].id: ast.literal_eval(node.value) for node in tree.body}
        self.assertEqual(found, {name: listing[name] for name in ("KERNELS", "ORCHESTRATION", "RUNTIME_CONFIG")})


@unittest.skipIf(np is None, "no numpy")
class Names(unittest.TestCase):
    def test_task_args(self):
        s = Pto.seeds
        args = s.TaskArgs()
        tensors = [s.make_ct(np.zeros(n, "f4")) for n in (1, 2, 3)]
        for tensor, tag in zip(tensors, (s.IN, s.OUT, s.INOUT)):
            args.add_tensor(tensor, tag)
        args.add_scalar(7)
        args.add_scalar(2**64 - 1)
        self.assertEqual([args.tag(i) for i in range(3)],
                         [s.TensorArgType.INPUT, s.TensorArgType.OUTPUT, s.TensorArgType.INOUT])
        for i in (-1, 3):
            with self.assertRaisesRegex(IndexError, f"tensor {i} of 3"):
                args.tag(i)
        view = args.view()
        self.assertEqual((view.tensor_count, view.scalar_count, view.scalars), (3, 2, [7, 2**64 - 1]))
        self.assertEqual([t.shape for t in view.tensors], [(1,), (2,), (3,)])
        self.assertIsInstance(view.tensors[0], s.ContinuousTensor)
        self.assertFalse(hasattr(view, "tag"))

    def test_refused(self):
        s = Pto.seeds
        host = s.Worker(level=3, child_mode=s.PROCESS)
        for what in ((), (s.SUB, s.Worker(level=2)), (s.NEXT_LEVEL, s.Worker(level=2), 1)):
            with self.assertRaisesRegex(TypeError, "num_sub_workers=1"):
                host.add_worker(*what)
        self.assertEqual(host.get_n_workers(), 0)
        host.add_worker(s.Worker(level=2))
        self.assertEqual(host.get_n_workers(), 1)
        with self.assertRaisesRegex(ValueError, "no runtime 'other': 'tensormap_and_ringbuffer', 'host_build_graph', 'aicpu_b"):
            s.RuntimeBuilder("a2a3sim").get_binaries("other")
        with self.assertRaisesRegex(TypeError, r"RuntimeBuilder\(platform\).get_binaries\(\) gives is wanted"):
            s.ChipWorker().init(bins=b"a2a3sim")
        with self.assertRaisesRegex(TypeError, "device_id='0' is no integer"):
            s.ChipWorker().init(device_id="0")
        with self.assertRaisesRegex(GLib.Error, "the chip itself"):
            s.RuntimeBuilder(platform="a2a3")
        with self.assertRaisesRegex(ValueError, "device_id=16: there are 0 to 15"):
            s.ChipWorker().init(device_id=16)
        for words, call in ((r"made by Pto.Callable.chip\(directory\)", lambda: s.ChipCallable("x")),
                            ("platform=None: a name or a path", lambda: s.RuntimeBuilder(None)),
                            ("platform=5: a name or a path", lambda: s.KernelCompiler(5)),
                            ("source=None: a name or a path", lambda: s.KernelCompiler.compile_incore(None))):
            with self.assertRaisesRegex(TypeError, words):
                call()

    def test_remote_callable(self):
        s = Pto.seeds
        sys.path.insert(0, root := os.path.join(os.path.dirname(os.path.abspath(__file__)), "remote-root"))
        self.addCleanup(sys.path.remove, root)
        x, y = Pto.Buffer.array(4, "i8"), Pto.Buffer.array(4, "i8")
        x[:] = range(4)
        with s.Worker(level=4) as w4:
            remotes = [w4.add_remote_worker("local:", roots=root, sub_workers=1, id=i) for i in (0, 5)]
            remotes[1].register(Pto.ImportedFunction.new(Pto.CallableKind.SUB, "remote_steps:double"))
            handle = w4.register(s.RemoteCallable("remote_steps:layer"), workers=[5])

            def my_l4_orch(orch, args, config):
                remote = s.RemoteTaskArgs()
                remote.add_tensor(s.make_ct(x), s.IN)
                remote.add_tensor(s.make_ct(y), s.OUTPUT_EXISTING)
                orch.submit_next_level(handle, remote, s.CallConfig())
            w4.run(my_l4_orch, s.TaskArgs(), s.CallConfig())
            self.assertEqual(list(y), [0, 2, 4, 6])
            with self.assertRaisesRegex(GLib.Error, '"layer" is not registered on worker 0 of L4/0, but on 5'):
                w4.run(lambda orch, args, config: orch.submit_next_level(handle, s.TaskArgs(), s.CallConfig(), worker=0), s.TaskArgs(), s.CallConfig())
        with self.assertRaisesRegex(GLib.Error, '"steps" can not be imported: write module:qualname'):
            s.RemoteCallable("steps")

    def test_call_config(self):
        config = Pto.seeds.CallConfig(2, 4, enable_pmu=1)
        self.assertEqual((config.block_dim, config.aicpu_thread_num, config.enable_pmu), (2, 4, 1))
        self.assertEqual(Pto.CallConfig(7).block_dim, 7)
        for what, more, words in (((1, 2, 3), {}, "3 values without a name: there are block_dim and aicpu_thread_num"),
                                  ((1,), {"block_dim": 2}, "CallConfig: block_dim is there twice")):
            with self.assertRaisesRegex(TypeError, words):
                Pto.CallConfig(*what, **more)

    def test_memory(self):
        chip = Pto.seeds.ChipWorker()
        chip.init()
        given, back = np.arange(8, dtype="i4"), np.zeros(8, "i4")
        device = chip.malloc(given.nbytes)
        chip.copy_to(device, given.ctypes.data, given.nbytes)
        chip.copy_from(back.ctypes.data, device, back.nbytes)
        chip.free(device)
        self.assertEqual(back.tolist(), given.tolist())
        with self.assertRaises(GLib.Error):
            chip.free(device)
        with self.assertRaisesRegex(GLib.Error, r"8 bytes of this process at address 0 \(NULL\)"):
            chip.copy_to(chip.malloc(8), 0, 8)
        chip.finalize()

    def test_imports(self):
        """Where programs look for the names."""
        import simpler.task_interface
        from gi.repository.Pto.seeds import ChipWorker
        self.assertIs(simpler.task_interface.ChipWorker, ChipWorker)
        self.assertIs(ChipWorker, Pto.seeds.ChipWorker)
        for name in simpler.task_interface.__all__:
            self.assertIs(getattr(simpler.task_interface, name), getattr(Pto.seeds, name))
        # First of all that a program imports.
        for line in ("import gi; gi.require_version('Pto', '1'); from gi.repository.Pto.seeds import ChipWorker",
                     "from simpler.task_interface import *", "import simpler.task_interface; ChipWorker = simpler.task_interface.ChipWorker",
                     "from runtime_builder import RuntimeBuilder as ChipWorker"):
            done = subprocess.run([sys.executable, "-c", f"{line}\nprint(ChipWorker().__class__.__module__)"], capture_output=True,
                                  text=True, timeout=100, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "gi.overrides.PtoSeeds\n", ""))

    def test_compiler(self):
        """Seed 003, the setup phase."""
        compiler = Pto.seeds.KernelCompiler("a2a3sim")
        add = os.path.join(examples, "vector", "kernels", "add.c")
        kernel = compiler.compile_incore(add, "aiv")
        self.assertEqual(kernel.path, add)
        orchestration = compiler.compile_orchestration("tensormap_and_ringbuffer", os.path.join(ADD, "add_orch.c"))
        self.assertIsInstance(orchestration, Pto.seeds.ChipCallable)
        with self.assertRaisesRegex(GLib.Error, "no such file"):
            compiler.compile_incore(add + "x")


@HAS_COMPILER
class HostBinaries(unittest.TestCase):
    """Seed 004: what is refused, and what a host binary's own code does wrong."""

    def setUp(self):
        self.addCleanup(GLib.unsetenv, "PTO_TEST_HOST")
        self.directory = tempfile.mkdtemp(prefix="pto-seeds-")
        self.addCleanup(shutil.rmtree, self.directory)

    def compiled(self, text):
        from binary_compiler import BinaryCompiler
        with open(os.path.join(self.directory, "maker.cpp"), "w", encoding="utf-8") as file:
            file.write('#include "device_runner.h"\n' + text)
        return BinaryCompiler().compile("host", [], [self.directory])

    @classmethod
    def setUpClass(cls):
        from binary_compiler import BinaryCompiler
        from bindings import bind_host_binary
        cls.Runtime = bind_host_binary(BinaryCompiler().compile("host", [], [os.path.join(OWN, "wrong")]))

    def initialize(self, how):
        """What the host binary's own code does is said by the environment."""
        GLib.setenv("PTO_TEST_HOST", how, True)
        runtime = self.Runtime()
        runtime.initialize()
        return runtime

    def test_compiler(self):
        from binary_compiler import BinaryCompiler
        compiler = BinaryCompiler()
        missing = os.path.join(self.directory, "missing")
        for error, words, arguments in (
                (ValueError, "there is no target 'device': 'host', 'aicpu' and 'aicore' are", ("device",)),
                (FileNotFoundError, f"include_dirs: {missing}: no such directory", ("aicore", [missing])),
                (FileNotFoundError, f"source_dirs: {missing}: no such directory", ("aicore", [], [missing])),
                (TypeError, "include_dirs='.*': a list of directories is wanted", ("aicore", self.directory)),
                (TypeError, "include_dirs=None: a list of directories is wanted", ("host", None, None)),
                (TypeError, r"source_dirs=\[None\]: a list of directories is wanted", ("host", [], [None])),
                (FileNotFoundError, f"host: no source in {self.directory}", ("host", [], [self.directory]))):
            with self.subTest(words=words), self.assertRaisesRegex(error, words):
                compiler.compile(*arguments)
        for text, words in (("int x = y;", r"maker.cpp:2:9: error: .y. was not declared"), ("", "undefined reference to")):
            with self.subTest(words=words), self.assertRaisesRegex(RuntimeError, words) as caught:
                self.compiled(text)
            self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_binding(self):
        from bindings import bind_host_binary
        for what in (b"", b"a2a3sim", "text"):
            with self.assertRaisesRegex(ValueError, "this is no host binary"):
                bind_host_binary(what)
        with open(sys.executable, "rb") as file, self.assertRaises((RuntimeError, ValueError)):
            bind_host_binary(file.read())

    def test_own_code(self):
        from bindings import DeviceRunner, launch_runtime
        for how, words in (("gives", r"InitRuntime: InitRuntimeImpl\(\) has given 3"),
                           ("throws", "InitRuntime: my own words"),
                           ("throws 3", "InitRuntime: something was thrown that is no std::exception"),
                           ("edge", "InitRuntime: there is no task 1 of 0")):
            with self.subTest(how=how), self.assertRaisesRegex(RuntimeError, words):
                self.initialize(how)
        runtime = self.Runtime()
        for call in (runtime.finalize, lambda: launch_runtime(runtime)):
            with self.assertRaisesRegex(RuntimeError, "not initialized, or was finalized"):
                call()
        runtime = self.initialize("task")
        with self.assertRaisesRegex(RuntimeError, "initialized already"):
            runtime.initialize()
        for more, words in (({}, "launch_runtime: run: task 0: there is no kernel 5"),
                            ({"block_dim": 0}, "block_dim 0: at least 1 is wanted"),
                            ({"aicpu_thread_num": 0}, "launch_aicpu_num 0: at least 1 is wanted"),
                            ({"device_id": 5}, "the chip is device 0, a a2a3sim, already")):
            with self.subTest(words=words), self.assertRaisesRegex(RuntimeError, words):
                launch_runtime(runtime, **more)
        for words, call in (("runtime=None: one that bind_host_binary", lambda: launch_runtime(None)),
                            ("runtime_class=None: the class that bind_host", lambda: DeviceRunner(None)),
                            ("aicpu_thread_num=None: an integer is wanted", lambda: launch_runtime(runtime, None)),
                            ("block_dim='1': an integer is wanted", lambda: launch_runtime(runtime, 1, "1")),
                            ("launch_aicpu_num=None: an integer", lambda: DeviceRunner(self.Runtime).run(runtime, None)),
                            ("runtime=5: one that bind_host_binary", lambda: DeviceRunner(self.Runtime).run(5)),
                            ("device_id=None: an integer is wanted", lambda: DeviceRunner(self.Runtime).init(None, 3, b"", b"")),
                            ("pto_isa_root=5: a directory", lambda: DeviceRunner(self.Runtime).init(0, 3, b"", b"", 5))):
            with self.subTest(words=words), self.assertRaisesRegex(TypeError, words):
                call()
        with self.assertRaisesRegex(ValueError, "device_id=4294967296: it does not fit in 32 bits"):
            launch_runtime(runtime, device_id=2**32)
        with self.assertRaisesRegex(TypeError, "aicpu_binary: str: bytes are wanted"):
            launch_runtime(runtime, aicpu_binary="a2a3sim")
        with self.assertRaisesRegex(RuntimeError, r"FinalizeRuntimeImpl\(\) has given 2"):
            runtime.finalize()
        DeviceRunner(self.Runtime).finalize()

    def test_runner(self):
        """Seed 004, "Runtime Configuration"."""
        from bindings import DeviceRunner
        runner = DeviceRunner(self.Runtime)
        text = RUNNER_INIT.replace("aicpu_binary=...", "aicpu_binary=aicpu").replace("aicore_binary=...", "aicore_binary=aicore")
        names = {"runner": runner, "aicpu": b"host_build_graph", "aicore": b"a2a3sim"}
        with self.assertRaisesRegex(RuntimeError, "pto_isa_root /path/to/pto-isa: no such directory"):
            exec(text, names)
        exec(text.replace("/path/to/pto-isa", self.directory), names)
        runtime = self.initialize("nothing")
        runner.run(runtime)
        runtime.finalize()
        runner.finalize()


tap.main()
