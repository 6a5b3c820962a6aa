# PtoSeeds.py: by which other names do the founding documents call what is here?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Pto.seeds: the Python of seeds 001 and 003, so that programs written after them run as they are. Everything here is
# something of Pto under another name, but for the chip of its own (ChipWorker), which a thin cover makes of a worker, and what is
# remote (PtoSeedsRemote.py).
import os
import types

from . import Pto
from .PtoSeedsRemote import (CHIP_CALLABLE, DEVICES as _DEVICES, LIBRARY_SYMBOL, PYTHON_IMPORT, PYTHON_SERIALIZED,  # noqa: F401, for programs
                             RemoteBufferHandle, RemoteCallable, RemoteTaskArgs, RemoteTensorRef, RemoteWorkerSpec, RUNTIME, Worker)
from .PtoText import _, shown

TaskArgs, CallConfig = Pto.TaskArgs, Pto.CallConfig
ContinuousTensor, ChipStorageTaskArgs = Pto.Tensor, Pto.TaskArgs
Orchestrator, TaskArgsView = Pto.Orchestrator, Pto.TaskArgsView
_library = Pto.Pto
CallableHandle, ChipCallable = _library.CallableHandle, Pto.ChipOrchestration
TensorArgType = _library.Direction
IN, OUT, INOUT = TensorArgType.INPUT, TensorArgType.OUTPUT, TensorArgType.INOUT
OUTPUT_EXISTING, NO_DEP = TensorArgType.OUTPUT_EXISTING, TensorArgType.NO_DEP
PROCESS, THREAD = _library.ChildMode.PROCESS, _library.ChildMode.THREAD
NEXT_LEVEL, SUB = Pto.NEXT_LEVEL, Pto.SUB
HOST_GRAPH = "host_build_graph"  # the whole graph is built, then launched
RUNTIMES = (RUNTIME, HOST_GRAPH, "aicpu_build_graph")


def _device(device_id):
    if isinstance(device_id, bool) or not isinstance(device_id, int):
        raise TypeError(_("device_id={device} is no integer").format(device=shown(device_id)))
    if not 0 <= device_id < _DEVICES:
        raise ValueError(_("device_id={device}: there are 0 to {most}").format(device=device_id, most=_DEVICES - 1))
    return device_id


def _platform(platform):
    platform = _path("platform", platform)
    _library.Platform.lookup(platform)
    return platform


def _path(what, path):
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(_("{what}={value}: a name or a path is wanted").format(what=what, value=shown(path)))
    return os.fspath(path)


def make_ct(array):
    """A tensor of an array, whose memory it keeps."""
    return ContinuousTensor.of(array)


class RuntimeBuilder:
    """What a chip runs on. Of a chip that is simulated the programs are in libpto: what stands for them are the names of
    the runtime and of the platform, as libpto-seeds takes them, too."""

    def __init__(self, platform="a2a3sim"):
        self.platform = _platform(platform)

    def get_binaries(self, runtime_name=RUNTIME):
        """What ChipWorker.init() and the seeds' other programs take as bins."""
        if runtime_name not in RUNTIMES:
            raise ValueError(_("there is no runtime {name}: {names} are").format(
                name=shown(runtime_name), names=", ".join(map(repr, RUNTIMES))))
        return types.SimpleNamespace(platform=self.platform, runtime=runtime_name, host="libpto-seeds-1.so.0",
                                     aicpu=runtime_name.encode(), aicore=self.platform.encode())


class KernelCompiler:
    """Compiles with the compiler of kernels here: what it gives has been built, and lies in the cache."""

    def __init__(self, platform="a2a3sim"):
        _platform(platform)

    @staticmethod
    def compile_incore(source, core_type="aiv"):
        """A kernel of a source, compiled."""
        kernel = Pto.Callable.kernel(_path("source", source), core_type)
        kernel.build()
        return kernel

    @staticmethod
    def compile_orchestration(runtime_name, source):
        """The orchestration of a source, compiled; kernels are added to it."""
        RuntimeBuilder().get_binaries(runtime_name)
        orchestration = ChipCallable.new(_path("source", source), None)
        orchestration.build()
        return orchestration


class ChipWorker:
    """One chip: a worker of level 2, which Worker.add_worker() takes, too."""

    def __init__(self):
        self.worker = Worker(level=2)
        self.runtime = RUNTIME
        self.handles = {}
        self.ended = False

    def init(self, device_id=0, bins=None):
        """Begins, also once more after finalize(): then as if it had just been made."""
        _device(device_id)
        if bins is not None:
            if any(not isinstance(getattr(bins, name, None), str) for name in ("platform", "runtime")):
                raise TypeError(_("bins={bins}: what RuntimeBuilder(platform).get_binaries() gives is wanted").format(bins=shown(bins)))
        if self.ended:
            ChipWorker.__init__(self)
        if bins is not None:
            self.runtime = bins.runtime
        platform = bins.platform if bins is not None else self.worker.platform
        if (platform, device_id) != (self.worker.platform, self.worker.get_device_id()):
            self.worker = Worker(level=2, platform=platform, device_id=device_id)
        self.worker.start()

    def _known(self, callable_):
        """A callable is registered at its first run; a handle, or a function that submits, is run as it is."""
        if not isinstance(callable_, _library.Callable):
            return callable_
        if callable_ not in self.handles:
            self.handles[callable_] = self.worker.register(callable_)
        return self.handles[callable_]

    def run(self, callable_, args=None, config=None):
        """On the runtime host_build_graph the whole graph is built, and then launched."""
        what, args = self._known(callable_), args if args is not None else TaskArgs()
        if self.runtime == HOST_GRAPH:
            # The graph is the host's, so one thread is enough: it schedules, beside the one that launches.
            if config is not None and config.get_aicpu_thread_num() == 1:
                config = config.copy()
                config.set_aicpu_thread_num(2)
            what = self.worker.capture(what, args, config)
        return self.worker.run(what, args, config)

    def malloc(self, size):
        """The address of as many bytes of the chip's memory."""
        return self.worker.malloc(size)

    def free(self, device):
        """Gives them back."""
        return self.worker.free(device)

    def copy_to(self, device, host, size):
        """From an address of this process to one of the chip."""
        return self.worker.copy_to_address(device, host, size)

    def copy_from(self, host, device, size):
        """From an address of the chip to one of this process."""
        return self.worker.copy_from_address(host, device, size)

    def finalize(self):
        """Gives the chip back, with all that was registered; init() begins again."""
        self.worker.close()
        self.ended = True
