# say_how.py: what must be set before programs find what was just installed? (the last words of `meson install`)
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: prefix, directories of programs and of the library, of data for JavaScript (or nothing), of Python's override (or
# nothing), a Python with gi (or nothing).
# All as they will be seen when the program runs, so without DESTDIR. Only what is missing is said.
import glob
import os
import subprocess
import sys

prefix, bindir, libdir, datadir, override_dir, gi_python = sys.argv[1:7]
DATA_DIRS = "/usr/local/share:/usr/share"  # where nothing else is said
PLAIN = {name: value for name, value in os.environ.items()
         if name not in ("GI_TYPELIB_PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PKG_CONFIG_PATH")}


def ask(*command):
    """Lines of what a program prints; none when there is no such program."""
    try:
        return subprocess.run(command, env=PLAIN, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False).stdout.split()
    except OSError:
        return []


def has(directories, directory):
    return os.path.realpath(directory) in map(os.path.realpath, directories)


def loader_finds():
    """The loader looks into its own directories always, and elsewhere only where ldconfig has been."""
    own = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", *glob.glob("/usr/lib/*-linux-gnu*")]
    library = os.path.join(libdir, "libpto-1.so.0")
    return has(own, libdir) or library in ask("/sbin/ldconfig", "-p")


def rest(name):
    return f":${{{name}:-{DATA_DIRS}}}" if name == "XDG_DATA_DIRS" else f"${{{name}:+:${name}}}"


needed = []
if not loader_finds():
    needed.append(("LD_LIBRARY_PATH", libdir))
pkg_config = ":".join(ask("pkg-config", "--variable=pc_path", "pkg-config")).split(":")
if not has(pkg_config, os.path.join(libdir, "pkgconfig")):
    needed.append(("PKG_CONFIG_PATH", os.path.join(libdir, "pkgconfig")))
if datadir:
    typelibs = os.path.join(libdir, "girepository-1.0")
    if not has(ask(gi_python or "python3", "-c", "from gi.repository import GIRepository\n"
                   "print(*GIRepository.Repository.get_search_path())"), typelibs):
        needed.append(("GI_TYPELIB_PATH", typelibs))
    if not has(DATA_DIRS.split(":"), datadir):
        needed.append(("XDG_DATA_DIRS", datadir))
if override_dir:
    packages = os.path.dirname(os.path.dirname(override_dir))
    if not has(ask(gi_python or "python3", "-E", "-c", "import site, sys\n"
                   "print(*sys.path, *site.getsitepackages())"), packages):
        needed.append(("PYTHONPATH", packages))
if not has(os.environ.get("PATH", "").split(":"), bindir):
    needed.append(("PATH", bindir))

if needed:
    said = [f"libpto is in {prefix}, where it is not looked for by itself. Before it is used, in a shell:",
            *(f'    export {name}="{directory}{rest(name)}"' for name, directory in needed)]
else:
    said = [f"libpto is in {prefix}, where programs find it by themselves."]


def outside():
    """Meson keeps what a script prints to itself, unless it fails: this goes where Meson's own words go. In a regular file
    it would be overwritten by what Meson writes next; then standard error is the place."""
    for fd in (1, 2) if "MESON_INSTALL_PREFIX" in os.environ else ():
        path = f"/proc/{os.getppid()}/fd/{fd}"
        if os.path.exists(path) and not os.path.isfile(path):
            try:
                return open(path, "a", encoding="utf-8")
            except OSError:  # a socket, or somebody else's terminal
                pass
    return sys.stdout


if not os.environ.get("MESON_INSTALL_QUIET"):
    with outside() as stream:
        print(*said, sep="\n", file=stream)
