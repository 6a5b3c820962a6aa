# PtoSeeds.py: by which other names do the founding documents call what is here?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Pto.seeds: the Python of seeds 001 and 003, so that programs written after them run as they are. Everything here is
# something of Pto under another name, but for the chip of its own (ChipWorker), which a thin cover makes of a worker.
import os
import types

from . import Pto

Worker, TaskArgs, CallConfig = Pto.Worker, Pto.TaskArgs, Pto.CallConfig
ContinuousTensor, ChipStorageTaskArgs = Pto.Tensor, Pto.TaskArgs
Orchestrator, TaskArgsView = Pto.Orchestrator, Pto.TaskArgsView
_library = Pto.Pto
CallableHandle, ChipCallable = _library.CallableHandle, _library.ChipOrchestration
TensorArgType = _library.Direction
IN, OUT, INOUT = TensorArgType.INPUT, TensorArgType.OUTPUT, TensorArgType.INOUT
OUTPUT_EXISTING, NO_DEP = TensorArgType.OUTPUT_EXISTING, TensorArgType.NO_DEP
PROCESS, THREAD = _library.ChildMode.PROCESS, _library.ChildMode.THREAD
NEXT_LEVEL, SUB = Pto.NEXT_LEVEL, Pto.SUB
RUNTIME = "tensormap_and_ringbuffer"
_DEVICES = 16


def make_ct(array):
    """A tensor of an array, whose memory it keeps."""
    return ContinuousTensor.of(array)


class RuntimeBuilder:
    """What a chip runs on: its binaries are in the library, so only their names are told."""

    def __init__(self, platform="a2a3sim"):
        _library.Platform.lookup(platform)
        self.platform = platform

    def get_binaries(self, runtime_name=RUNTIME):
        if runtime_name != RUNTIME:
            raise ValueError(f"there is no runtime {runtime_name!r}: {RUNTIME!r} is")
        return types.SimpleNamespace(platform=self.platform, runtime=runtime_name)


class KernelCompiler:
    """Compiles with the compiler of kernels here: what it gives has been built, and lies in the cache."""

    def __init__(self, platform="a2a3sim"):
        _library.Platform.lookup(platform)

    @staticmethod
    def compile_incore(source, core_type="aiv"):
        kernel = Pto.Callable.kernel(os.fspath(source), core_type)
        kernel.build()
        return kernel

    @staticmethod
    def compile_orchestration(runtime_name, source):
        RuntimeBuilder().get_binaries(runtime_name)
        orchestration = ChipCallable.new(os.fspath(source), None)
        orchestration.build()
        return orchestration


class ChipWorker:
    """One chip: a worker of level 2, which Worker.add_worker() takes, too."""

    def __init__(self):
        self.worker = Worker(level=2)
        self.handles = {}

    def init(self, device_id=0, bins=None):
        if not 0 <= device_id < _DEVICES:
            raise ValueError(f"device_id={device_id}: there are 0 to {_DEVICES - 1}")
        if bins is not None and bins.platform != self.worker.platform:
            self.worker = Worker(level=2, platform=bins.platform)
        self.worker.start()

    def run(self, callable_, args=None, config=None):
        """A callable is registered at its first run; a handle, or a function that submits, is run as it is."""
        what = callable_
        if isinstance(callable_, _library.Callable):
            if callable_ not in self.handles:
                self.handles[callable_] = self.worker.register(callable_)
            what = self.handles[callable_]
        return self.worker.run(what, args if args is not None else TaskArgs(), config)

    def finalize(self):
        self.worker.close()
