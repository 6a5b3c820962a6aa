# PtoRemote.py: which functions does a remote worker import, and how is one asked for?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
from __future__ import annotations

import contextlib
import importlib.machinery
import locale
import os
import pkgutil
import sys

from gi.repository import GLib

from ..module import get_introspection_module
from . import PtoChecks as _checks
from . import PtoSerialized as _serialized
from .PtoText import _

Pto = get_introspection_module("Pto")

_takes_serialized = False
_roots: list[str] | None = None  # directories that functions may come from; None: this is no remote worker


def options(devices, sub_workers, platform, roots, python, program, certificates, address, launcher, shell, fabric, id_=None, serialized=False):
    devices, sub_workers, id_ = (value if name == "id" and value is None else _checks.integer(value, name, 0, 2**32 - 1)
                                 for name, value in (("devices", devices), ("sub_workers", sub_workers), ("id", id_)))
    roots = _checks.paths([roots] if isinstance(roots, (str, os.PathLike)) else roots or (), "roots")
    python, program, certificates = (value if value is None else _checks.path(value, name) for name, value in (
        ("python", python), ("program", program), ("certificates", certificates)))
    platform, fabric = (value if value is None else _checks.text(os.fspath(value) if isinstance(value, os.PathLike) else value, name)
                        for name, value in (("platform", platform), ("trusted_fabric", fabric)))
    shell, serialized = _checks.switch(shell, "shell"), _checks.switch(serialized, "serialized_python")
    if python is None and (roots or serialized) and not address.startswith(("unix:", "tls:")):  # who listens has chosen it
        python = sys.executable if address == "local:" else "python3"
    values = {"devices": GLib.Variant("u", devices), "sub-workers": GLib.Variant("u", sub_workers)}
    if address == "local:":  # of other machines their directories
        roots = [os.path.abspath(root) for root in roots]
    for name, type_, value in (("platform", "s", platform), ("roots", "as", roots),
                               ("python", "s", python), ("program", "s", program), ("launcher", "as", _checks.texts(launcher, "launcher")), ("shell", "b", shell),
                               ("certificates", "s", certificates and os.path.abspath(certificates)),
                               ("trusted-fabric", "s", fabric)):
        if value:
            values[name] = GLib.Variant(type_, value)
    if serialized:
        values["serialized-python"] = GLib.Variant("b", True)
    if id_ is not None:
        values["id"] = GLib.Variant("u", id_)
    return GLib.Variant("a{sv}", values)


def resolve(path):
    """What module:qualname is; of a remote worker, only from its roots."""
    if path.startswith(_serialized.MODULE + ":"):
        if not _takes_serialized:
            raise ImportError(_("functions as bytes are for remote workers, where both ends say so"))
        return _serialized.loads(path)
    if _roots is None:
        return pkgutil.resolve_name(path)
    top = path.partition(":")[0].partition(".")[0]
    spec = importlib.machinery.PathFinder.find_spec(top, _roots)
    if spec is None:
        if not _roots:
            raise ImportError(_("{module} is in none of the directories that this worker imports from: it has none").format(module=top))
        raise ImportError(_("{module} is in none of the directories that this worker imports from: {directories}").format(
            module=top, directories=", ".join(_roots)))
    found = sys.modules.get(top)
    if found is not None and spec.origin is not None and getattr(found, "__file__", None) != spec.origin:
        if not hasattr(found, "__file__"):
            raise ImportError(_("{module} is another module here already: a built-in one").format(module=top))
        raise ImportError(_("{module} is another module here already: {file}").format(module=top, file=found.__file__))
    return pkgutil.resolve_name(path)


def serve_remote(roots: list[str]) -> int:
    """What pto-remote runs: this process is a worker of whoever has launched it, and imports functions from these
    directories only. Gives its exit status."""
    global _roots, _takes_serialized
    _takes_serialized = os.environ.get("PTO_REMOTE_SERIALIZED_PYTHON") == "1"  # which pto-remote says, and nobody else
    _roots = [os.path.abspath(root) for root in roots]
    sys.path[:0] = _roots
    with contextlib.suppress(locale.Error):  # a locale that is not on this machine
        locale.setlocale(locale.LC_MESSAGES, "")
    try:
        Pto.remote_serve()
    except GLib.Error as error:
        print(f"pto-remote: {error.message}", file=sys.stderr)
        return 1
    return 0
