# task_interface.py: by which names do seeds 001 and 003 call what is here? Pto.seeds says it; this is where programs look.
# SPDX-License-Identifier: LGPL-2.1-or-later
import gi

gi.require_version("Pto", "1")
from gi.repository.Pto.seeds import (CallableHandle, CallConfig, ChipCallable, ChipStorageTaskArgs, ChipWorker,  # noqa: E402
                                     CHIP_CALLABLE, ContinuousTensor, IN, INOUT, KernelCompiler, LIBRARY_SYMBOL, NEXT_LEVEL,
                                     NO_DEP, Orchestrator, OUT, OUTPUT_EXISTING, PROCESS, PYTHON_IMPORT, PYTHON_SERIALIZED,
                                     RemoteBufferHandle, RemoteCallable, RemoteTaskArgs, RemoteTensorRef, RemoteWorkerSpec,
                                     RuntimeBuilder, SUB, TaskArgs, TaskArgsView, TensorArgType, THREAD, Worker, make_ct)

__all__ = ["CallableHandle", "CallConfig", "CHIP_CALLABLE", "ChipCallable", "ChipStorageTaskArgs", "ChipWorker",
           "ContinuousTensor", "IN", "INOUT", "KernelCompiler", "LIBRARY_SYMBOL", "NEXT_LEVEL", "NO_DEP", "Orchestrator", "OUT",
           "OUTPUT_EXISTING", "PROCESS", "PYTHON_IMPORT", "PYTHON_SERIALIZED", "RemoteBufferHandle", "RemoteCallable",
           "RemoteTaskArgs", "RemoteTensorRef", "RemoteWorkerSpec", "RuntimeBuilder", "SUB", "TaskArgs", "TaskArgsView",
           "TensorArgType", "THREAD", "Worker", "make_ct"]
