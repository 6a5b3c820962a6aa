# PtoSerialized.py: how is a function of this program made again by another interpreter?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As bytes, for remote workers where both ends say so. What has a module that is there is named by it; what has none goes along: the code, what it
# keeps of functions around it, and those globals that it names. Code is of one version of Python, which the bytes say.
from __future__ import annotations

import base64
import functools
import importlib
import importlib.util
import io
import marshal
import pickle
import types

from .PtoText import _

MODULE = "__serialized_python__"  # in place of a module, in an import path
_MOST = 2 << 20  # bytes of one: it goes in a message of 4 MiB, as text, which takes a third more, beside others


def _named(code):
    """Names of globals, also of functions within it."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _named(constant)
    yield from code.co_names


def _globals_of(function):
    return sorted(set(_named(function.__code__)) & function.__globals__.keys())


def make(code, name, module):
    """A function that is not filled yet: it may refer to itself."""
    code = marshal.loads(code)
    return types.FunctionType(code, {"__builtins__": __builtins__, "__name__": module}, name,
                              None, tuple(types.CellType() for _ in code.co_freevars))


def fill(function, state):
    function.__globals__.update(state["globals"])
    for cell, content in zip(function.__closure__ or (), state["cells"]):
        if content:
            cell.cell_contents, = content
    for name, value in state["attributes"].items():
        setattr(function, name, value)
    function.__dict__.update(state["dict"])


def _content(cell):
    try:
        return (cell.cell_contents,)
    except ValueError:  # nothing is in it yet
        return ()


class _TooLong(Exception):
    """More than a message takes."""


class _Limited(io.BytesIO):
    """Ends before all of memory is written to it."""

    def write(self, data):
        if self.tell() + memoryview(data).nbytes > _MOST:
            raise _TooLong
        return super().write(data)


class _Pickler(pickle.Pickler):
    def __init__(self, file, find_path):
        super().__init__(file, 4)
        self.find_path = find_path

    def reducer_override(self, value):
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if isinstance(value, type) and value.__module__ == "__main__":
            raise TypeError(_("{what} is a class of this program, of no module").format(what=value.__qualname__))
        if not isinstance(value, types.FunctionType) or self.find_path(value) is not None:
            return NotImplemented
        names = _globals_of(value)
        state = {"globals": {name: value.__globals__[name] for name in names},
                 "cells": [_content(cell) for cell in value.__closure__ or ()],
                 "attributes": {name: getattr(value, name) for name in ("__defaults__", "__kwdefaults__", "__qualname__", "__doc__")},
                 "dict": value.__dict__}
        return make, (marshal.dumps(value.__code__), value.__name__, value.__module__), state, None, None, fill


def dumps(function, find_path):
    """The import path that stands for it. find_path: what it is imported by, or None."""
    file = _Limited(importlib.util.MAGIC_NUMBER)
    file.seek(0, io.SEEK_END)
    _Pickler(file, find_path).dump(function)
    return f"{MODULE}:{base64.urlsafe_b64encode(file.getvalue()).decode()}"


def _longest(function, find_path):
    """What it carries that is too long by itself, or None: its globals, what it keeps of functions around it, its object."""
    plain = function.func if isinstance(function, functools.partial) else getattr(function, "__func__", function)
    if not isinstance(plain, types.FunctionType):
        plain = getattr(type(plain), "__call__", None)
    carried = [(f"self.{name}", value) for name, value in getattr(getattr(function, "__self__", function), "__dict__", {}).items()]
    if isinstance(plain, types.FunctionType):
        carried += ((name, plain.__globals__[name]) for name in _globals_of(plain))
        carried += ((name, content) for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or ()) for content in _content(cell))
    for name, value in carried:
        try:
            _Pickler(_Limited(), find_path).dump(value)
        except _TooLong:
            return name
    return None


def give_path(made, function, find_path):
    """Has a callable of this function be sent as bytes."""
    try:
        made.set_import_path(dumps(function, find_path))
    except _TooLong:
        most, name = _MOST >> 20, _longest(function, find_path)
        refusal = (_("{what} can not be sent to a remote worker as bytes: it has more than {most} MiB with all that it carries: give large "
                     "data as tensors") if name is None else
                   _("{what} can not be sent to a remote worker as bytes: {name}, which it uses, alone has more than {most} MiB: give it "
                     "as a tensor, or load it there"))
        raise ValueError(refusal.format(what=getattr(function, "__qualname__", repr(function)), name=name, most=most)) from None
    except Exception as error:
        raise TypeError(_("{what} can not be sent to a remote worker as bytes: {why}; workers= names those that it is for").format(
            what=getattr(function, "__qualname__", repr(function)), why=error)) from error


def shorten(path):
    """For messages."""
    return f"{path[:len(MODULE) + 9]}..." if path.startswith(MODULE) else path


def loads(path):
    data = base64.urlsafe_b64decode(path.partition(":")[2])
    magic = importlib.util.MAGIC_NUMBER
    if data[:len(magic)] != magic:
        raise ImportError(_("it was serialized by another version of Python: the same one has to be at both ends"))
    return pickle.loads(data[len(magic):])
