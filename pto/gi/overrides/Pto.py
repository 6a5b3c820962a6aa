# Pto.py: what does Python expect of the library beyond what its introspection data gives?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arrays as tensors, functions as callables, exceptions, os.fork and Ctrl-C. What works through plain PyGObject works
# here, too, but for the order of what run() is given.
from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import json
import numbers
import os
import sys
import types
import weakref

from gi.overrides import override
from gi.repository import Gio, GLib, GObject

from ..module import get_introspection_module

GLib.quark_from_string("pto-python-override")  # or the library says, at the first type, that this file was not found
Pto = get_introspection_module("Pto")
from . import PtoDocstrings  # noqa: E402, F401, before what copies them
from . import PtoArguments as _arguments  # noqa: E402, they ask for types
from . import PtoAwaits as _awaits  # noqa: E402
from . import PtoChecks as _checks  # noqa: E402
from . import PtoDecorators as _decorators  # noqa: E402
from . import PtoEnums as _enums  # noqa: E402
from . import PtoErrors as _errors  # noqa: E402
from . import PtoExceptions as _exceptions  # noqa: E402
from . import PtoFunctions as _functions  # noqa: E402
from . import PtoGraphs as _graphs  # noqa: E402
from . import PtoProgress as _progress  # noqa: E402
from . import PtoRemote as _remote  # noqa: E402
from . import PtoSerialized as _serialized  # noqa: E402
from . import PtoTensors as _tensors  # noqa: E402
from . import PtoTraces as _traces  # noqa: E402
from .PtoInterrupts import fork as _fork_own, interruptible as _interruptible  # noqa: E402
from .PtoText import N_, _, shown  # noqa: E402

__all__ = []


def _export(type_):
    type_.__module__ = __name__  # the namespace that it is of, whichever file it is in
    type_ = override(_errors.suggest_in(type_))
    __all__.append(type_.__name__)
    return type_


Buffer, Tensor = _export(_tensors.Buffer), _export(_tensors.Tensor)
TaskArgs, CallConfig, TaskArgsView = _export(_arguments.TaskArgs), _export(_arguments.CallConfig), _arguments.TaskArgsView
Callable = _export(_functions.Callable)
Orchestrator, Graph = _export(_graphs.Orchestrator), _export(_graphs.Graph)
Trace, Costs = _export(_traces.Trace), _export(_traces.Costs)
KernelFunction, SubWorkerFunction = _decorators.KernelFunction, _decorators.SubWorkerFunction
kernel, sub = _errors.with_suggestions(_decorators.kernel), _errors.with_suggestions(_decorators.sub)
for _class in KernelFunction, SubWorkerFunction:
    _class.__module__ = __name__
serve_remote = _errors.with_suggestions(_remote.serve_remote)
__all__ += "KernelFunction", "SubWorkerFunction", "kernel", "sub", "serve_remote"
for _class in _errors.classes:
    globals()[_class.__name__] = _class
    __all__.append(_class.__name__)


@_export  # here: a Callable of the override's, which is known by now
class DeviceCode(Pto.DeviceCode):
    """What a chip runs: a kernel, or its orchestration. Made of a source or of an object."""

    def set_include_dirs(self, dirs: _Path | Iterable[_Path] | None) -> None:
        """A list of directories, or one; None: none."""
        Pto.DeviceCode.set_include_dirs(self, _functions.paths(dirs))

    def set_compiler_flags(self, flags: str | Iterable[str] | None) -> None:
        """A list of words, or one text that is split into words as a shell does; None: none. They come behind libpto's own and
        those of CFLAGS or CXXFLAGS, and are stronger."""
        Pto.DeviceCode.set_compiler_flags(self, _functions.words(flags))

    def build(self, cancellable: Gio.Cancellable | None = None) -> bool:
        """Compiles it now, as a registration would: what takes long is done, or refused, before."""
        cancellable = cancellable or Gio.Cancellable()
        with _interruptible(cancellable, types.SimpleNamespace(in_function=False)):
            return Pto.DeviceCode.build(self, cancellable)

    def build_async(self, cancellable: Gio.Cancellable | None = None, callback: _Callback | None = None) -> _Async[bool]:
        """Like build(), in asyncio: await kernel.build_async(). With a callback, in GLib's main loop, as in C."""
        if callback is None:
            return _awaits.await_alone(cancellable := cancellable or Gio.Cancellable(), self.build, cancellable)
        return Pto.DeviceCode.build_async(self, cancellable, lambda it, result, *_: callback(it, result))


@_export  # likewise, of DeviceCode
class ChipOrchestration(Pto.ChipOrchestration):
    """What one chip runs in one task: an orchestration in C or C++, and its kernels."""

    def __init__(self, *what: Any, **more: Any) -> None:
        raise TypeError(_("a chip orchestration is made by Pto.Callable.chip(directory), or ChipOrchestration.new(source, function)"))


def _import(kind, path, *more):
    try:
        found = _remote.resolve(path)
        return found.callable() if isinstance(found, SubWorkerFunction) else Callable.function(found, kind)
    except Exception as exception:
        raise _errors.LoadError(_('"{path}" can not be imported: {why}').format(path=_serialized.shorten(path), why=exception)) from None


_taking_serialized = weakref.WeakKeyDictionary()  # worker -> those below it that take functions as bytes
_runners = weakref.WeakKeyDictionary()  # worker -> the process that made it, an executor with one thread


def _runner(worker):
    """Runs of one worker are one after the other, those of several at once. Threads are not forked."""
    import concurrent.futures  # here: with what it imports it takes a tenth of a program's start
    if _runners.get(worker, (0,))[0] != os.getpid():
        _runners[worker] = os.getpid(), concurrent.futures.ThreadPoolExecutor(1, "pto-runs")
    return _runners[worker][1]


async def _await_run(worker, what, rest, config, cancellable):
    _functions.check_outside(worker)
    if worker.get_state() == Pto.WorkerState.NEW:
        worker.start(cancellable)  # here, not on the thread: forks are best made before there are more
    call = functools.partial(worker.run, what, *rest, config=config, cancellable=cancellable)
    return await _awaits.awaited(_runner(worker), cancellable, call)


# What a function of a worker can not do: said where it is refused.
_NO_WAIT_FOR_CLOSE = N_("an orchestration function can not wait until its own worker is closed: worker.close() ends the run, and the "
                        "worker when the function has returned")
_NO_CLOSE_ON_THREAD = N_("an orchestration function can not wait until its own worker is closed by another thread: worker.close() in "
                         "the function itself ends the run, and the worker when that has returned")
_NO_REGISTRATION_ON_THREAD = N_("an orchestration function can not wait for a registration on another thread: register it in the "
                                "function itself")


async def _await_close(worker):
    _functions.check_outside(worker, _NO_WAIT_FOR_CLOSE)
    return await _awaits.await_alone(None, worker.close)


async def _await_registration(worker, what, cancellable, choices):
    if _functions.is_inside(worker):
        return worker.register(what, cancellable, **choices)  # which may need this thread
    return await _awaits.await_alone(cancellable, worker.register, what, cancellable, undo=worker.unregister, **choices)


def _fork(*_):
    """In the child the forking thread is the only one, and its state must stay: when it is C's, this call would end it on
    its return, and CPython can not make a first one twice."""
    for stream in sys.stdout, sys.stderr:
        with contextlib.suppress(AttributeError, OSError, ValueError):  # none, one that is cut, or closed
            stream.flush()  # or the child would print it once more
    process = _fork_own()
    if process == 0:
        ctypes.pythonapi.PyGILState_Ensure()
    return process


# An interpreter forks itself and imports by itself.
Pto.Worker.set_default_fork_func(_fork)
Pto.Worker.set_default_import_func(_import)


def _names_of(function, given):
    """What an orchestration function calls the arguments that it is given one by one, as far as that can be known."""
    if isinstance(function, Pto.CallableHandle) or any(isinstance(what, (Pto.TaskArgs, Pto.CallConfig)) for what in given):
        return
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]  # but for the orchestrator
    except (TypeError, ValueError):  # as of some that are written in C
        return
    for parameter, _ in zip(parameters, given):
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) or len(parameter.name.encode()) > 100:
            return
        yield parameter.name


def _parameter_text(name, value):
    """A parameter's value, as the library reads it."""
    if isinstance(value, (list, tuple)) and name != "schedule":
        if len(value) == 1:  # of any other length the library says the same
            raise TypeError(_("the parameter {name}: {value}: one value is wanted, or of rings a list of {n} sizes, one for each").format(
                name=name, value=shown(value), n=Pto.N_RINGS))
        return ",".join(map(str, value))
    if not isinstance(value, str) and (name == "schedule" or not isinstance(value, numbers.Number)):
        refusal = (_("the parameter {name}: {value} is no text") if name == "schedule" else
                   _("the parameter {name}: {value} is no number, switch or text"))
        raise TypeError(refusal.format(name=name, value=shown(value)))
    return str(int(value) if isinstance(value, bool) else value)


def _as_parameter(level, parameter, value):
    """The value's text, and why a new worker of that level refuses it, or None."""
    try:
        text = _parameter_text(parameter, value)
        Pto.Worker.set_parameter(Pto.Worker() if level is None else Pto.Worker(level=level), parameter, text)
    except (TypeError, ValueError, OverflowError) as error:
        return None, str(error)
    except GLib.Error as error:
        return None, error.message
    return text, None


def _nearest_of_worker(name, value, properties):
    """"; did you mean ...?" for an argument of a Worker that is none: only what such a worker takes."""
    there = [each.name.replace("-", "_") for each in Pto.Worker.list_properties() if each.flags & GObject.ParamFlags.WRITABLE]
    there = [each for each in (*there, "devices", "sub_workers") if each not in properties]
    parameters = {each: text for each in Pto.Worker.list_parameters() if each != "isolate"
                  for text, refusal in (_as_parameter(properties.get("level"), each, value),) if refusal is None}
    found = _errors.find_nearest(name, [*parameters, *there])
    if found not in parameters:
        return _checks.nearest(name, there)
    return _('; did you mean the parameter: after this, worker.set_parameter("{parameter}", "{value}")?').format(
        parameter=found, value=parameters[found])


NEXT_LEVEL, SUB = "next-level", "sub"  # what a worker below is, as the seeds say it


@_export
class Worker(Pto.Worker):
    """A chip (level 2), a host of several (level 3), or workers of workers. `with` closes it at the end, `async with` starts it, too."""

    def __init__(self, devices: int | None = None, **properties: _Properties) -> None:
        """Properties by their names; devices=2 and sub_workers=1 are numbers of chips and of SUB workers."""
        ids = properties.pop("device_ids", devices if devices is None else range(_checks.integer(devices, "devices")))
        if isinstance(devices, int) and not 0 <= devices <= Pto.MAX_CHILDREN:
            raise ValueError(_("devices={devices}: there are 0 to {most}").format(devices=devices, most=Pto.MAX_CHILDREN))
        if ids is not None:
            properties["device_ids"] = GLib.Variant("au", _checks.integers(ids, "device_ids"))
        for name in ("sub_workers", "num_sub_workers"):
            if name in properties:
                properties["n_sub_workers"] = properties.pop(name)
        for name, value in properties.items():
            if name != "isolate" and (parameter := name.replace("_", "-")) in Pto.Worker.list_parameters():
                text, refusal = _as_parameter(properties.get("level"), parameter, value)
                if refusal is not None:
                    raise TypeError(_("{name} is a parameter: {refusal}").format(name=name, refusal=refusal))
                raise TypeError(_('{name} is a parameter: after this, worker.set_parameter("{parameter}", "{value}")').format(
                    name=name, parameter=parameter, value=text))
        if isinstance(properties.get("platform"), os.PathLike):
            properties["platform"] = os.fspath(properties["platform"])
        for name, value in properties.items():
            property_ = Pto.Worker.find_property(name)
            if property_ is None:
                refusal = _("Pto.Worker has no property {name}").format(name=name)
                raise TypeError(refusal + _nearest_of_worker(name, value, properties))
            if property_ is not None and property_.value_type == GObject.TYPE_UINT:
                properties[name] = _checks.integer(value, name, property_.minimum, property_.maximum)
            elif property_ is not None and property_.value_type.is_a(GObject.TYPE_ENUM):
                properties[name] = _checks.choice(_enums.of_property(property_), value, name)
            elif property_ is not None and property_.value_type == GObject.TYPE_BOOLEAN and not isinstance(value, bool):
                raise TypeError(_("{where}: {value} is neither True nor False").format(where=name, value=shown(value)))
        super().__init__(**properties)

    @property
    def device_ids(self) -> list[int]:
        """Which devices the chips below it are, as they were given."""
        ids = self.props.device_ids
        return [] if ids is None else ids.unpack()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Worker:
        await self.start_async()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()

    def start(self, cancellable: Gio.Cancellable | None = None) -> bool:
        """Makes the machine, and processes for the workers below; a run does it, too."""
        cancellable = cancellable or Gio.Cancellable()
        _decorators.register_subs(self)
        with _interruptible(cancellable, types.SimpleNamespace(in_function=False)):
            return Pto.Worker.start(self, cancellable)

    init = start  # as the seeds call it

    def add_worker(self, *what: Any) -> None:
        """add_worker(worker), or, as the seeds call it, add_worker(NEXT_LEVEL, worker)."""
        if len(what) not in (1, 2) or (len(what) == 2 and what[0] != NEXT_LEVEL):
            raise TypeError(_("add_worker(worker) and add_worker(NEXT_LEVEL, worker) put a worker of a lower level below this one; "
                              "SUB workers are said when it is made: Worker(level=3, num_sub_workers=1)"))
        worker = getattr(what[-1], "worker", what[-1])
        return Pto.Worker.add_worker(self, worker)

    def add_remote_worker(self, address: str, *, devices: int = 0, sub_workers: int = 0, platform: str | None = None,
                          roots: _Path | Iterable[_Path] = (), python: str | None = None, program: str | None = None,
                          certificates: _Path | None = None, launcher: Iterable[str] = (), shell: bool = False,
                          trusted_fabric: str | None = None, id: int | None = None, serialized_python: bool = False) -> Worker:
        """Puts a worker of level 3 below this one that shares no memory: "local:", "ssh://host", "srun://host" or
        "mpirun://host"; "name://host" with the words of a launcher, of which "%h" is the host (shell: one there reads the rest);
        or where pto-remote listens, "tls://host:port" with the directory of certificates, or "unix:/path". Functions are imported
        there from the directories in roots, of who listens from those that it was begun with. Register on the worker that this
        gives what they submit: they find it by worker.lookup(name). trusted_fabric="ucx": large tensors go by UCX, which
        knows nobody; who began pto-remote there has to say so, too. id: what it is called by submits and in its path, otherwise
        the lowest number that is free. serialized_python: functions that it can not import are sent to it as bytes, where whoever
        began pto-remote has said --serialized-python, too."""
        address = _checks.text(address, "address")
        remote = Pto.Worker.add_remote_worker(self, address, _remote.options(
            devices, sub_workers, platform, roots, python, program, certificates, address, launcher, shell, trusted_fabric, id,
            serialized_python))
        if serialized_python:
            _taking_serialized.setdefault(self, []).append(remote)
        return remote

    def add_cluster(self, file: _Path | ClusterFile) -> list[Worker]:
        """Puts all remote workers of a cluster file below this one, and gives them, in its order: register on them what they
        submit."""
        if not isinstance(file, Pto.ClusterFile):
            file = Pto.ClusterFile.new(_checks.path(file, "add_cluster: file"))
        before = self.get_n_workers()
        Pto.Worker.add_cluster(self, file)
        return list(self.get_children())[before:]

    def add_remote_job(self, addresses: Iterable[str], *, devices: int = 0, sub_workers: int = 0, platform: str | None = None,
                       roots: _Path | Iterable[_Path] = (), python: str | None = None, program: str | None = None,
                       launcher: Iterable[str] = (), shell: bool = False, trusted_fabric: str | None = None) -> list[Worker]:
        """Puts several workers below this one, as add_remote_worker() does, that are ranks of one MPI job: what stays at them
        (orch.make_tensor_at()) they combine and exchange among themselves."""
        addresses = _checks.texts([addresses] if isinstance(addresses, str) else addresses, "addresses")
        return list(Pto.Worker.add_remote_job(self, addresses, _remote.options(
            devices, sub_workers, platform, roots, python, program, None, "local:" if set(addresses) == {"local:"} else "", launcher, shell, trusted_fabric)))

    def start_async(self, cancellable: Gio.Cancellable | None = None, callback: _Callback | None = None) -> _Async[bool]:
        """Like start(), in asyncio: await worker.start_async(). With a callback, in GLib's main loop, as in C."""
        if callback is None:
            return _awaits.await_alone(cancellable := cancellable or Gio.Cancellable(), self.start, cancellable)
        return Pto.Worker.start_async(self, cancellable, lambda worker, result, *_: callback(worker, result))

    def close_async(self, callback: _Callback | None = None) -> _Async[None]:
        """Like close(), in asyncio: await worker.close_async(). With a callback, in GLib's main loop, as in C."""
        if callback is None:
            return _await_close(self)
        return Pto.Worker.close_async(self, lambda worker, result, *_: callback(worker, result))

    @staticmethod
    def _callable(what, idempotent=None):
        if isinstance(what, SubWorkerFunction):
            made = what.callable()
        elif isinstance(what, Pto.Callable):
            made = what
        else:
            made = Callable.function(what)
            made.set_import_path(_functions.import_path(what))
        if idempotent is not None:
            made.set_idempotent(idempotent)
        return made

    def _serialize(self, what, made, workers):
        """What is told to remote workers that take it as bytes, of a function that nobody imports."""
        is_sub = isinstance(made, Pto.SubFunction)  # for SUB workers, of which a remote worker has its own
        named = [worker for worker in self.get_children()
                 if not is_sub and (workers is None or worker in workers or worker.get_id() in workers)]
        if what is made or isinstance(what, SubWorkerFunction) or made.get_import_path() is not None or not any(
                remote in (self, *named) for taking in list(_taking_serialized.values()) for remote in taking):
            return
        _serialized.give_path(made, what, _functions.import_path)

    def _ids(self, workers, what=None):
        ids = []
        for worker in workers:
            if isinstance(worker, Pto.Worker) and what is not None and what.get_kind() == Pto.CallableKind.SUB:
                raise ValueError(_('{worker} is no SUB worker, and "{name}" is for those: workers= names them by their numbers. What is '
                                   "registered on {worker} itself is for the SUB workers below that").format(
                                       worker=worker.dup_path(), name=what.get_name()))
            if isinstance(worker, Pto.Worker) and worker not in list(self.get_children()):
                raise ValueError(_("{worker} is not below {above}: workers= names some that are").format(
                    worker=worker.dup_path(), above=self.dup_path()))
            ids.append(worker.get_id() if isinstance(worker, Pto.Worker) else _checks.integer(worker, "workers"))
        if not ids:
            raise ValueError(_("workers=[] would register it nowhere: leave workers= out for all"))
        return ids

    def register_async(self, what: Callable | _Function, cancellable: Gio.Cancellable | None = None,
                       callback: _Callback | None = None, *, idempotent: bool | None = None,
                       workers: Iterable[int | Worker] | None = None) -> _Async[CallableHandle]:
        """Like register(), in asyncio: await worker.register_async(it). With a callback, in GLib's main loop, as in C: on all
        workers."""
        if callback is None:
            return _await_registration(self, what, cancellable or Gio.Cancellable(), {"idempotent": idempotent, "workers": workers})
        if workers is not None:
            raise TypeError(_("workers= and a callback do not go together: await register_async(what, workers=...)"))
        return Pto.Worker.register_async(self, self._callable(what, idempotent), cancellable,
                                         lambda worker, result, *_: callback(worker, result))

    def register(self, what: Callable | _Function, cancellable: Gio.Cancellable | None = None, *, idempotent: bool | None = None,
                 workers: Iterable[int | Worker] | None = None) -> CallableHandle:
        """Makes something known to the worker and all below it, so that tasks can run it: a callable, or a function. workers:
        only to those of them, by their ids or themselves, and tasks of it go to nobody else. idempotent=True: to run a task of
        it more than once does no harm, so one that is lost with its worker is run again."""
        if self.get_level() > 2:  # children are told by the thread of the run
            _functions.check_outside(self, _NO_REGISTRATION_ON_THREAD, on_other_thread=True)
        function, what = what, self._callable(what, idempotent)
        workers = [workers] if isinstance(workers, (int, Pto.Worker)) else workers if workers is None else list(workers)
        self._serialize(function, what, workers)
        cancellable = cancellable or Gio.Cancellable()
        with _interruptible(cancellable, types.SimpleNamespace(in_function=False)):
            if workers is None:
                return Pto.Worker.register(self, what, cancellable)
            return Pto.Worker.register_on(self, what, self._ids(workers, what), cancellable)

    def set_parameter(self, name: str, value: str | float | Sequence[float]) -> bool:
        """Numbers, switches and texts; one of rings may be four numbers, one for each."""
        return Pto.Worker.set_parameter(self, name, _parameter_text(name, value))

    def _plan(self, what, rest, config, cancellable, state, is_capture=False):
        """What is to be run, as a function of a callback or None, its arguments, configuration and cancellable."""
        args, data = None, ()
        if len(rest) in (1, 2) and all(r is None or isinstance(r, t) for r, t in zip(rest, (Pto.TaskArgs, Pto.CallConfig))):
            args, config = rest[0], rest[1] if len(rest) > 1 else config
        elif any(isinstance(r, (Pto.TaskArgs, Pto.CallConfig, Gio.Cancellable)) for r in rest):
            raise TypeError(_("after what is run come its arguments, or one TaskArgs and perhaps a CallConfig; config= and "
                              "cancellable= are given by name"))
        else:
            data = tuple(map(_arguments.given, rest))
            if data and (is_capture or isinstance(what, (Pto.CallableHandle, Pto.Graph))):
                args = TaskArgs(*map(_arguments.untagged, data))
        cancellable = cancellable or Gio.Cancellable()
        if isinstance(what, (Pto.CallableHandle, Pto.Graph)):
            return None, args, config, cancellable
        if not callable(what):
            raise TypeError(_("{what} can not be run: a function can, the handle of what is registered, or a graph").format(what=shown(what)))
        return (_functions.as_callback(what, lambda given: (given[0], *data) if data else given[:3], state, bool(data)),
                args, config, cancellable)

    def _run(self, of_function, of_other, what, rest, config, cancellable, **choices):
        _functions.check_outside(self)
        _decorators.register_subs(self)
        state = types.SimpleNamespace(raised=None, in_function=False)
        call, args, config, cancellable = self._plan(what, rest, config, cancellable, state, **choices)
        try:
            with _interruptible(cancellable, state):
                if call is None:
                    return of_other(self, what, args, config, cancellable)
                return of_function(self, call, None, args, config, cancellable)
        except GLib.Error as caught:
            error = _exceptions.original(caught, state)
        raise error  # out here, so that its own cause stays what it was

    def run(self, what: _Runnable, *rest: Any, config: CallConfig | None = None, cancellable: Gio.Cancellable | None = None) -> bool:
        """run(graph, x, y, ...) calls graph(orch, x, y, ...) with tensors of the arrays; run(graph, task_args, config)
        calls graph(orch, task_args, config). run(handle, x, y, ...) runs what is registered, which may write to the arrays
        that can be written, or to those tagged as in x.read(), y.write_existing(). Exceptions come as they are."""
        other = Pto.Worker.run_graph if isinstance(what, Pto.Graph) else Pto.Worker.run_callable
        return self._run(Pto.Worker.run, other, what, rest, config, cancellable)

    def capture(self, what: _Runnable, *rest: Any, config: CallConfig | None = None,
                cancellable: Gio.Cancellable | None = None) -> Graph:
        """The graph that run(what, x, y, ...) would submit: run(it, x, y, ...) submits it again, with other arrays of the
        same shapes. Nothing is run. Tensors that are submitted lie in these arrays, or are made by the runtime. Arguments of
        the graph are called as the function's parameters are."""
        graph = self._run(Pto.Worker.capture, Pto.Worker.capture_callable, what, rest, config, cancellable, is_capture=True)
        for i, name in enumerate(_names_of(what, rest)):
            graph.set_argument_name(i, name)
        return graph

    def run_async(self, what: _Runnable | None = None, *rest: Any, config: CallConfig | None = None,
                  cancellable: Gio.Cancellable | None = None, callback: _Callback | None = None, func: _Function | None = None,
                  args: TaskArgs | None = None) -> _Async[bool]:
        """Like run(), in asyncio: await worker.run_async(graph, x, y). The graph's function is called on a thread of the
        worker's own. With a callback, in GLib's main loop, like pto_worker_run_async(): both are called there."""
        what = func if what is None else what
        rest = rest or ((args, config) if args is not None else ())
        if callback is None:
            return _await_run(self, what, rest, config, cancellable or Gio.Cancellable())
        state = types.SimpleNamespace(raised=None, in_function=False)
        call, args, config, cancellable = self._plan(what, rest, config, cancellable, state)

        finish = (Pto.Worker.run_graph_finish if isinstance(what, Pto.Graph)
                  else Pto.Worker.run_callable_finish if call is None else Pto.Worker.run_finish)

        def done(worker, result, *_):
            result.pto_state, result.pto_finish = state, finish
            callback(worker, result)

        common = {"args": args, "config": config, "cancellable": cancellable, "callback": done}
        if isinstance(what, Pto.Graph):
            return Pto.Worker.run_graph_async(self, graph=what, **common)
        if call is None:
            return Pto.Worker.run_callable_async(self, handle=what, **common)
        return Pto.Worker.run_async(self, func=call, **common)

    def run_callable_async(self, handle: CallableHandle, *rest: Any, **choices: Any) -> Any:
        """As run_async()."""
        return self.run_async(handle, *rest, **choices)

    def run_finish(self, result: Gio.AsyncResult) -> bool:
        """Of every run that run_async() has begun, whatever was run."""
        try:
            return getattr(result, "pto_finish", Pto.Worker.run_finish)(self, result)
        except GLib.Error as caught:
            error = _exceptions.original(caught, getattr(result, "pto_state", types.SimpleNamespace(raised=None)))
        raise error

    run_callable_finish = run_graph_finish = run_finish

    @staticmethod
    def ask_process(process: int = 0, format: str | AnswerFormat = "text", cancellable: Gio.Cancellable | None = None) -> str:
        """What the workers of a process do just now and what they wait for: text, json or metrics. 0 is this process; another
        one answers that was started with PTO_ANSWER=1, or has called Pto.answer_start()."""
        names = _enums.by_nick(Pto.AnswerFormat)
        if isinstance(format, str) and format not in names:
            raise ValueError(_("{what} is none of {names}").format(what=shown(format), names=", ".join(names)))
        return Pto.Worker.ask_process(_checks.integer(process, "process"), names.get(format, format), cancellable)

    @property
    def doing(self) -> dict[str, Any] | None:
        """What it does just now and what it waits for, as doc/asking.md lists it; None: it has not started, or is closed. It
        does not matter what its threads do."""
        workers = json.loads(self.describe_state_json())["workers"]
        return workers[0] if workers else None

    @property
    def progress(self) -> _Progress | None:
        """How many tasks of the run under way are done, submitted and failed; None: there is no run. It does not matter which thread
        asks. worker.connect("run-progress", lambda worker, done, submitted, failed: ...) is told while a run lasts, on the thread
        that calls run(), in asyncio on that of the runs: every progress_interval ms at most, among submits and while it waits."""
        return _progress.of(self)

    def show_progress(self, file: Any = None, interval: float = 0.1) -> AbstractContextManager[None]:
        """with worker.show_progress(): runs show a line with how far they are, on the standard error or in a notebook, or in that
        file, looked at every so many seconds. What has not been submitted yet is not known, and not counted. Starts the worker."""
        if not interval > 0:
            raise ValueError(_("interval={interval}: seconds are wanted, more than 0").format(interval=shown(interval)))
        if self.get_state() == Pto.WorkerState.NEW:
            self.start()  # processes are best forked before there is a thread more
        return _progress.shown(self, file, interval)

    def close(self) -> None:
        """Ends what is under way, and all processes below; a worker that is closed stays closed."""
        _functions.check_outside(self, _NO_CLOSE_ON_THREAD, on_other_thread=True)
        with _interruptible(None, types.SimpleNamespace(in_function=False)):
            Pto.Worker.close(self)
        if (runner := _runners.pop(self, None)) is not None:
            runner[1].shutdown(wait=False)


for _name, _function in _checks.complete().items():
    globals()[_name] = _function
    __all__.append(_name)

from . import PtoSeeds as seeds  # noqa: E402, it needs all of the above

__all__.append("seeds")
sys.modules["gi.repository.Pto.seeds"] = seeds  # so that it can be imported from, though Pto is no package
