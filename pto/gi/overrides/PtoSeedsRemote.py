# PtoSeedsRemote.py: by which other names does seed 001 call what is remote?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Parts of Pto.seeds: a worker that is added by a specification and named by its id, memory there behind handles, and tensors in
# it, whose handles are looked at once more when they are submitted.
import ctypes
import types

from . import Pto
from . import PtoChecks as _checks
from . import PtoFunctions as _functions
from . import PtoSerialized as _serialized
from .PtoTensors import dtype_of
from .PtoText import _, shown

_library = Pto.Pto
_INPUT, _REMOTE_CALLABLES = _library.Direction.INPUT, ("PYTHON_IMPORT", "CHIP_CALLABLE", "PYTHON_SERIALIZED", "LIBRARY_SYMBOL")
PYTHON_IMPORT, CHIP_CALLABLE, PYTHON_SERIALIZED, LIBRARY_SYMBOL = _REMOTE_CALLABLES
RUNTIME = "tensormap_and_ringbuffer"
DEVICES = 16


def RemoteCallable(target, kind=PYTHON_IMPORT, worker_type=Pto.NEXT_LEVEL):
    """What worker.register(it, workers=[...]) makes known to remote workers: "module:qualname" in the directories that they import
    from; CHIP_CALLABLE: a chip's orchestration or its directory, which is sent, for their chips; PYTHON_SERIALIZED: a function, as
    bytes, if both ends take these; LIBRARY_SYMBOL: "library:symbol", a library that is sent. worker_type: SUB: it is for SUB workers."""
    if kind not in _REMOTE_CALLABLES:
        raise ValueError(_("RemoteCallable: there is no kind {kind}: {kinds} are").format(kind=shown(kind), kinds=", ".join(_REMOTE_CALLABLES)))
    if worker_type not in (Pto.NEXT_LEVEL, Pto.SUB):
        raise ValueError(_("RemoteCallable: worker_type={value}: NEXT_LEVEL or SUB is wanted").format(value=shown(worker_type)))
    if kind == CHIP_CALLABLE:
        return target if isinstance(target, Pto.ChipOrchestration) else Pto.Callable.chip(target)
    runs_as = _library.CallableKind.SUB if worker_type == Pto.SUB else _library.CallableKind.ORCHESTRATION
    if kind == PYTHON_SERIALIZED:
        if not isinstance(target, types.FunctionType):
            raise TypeError(_("RemoteCallable: {target} is no function of Python, which alone is sent as bytes").format(target=shown(target)))
        made = Pto.Callable.function(target, runs_as)
        _serialized.give_path(made, target, lambda found: None if found is target else _functions.import_path(found))
        return made
    if not isinstance(target, str):
        raise TypeError(_("RemoteCallable: {target} is no text: \"module:qualname\" is wanted").format(target=shown(target)))
    of = _library.ImportedFunction.new if kind == PYTHON_IMPORT else _library.ImportedFunction.new_for_symbol
    return of(runs_as, target)


class RemoteWorkerSpec:
    """What Worker.add_remote_worker() is told of a worker: how it is launched or where it listens, as Pto.Worker.add_remote_worker()
    has addresses; as many chips as there are device_ids; worker_id, or the lowest that is free. options: the others of that function."""

    def __init__(self, endpoint, platform=None, runtime=RUNTIME, device_ids=(), num_sub_workers=0, worker_id=None, **options):
        if not isinstance(endpoint, str):
            raise TypeError(_("RemoteWorkerSpec: endpoint={value}: an address is wanted, as \"ssh://host\"").format(value=shown(endpoint)))
        if runtime != RUNTIME:
            raise ValueError(_("RemoteWorkerSpec: runtime={value}: chips of a remote worker run {runtime}").format(
                value=shown(runtime), runtime=RUNTIME))
        ids = _checks.integers(device_ids, "RemoteWorkerSpec: device_ids", 0, DEVICES - 1)
        if len(set(ids)) < len(ids):
            raise ValueError(_("RemoteWorkerSpec: device_ids={ids}: one of them is there twice").format(ids=ids))
        self.endpoint, self.platform, self.runtime, self.device_ids = endpoint, platform, runtime, tuple(ids)
        self.num_sub_workers, self.worker_id, self.options = num_sub_workers, worker_id, options


class RemoteBufferHandle:
    """Memory of a remote worker, which Worker.remote_malloc() gives, until Worker.remote_free()."""

    def __init__(self, worker_id, buffer):
        self.worker_id, self.nbytes, self._buffer = worker_id, buffer.get_size(), buffer

    @property
    def released(self):
        """Was it freed?"""
        return self._buffer is None

    @property
    def buffer(self):
        """What it is in Pto."""
        if self._buffer is None:
            raise ValueError(_("{n} bytes at remote worker {id}: they were freed by remote_free()").format(n=self.nbytes, id=self.worker_id))
        return self._buffer

    def __repr__(self):
        return f"<RemoteBufferHandle: {self.nbytes} bytes at worker {self.worker_id}{', freed' if self.released else ''}>"


class RemoteTensorRef:
    """A tensor in memory of a remote worker: where it is, not what is in it."""

    def __init__(self, handle, offset=0, shape=None, dtype="f4"):
        if not isinstance(handle, RemoteBufferHandle):
            raise TypeError(_("{handle} is no RemoteBufferHandle: Worker.remote_malloc() gives one").format(handle=shown(handle)))
        if shape is None:
            raise TypeError(_("RemoteTensorRef: it has no shape: RemoteTensorRef(handle, shape=(1024,), dtype=\"f4\")"))
        self.handle, self.dtype = handle, dtype_of(dtype)
        self.offset = _checks.integer(offset, "RemoteTensorRef: offset", 0, 2**64 - 1)
        self.shape = tuple(_checks.integers(shape, "RemoteTensorRef: shape", 1, 2**32 - 1))
        self.tensor()

    def tensor(self):
        """What it is in Pto; what was freed, or does not fit, is refused."""
        return Pto.Tensor.new_for_buffer(self.handle.buffer, self.offset, self.dtype, self.shape)

    def __array__(self, *_args, **_choices):
        raise TypeError(_("a RemoteTensorRef is memory of a remote worker, and goes into RemoteTaskArgs"))


class RemoteTaskArgs:
    """TaskArgs with RemoteTensorRefs: each is a tensor without memory among the TaskArgs, and says at the same index where it is.
    Other tensors are copied there, as ever."""

    def __init__(self):
        self._args, self._sidecars, self._scalars = Pto.TaskArgs(), [], []

    def add_tensor(self, tensor, tag=_INPUT):
        """A RemoteTensorRef, a tensor or an array."""
        ref = tensor if isinstance(tensor, RemoteTensorRef) else None
        self._args.add_tensor(Pto.Tensor.new(ref.dtype, ref.shape) if ref is not None else tensor, tag)
        self._sidecars.append(ref)

    def add_scalar(self, value):
        """A number."""
        self._args.add_scalar(value)
        self._scalars.append(value)

    def sidecar(self, index):
        """Where that tensor is: a RemoteTensorRef; None: here."""
        self.tag(index)
        return self._sidecars[index]

    def tag(self, index):
        """What is done with a tensor."""
        return self._args.tag(index)

    def view(self):
        """What they hold, without the tags: what is remote has no memory."""
        return self._args.view()

    tensor_count = property(lambda self: self._args.tensor_count)
    scalar_count = property(lambda self: self._args.scalar_count)

    def __iter__(self):
        """As arguments of a submit, which is when memory that was freed meanwhile is refused."""
        for i, ref in enumerate(self._sidecars):
            yield self._args.get_tensor(i) if ref is None else ref.tensor(), self._args.tag(i)
        yield from self._scalars


class Worker(Pto.Worker):
    """Pto.Worker, with what seed 001 says of remote workers, which it names by their ids."""

    __gtype__ = Pto.Worker.__gtype__  # which is final: of the same type, for Python another class

    def add_remote_worker(self, spec, **options):
        """Puts the worker of a RemoteWorkerSpec below this one, and gives its id; get_child(id) is the worker itself. With an address,
        as Pto.Worker has it."""
        if not isinstance(spec, RemoteWorkerSpec):
            return super().add_remote_worker(spec, **options)
        return super().add_remote_worker(spec.endpoint, devices=len(spec.device_ids), sub_workers=spec.num_sub_workers,
                                         platform=spec.platform, id=spec.worker_id, **spec.options, **options).get_id()

    def _remote(self, id_):
        id_ = _checks.integer(id_, "worker")
        remote = self.get_child(id_) if id_ >= 0 else None
        if remote is None or remote.dup_remote_address() is None:
            raise ValueError(_("{path} has no remote worker {id}: Worker.add_remote_worker() gives an id").format(path=self.dup_path(), id=id_))
        return remote

    def register(self, what, cancellable=None, *, workers=None, **choices):
        """As Pto.Worker has it. What is for chips is registered where remote workers find it, by their Worker.lookup(name): on each of
        those that are named, or on none."""
        if workers is None or not isinstance(what, Pto.ChipOrchestration):
            return super().register(what, cancellable, workers=workers, **choices)
        ids = self._ids([workers] if isinstance(workers, (int, Pto.Worker)) else workers)
        if not any(child.dup_remote_address() is not None for child in self.get_children() if child.get_id() in ids):
            return super().register(what, cancellable, workers=ids, **choices)
        done = []
        try:
            for remote in map(self._remote, ids):
                done.append((remote, remote.register(what, cancellable, **choices)))
        except Exception:
            for remote, handle in done:
                remote.unregister(handle)
            raise
        return done[0][1]

    def remote_malloc(self, worker, nbytes):
        """Memory of the remote worker with that id, of zeros."""
        remote = self._remote(worker)
        return RemoteBufferHandle(remote.get_id(), remote.alloc_buffer(_checks.integer(nbytes, "nbytes")))

    def _buffer(self, handle):
        if not isinstance(handle, RemoteBufferHandle):
            raise TypeError(_("{handle} is no RemoteBufferHandle: Worker.remote_malloc() gives one").format(handle=shown(handle)))
        buffer = handle.buffer
        if buffer.get_worker() != self.get_child(handle.worker_id):
            raise ValueError(_("{handle} is not of {path}, but of {other}").format(
                handle=shown(handle), path=self.dup_path(), other=buffer.get_worker().dup_path()))
        return buffer

    def remote_free(self, handle):
        """Gives memory back, when the tasks that use it are done, and no graph that was captured with it is left."""
        self._buffer(handle)
        handle._buffer = None  # runs and graphs that have a tensor in it keep it

    def remote_copy_to(self, handle, host, nbytes, offset=0):
        """From an array, or an address of this process, to memory of a remote worker."""
        buffer = self._buffer(handle)
        if isinstance(host, int):
            return buffer.get_worker().copy_to_address(buffer.get_address() + offset, host, nbytes)
        return buffer.write(offset, _here(host, nbytes, "remote_copy_to").tobytes()[:nbytes])

    def remote_copy_from(self, handle, host, nbytes, offset=0):
        """From memory of a remote worker to an array that can be written, or to an address of this process."""
        buffer = self._buffer(handle)
        if isinstance(host, int):
            return buffer.get_worker().copy_from_address(host, buffer.get_address() + offset, nbytes)
        _here(host, nbytes, "remote_copy_from")
        ctypes.memmove((ctypes.c_char * nbytes).from_buffer(host), buffer.read(offset, nbytes), nbytes)
        return True


def _here(host, nbytes, where):
    view = memoryview(host)
    if not 0 <= nbytes <= view.nbytes:
        raise ValueError(_("{where}: {n} bytes are wanted, and there are {there} here").format(where=where, n=nbytes, there=view.nbytes))
    return view
