# bindings.py: how does the Python of seed 004 run what a host binary builds?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A cover of the C functions that a host binary has (pto_runtime_c_api.h), by ctypes. What they refuse is a RuntimeError with
# their line.
import ctypes
import os

_POINTER, _INT, _SIZE, _TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p
_PROTOTYPES = {
    "GetRuntimeSize": (_SIZE,),
    "InitRuntime": (_INT, _POINTER),
    "FinalizeRuntime": (_INT, _POINTER),
    "DeviceRunner_Init": (_INT, _INT, _INT, _TEXT, _SIZE, _TEXT, _SIZE, _TEXT),
    "DeviceRunner_Run": (_INT, _POINTER, _INT),
    "DeviceRunner_Finalize": (_INT,),
    "launch_runtime": (_INT, _POINTER, _INT, _INT, _INT, _TEXT, _SIZE, _TEXT, _SIZE),
    "simpler_last_error": (_TEXT,),
    "simpler_log_init": (_INT, _INT, _INT),
}


def _(text):
    """In the reader's language, as libpto's own Python says it, which nothing else here needs: without it the text."""
    try:
        import gi
        gi.require_version("Pto", "1")
        from gi.overrides import PtoText
    except (ImportError, ValueError):
        return text
    return PtoText._(text)


class RuntimeLibraryLoader:
    """A host binary in this process."""

    def __init__(self, host_binary):
        if not isinstance(host_binary, (bytes, bytearray)) or host_binary[:4] != b"\177ELF":
            raise ValueError(_("this is no host binary: BinaryCompiler.compile(\"host\", ...) makes one"))
        # Open as long as the process lives: the linker takes what has the same path for the same library.
        descriptor = os.memfd_create("host.so")
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(host_binary)
        try:
            self.loaded = ctypes.CDLL(f"/proc/self/fd/{descriptor}")
        except OSError as error:
            os.close(descriptor)
            raise RuntimeError(_("the host binary can not be loaded: {why}").format(why=error)) from None
        for name, (result, *arguments) in _PROTOTYPES.items():
            try:
                function = getattr(self.loaded, name)
            except AttributeError:
                raise ValueError(_("this is no host binary: it has no {name}()").format(name=name)) from None
            function.restype, function.argtypes = result, arguments
        self.loaded.simpler_log_init(4, 0)  # the exception says it

    def call(self, name, *arguments):
        if getattr(self.loaded, name)(*arguments) != 0:
            raise RuntimeError(self.loaded.simpler_last_error().decode("utf-8", "replace"))


def _binary(what, given):
    if not isinstance(given, (bytes, bytearray)):
        raise TypeError(_("{what}: {type}: bytes are wanted, which BinaryCompiler.compile() gives").format(
            what=what, type=type(given).__name__))
    return bytes(given), len(given)


def _number(what, given):
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(_("{what}={value}: an integer is wanted").format(what=what, value=repr(given)))
    if not -2**31 <= given < 2**31:
        raise ValueError(_("{what}={value}: it does not fit in 32 bits").format(what=what, value=given))
    return given


def _runtime(given):
    if not isinstance(getattr(type(given), "_loader", None), RuntimeLibraryLoader):
        raise TypeError(_("runtime={runtime}: one that bind_host_binary() gives the class of is wanted").format(runtime=repr(given)))
    return given


class DeviceRunner:
    """The chip of a host binary, for those who begin it themselves."""

    def __init__(self, runtime_class):
        self._loader = getattr(runtime_class, "_loader", None)
        if not isinstance(self._loader, RuntimeLibraryLoader):
            raise TypeError(_("runtime_class={given}: the class that bind_host_binary() gives is wanted").format(given=repr(runtime_class)))

    def init(self, device_id, num_cores, aicpu_binary, aicore_binary, pto_isa_root=None):
        if not isinstance(pto_isa_root, (str, bytes, os.PathLike, type(None))):
            raise TypeError(_("pto_isa_root={given}: a directory, or None, is wanted").format(given=repr(pto_isa_root)))
        root = None if pto_isa_root is None else os.fsencode(pto_isa_root)
        self._loader.call("DeviceRunner_Init", _number("device_id", device_id), _number("num_cores", num_cores),
                          *_binary("aicpu_binary", aicpu_binary), *_binary("aicore_binary", aicore_binary), root)

    def run(self, runtime, launch_aicpu_num=1):
        self._loader.call("DeviceRunner_Run", _runtime(runtime).handle(), _number("launch_aicpu_num", launch_aicpu_num))

    def finalize(self):
        self._loader.call("DeviceRunner_Finalize")


def bind_host_binary(host_binary):
    """The class of runtimes that this binary builds."""
    loader = RuntimeLibraryLoader(host_binary)

    class Runtime:
        _loader = loader

        def __init__(self):
            self._memory = None

        def handle(self):
            if self._memory is None:
                raise RuntimeError(_("this runtime is not initialized, or was finalized: initialize() makes it"))
            return ctypes.addressof(self._memory)

        def initialize(self):
            if self._memory is not None:
                raise RuntimeError(_("this runtime is initialized already: finalize() ends it"))
            memory = (ctypes.c_uint64 * (loader.loaded.GetRuntimeSize() // 8 + 1))()
            loader.call("InitRuntime", ctypes.addressof(memory))
            self._memory = memory

        def finalize(self):
            handle, memory = self.handle(), self._memory
            self._memory = None  # it has ended, whatever is told of it
            loader.call("FinalizeRuntime", handle)
            del memory

    return Runtime


def launch_runtime(runtime, aicpu_thread_num=1, block_dim=1, device_id=0, aicpu_binary=b"", aicore_binary=b""):
    """Runs what it has built, and waits."""
    loader = _runtime(runtime)._loader
    loader.call("launch_runtime", runtime.handle(), _number("aicpu_thread_num", aicpu_thread_num), _number("block_dim", block_dim),
                _number("device_id", device_id), *_binary("aicpu_binary", aicpu_binary),
                *_binary("aicore_binary", aicore_binary))


__all__ = ["DeviceRunner", "RuntimeLibraryLoader", "bind_host_binary", "launch_runtime"]
