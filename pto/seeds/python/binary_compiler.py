# binary_compiler.py: how are the three programs of seed 004 made of sources, where the chip is simulated?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The host's is compiled, with what of the C API stands over libpto. The scheduler is libpto's, and its name stands for it. For
# the cores' stands the name of the platform with the directories of the kernels, which are built by libpto as they are loaded.
import os
import shlex
import shutil
import subprocess
import tempfile
import warnings

from simpler.task_interface import KernelCompiler, RuntimeBuilder
from gi.overrides.PtoText import _  # now that its version is chosen

SOURCES = (".c", ".cc", ".cpp", ".cxx")
RUNTIME = "host_build_graph"  # the seed has no other


def _directories(what, given):
    if not isinstance(given, (list, tuple)) or any(not isinstance(path, (str, os.PathLike)) for path in given):
        raise TypeError(_("{what}={value}: a list of directories is wanted").format(what=what, value=repr(given)))
    paths = [os.path.abspath(os.fspath(path)) for path in given]
    for path in paths:
        if not os.path.isdir(path):
            raise FileNotFoundError(_("{what}: {path}: no such directory").format(what=what, path=path))
        if "\n" in path:
            raise ValueError(_("{what}: {path}: the name of a directory has one line").format(what=what, path=repr(path)))
    return paths


def _sources(directories):
    return [os.path.join(path, name) for path in directories for name in sorted(os.listdir(path)) if name.endswith(SOURCES)]


def _flags():
    """What goes before and behind the sources of a host binary."""
    package = "pto-seeds-1"
    try:
        words = subprocess.run(["pkg-config", "--cflags", "--libs", package], check=True, capture_output=True, text=True).stdout
        directory = subprocess.run(["pkg-config", "--variable=seedsdir", package], check=True, capture_output=True,
                                   text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        why = " ".join((getattr(error, "stderr", None) or str(error)).split())
        raise RuntimeError(_("pkg-config does not find {package}, with which host binaries are compiled: {why}").format(
            package=package, why=why)) from None
    return os.path.join(directory, "host_binary.cpp"), shlex.split(words)


class BinaryCompiler:
    def __init__(self, platform="a2a3sim"):
        self.platform = RuntimeBuilder(platform).platform

    def compile(self, target, include_dirs=(), source_dirs=()):
        """The bytes of a program, or of what stands for it: target is "host", "aicpu" or "aicore"."""
        includes, directories = _directories("include_dirs", include_dirs), _directories("source_dirs", source_dirs)
        if target == "host":
            return self._host(includes, directories)
        if target == "aicpu":
            if (unused := _sources(directories)):
                warnings.warn(_("{source} is not compiled: the scheduler of {platform} is libpto's").format(
                    source=unused[0], platform=self.platform), stacklevel=2)
            return RUNTIME.encode()
        if target == "aicore":
            lines = [self.platform, *(f"include {path}" for path in includes), *(f"source {path}" for path in directories)]
            return "\n".join(lines).encode()
        raise ValueError(_("there is no target {target}: 'host', 'aicpu' and 'aicore' are").format(target=repr(target)))

    @staticmethod
    def _host(includes, directories):
        sources = _sources(directories)
        if not sources:
            refusal = (_("host: no source in {directories}: InitRuntimeImpl() and FinalizeRuntimeImpl() are wanted") if directories
                       else _("host: no source in no directory: InitRuntimeImpl() and FinalizeRuntimeImpl() are wanted"))
            raise FileNotFoundError(refusal.format(directories=", ".join(directories)))
        entry, flags = _flags()
        compiler = shlex.split(os.environ.get("CXX", "c++"))
        with tempfile.TemporaryDirectory(prefix="pto-host-") as directory:
            made = os.path.join(directory, "host.so")
            command = [*compiler, "-std=gnu++17", "-O1", "-fPIC", "-shared", "-Wl,-z,defs", "-o", made,
                       *(f"-I{path}" for path in includes), *sources, entry, *flags]
            if shutil.which(compiler[0]) is None:
                raise RuntimeError(_("host: there is no compiler {compiler}: CXX says which it is").format(compiler=compiler[0]))
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                lines = [line for line in done.stderr.splitlines() if "error" in line or "undefined reference" in line]
                lines = lines or done.stderr.splitlines() or [_("the compiler says nothing")]
                raise RuntimeError(f"host: {lines[0]}")
            with open(made, "rb") as file:
                return file.read()


__all__ = ["BinaryCompiler", "KernelCompiler"]
