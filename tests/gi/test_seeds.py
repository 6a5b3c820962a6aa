# test_seeds.py: do the listings of the founding documents run as they are written there?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A listing is a text here, and is run as it stands. What it leaves open stands before it, in the test.
import ast
import mmap
import os
import sys
import types
import unittest

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

    def test_chip_worker(self):
        bins = Pto.seeds.RuntimeBuilder("a5sim").get_binaries("tensormap_and_ringbuffer")
        a, b, c = (np.full(10000, value, "f4") for value in (2, 3, 0))
        args = Pto.seeds.ChipStorageTaskArgs()
        for array, tag in ((a, Pto.seeds.IN), (b, Pto.seeds.IN), (c, Pto.seeds.OUTPUT_EXISTING)):
            args.add_tensor(Pto.seeds.make_ct(array), tag)
        names = {"bins": bins, "callable": Pto.Callable.chip(ADD), "args": args}
        package = types.ModuleType("simpler")
        sys.modules["simpler"], sys.modules["simpler.task_interface"] = package, Pto.seeds
        try:
            exec(CHIP_WORKER, names)
        finally:
            del sys.modules["simpler"], sys.modules["simpler.task_interface"]
        self.assertTrue((c == 5).all())
        self.assertEqual(names["worker"].worker.platform, "a5sim")

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
        with self.assertRaisesRegex(ValueError, "no runtime 'other'"):
            s.RuntimeBuilder("a2a3sim").get_binaries("other")
        with self.assertRaisesRegex(GLib.Error, "the chip itself"):
            s.RuntimeBuilder(platform="a2a3")
        with self.assertRaisesRegex(ValueError, "device_id=16: there are 0 to 15"):
            s.ChipWorker().init(device_id=16)

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


tap.main()
