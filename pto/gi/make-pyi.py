# make-pyi.py: which names has the module in Python, and of which types are they?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: GIR, where Pto.pyi goes, the files of the override. Prints Pto.pyi for type checkers, of what the introspection data
# says and the override's own annotations. What nobody has annotated ends the build with its name.
#
# Bases are described in it, too, not taken from what may describe PyGObject: where that is missing they would be anything, and a name that is
# misspelt would be found nowhere.
import ast
import builtins
import keyword
import re
import sys
import xml.etree.ElementTree as ElementTree

from gir_text import plain

CORE = "{http://www.gtk.org/introspection/core/1.0}"
GLIB = "{http://www.gtk.org/introspection/glib/1.0}"
C = "{http://www.gtk.org/introspection/c/1.0}"

PREAMBLE = '''\
# Made by the build, of the introspection data and the override.
# mypy: disable-error-code="override, misc"
import ctypes
import os
from collections.abc import Callable as _Call, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import EllipsisType, ModuleType, TracebackType
from typing import Any, ClassVar, NamedTuple, SupportsFloat, SupportsIndex, TypeVar, overload
from typing_extensions import TypeAlias

from gi.repository import Gio, GLib

_T = TypeVar("_T")
_Self = TypeVar("_Self")
_Class = TypeVar("_Class")
_Path: TypeAlias = "str | os.PathLike[str]"
_Bytes: TypeAlias = "bytes | bytearray | memoryview | GLib.Bytes"  # or an array, which type checkers do not know as such
_ArrayLike: TypeAlias = Any  # an array, what NumPy makes one of, a tensor, a list of numbers
_DtypeLike: TypeAlias = Any  # Dtype, a type of NumPy's, or the name of one
_Shape: TypeAlias = "SupportsIndex | Iterable[SupportsIndex]"
_Number: TypeAlias = "SupportsFloat | SupportsIndex | ctypes.c_double | ctypes.c_float | ctypes._SimpleCData[int]"
_Tagged: TypeAlias = "tuple[Tensor, Direction]"
_Reduced: TypeAlias = "tuple[Tensor, Direction, Reduction | Callable, Any]"
_Argument: TypeAlias = "_Tagged | _Reduced | _Number"
_Arguments: TypeAlias = "TaskArgs | Sequence[Any]"
_Index: TypeAlias = "SupportsIndex | slice | EllipsisType | tuple[SupportsIndex | slice | EllipsisType, ...]"
_After: TypeAlias = "SupportsIndex | Iterable[SupportsIndex]"
_Condition: TypeAlias = "Tensor | tuple[Any, ...]"
_Function: TypeAlias = "_Call[..., Any]"
_ScopeFunction: TypeAlias = "_Call[[Orchestrator], _T]"
_Callback: TypeAlias = "_Call[..., object]"
_Runnable: TypeAlias = "_Function | CallableHandle | Graph"

class _TaskArgsView(NamedTuple):
    tensor_count: int
    scalar_count: int
    tensors: list[Tensor]
    scalars: list[int]

class _Progress(NamedTuple):
    done: int
    submitted: int
    failed: int

class _Enum(int):
    value_name: str
    value_nick: str
    __enum_values__: ClassVar[dict[int, Any]]
    def __new__(cls: type[_Class], value: int) -> _Class: ...

class _Flags(int):
    value_names: list[str]
    value_nicks: list[str]
    def __new__(cls: type[_Class], value: int = ...) -> _Class: ...

class _Boxed:
    def copy(self: _Self) -> _Self: ...

class _Object:
    @property
    def props(self) -> Any: ...
    def connect(self, detailed_signal: str, handler: _Call[..., Any], *args: Any) -> int: ...
    def connect_after(self, detailed_signal: str, handler: _Call[..., Any], *args: Any) -> int: ...
    def disconnect(self, id: int) -> None: ...
    def handler_block(self, id: int) -> Any: ...
    def handler_unblock(self, id: int) -> None: ...
    def emit(self, signal_name: str, *args: Any) -> Any: ...
    def get_property(self, property_name: str) -> Any: ...
    def set_property(self, property_name: str, value: Any) -> None: ...
    def bind_property(self, source_property: str, target: Any, target_property: str, *more: Any) -> Any: ...
    def notify(self, property_name: str) -> None: ...
    def weak_ref(self, callback: _Call[..., Any] | None = ..., *args: Any) -> Any: ...
    @classmethod
    def list_properties(cls) -> list[Any]: ...
    @classmethod
    def find_property(cls, property_name: str) -> Any: ...

class _GError(RuntimeError):
    message: str
    domain: str
    code: int
    def matches(self, domain: str | int, code: int) -> bool: ...
'''
ALIASES = {line.split(":")[0].split(" ")[0] for line in PREAMBLE.splitlines() if line.startswith("_")}
IMPORTED = {"Any", "Coroutine", "Gio", "GLib", "Iterable", "Iterator", "Sequence", "AbstractContextManager", "ModuleType",
            "TracebackType", "_TaskArgsView", "_Progress", "ctypes", "os"}
PLAIN = {"none": "None", "gboolean": "bool", "utf8": "str", "filename": "str", "gpointer": "Any", "GLib.Quark": "int",
         "gdouble": "float", "gfloat": "float", "GObject.Value": "Any", "GObject.Object": "Any", "GLib.DestroyNotify": "Any",
         "Gio.AsyncReadyCallback": "_Callback", "GLib.Error": "GLib.Error", "GType": "Any"}
PLAIN.update({f"g{sign}int{bits}": "int" for sign in ("", "u") for bits in ("", 8, 16, 32, 64)}, gsize="int", gssize="int")
# What complete() of PtoChecks.py gives no attribute, as the type has it by then.
TAKEN = {"_Object": {"property", "properties", "data", "qdata"}}


def fail(text):
    sys.exit(f"make-pyi.py: {text}")


class Gir:
    def __init__(self, path):
        self.namespace = ElementTree.parse(path).getroot().find(CORE + "namespace")
        self.kinds = {e.get("name"): e for e in self.namespace
                      if e.tag.removeprefix(CORE) in ("class", "record", "enumeration", "bitfield")}
        self.callbacks = {e.get("name") for e in self.namespace.findall(CORE + "callback")}

    def type_of(self, element, is_given):
        array, plain = element.find(CORE + "array"), element.find(CORE + "type")
        if array is not None:
            of = array.find(CORE + "type").get("name")
            if of == "guint8":
                return "bytes"
            return f"{'Sequence' if is_given else 'list'}[{self.named(of)}]"
        if plain.get("name") == "GLib.Bytes" and is_given:
            return "_Bytes"
        return self.named(plain.get("name"))

    def named(self, name):
        if name in PLAIN:
            return PLAIN[name]
        if name in self.callbacks:
            return "_Callback"
        if name in self.kinds or name.startswith(("Gio.", "GLib.")):
            return name
        return fail(f"what is {name} in Python?")

    def nullable(self, element, is_given):
        type_ = self.type_of(element, is_given)
        return f"{type_} | None" if element.get("nullable") == "1" and type_ not in ("None", "Any") else type_

    def signature(self, function):
        """Parameters as (name, type, default) and what it gives."""
        parameters = function.findall(f"{CORE}parameters/{CORE}parameter")
        hidden = {int(p.find(CORE + "array").get("length")) for p in parameters
                  if p.find(CORE + "array") is not None and p.find(CORE + "array").get("length")}
        hidden |= {int(p.get("destroy")) for p in parameters if p.get("destroy")}
        data = {int(p.get("closure")) for p in parameters if p.get("closure") and int(p.get("closure")) != parameters.index(p)}
        result = function.find(CORE + "return-value")
        if result.find(CORE + "array") is not None and result.find(CORE + "array").get("length"):
            hidden.add(int(result.find(CORE + "array").get("length")))
        given, results = [], [self.nullable(result, False)]
        if function.get("name") != "ref_bytes":  # PtoChecks.py: what is a copy comes as bytes
            results[0] = results[0].replace("GLib.Bytes", "bytes")
        for i, p in enumerate(parameters):
            if i in hidden or p.tag != CORE + "parameter":
                continue
            if p.get("direction") == "out":
                results.append(self.nullable(p, False))
                continue
            name = p.get("name") + ("_" if keyword.iskeyword(p.get("name")) else "")
            optional = p.get("nullable") == "1" or p.get("allow-none") == "1" or i in data
            given.append((name, "Any" if i in data else self.nullable(p, True), optional))
        if len(results) > 1 and results[0] == "None":
            results = results[1:]
        while_optional, made = True, []
        for name, type_, optional in reversed(given):
            while_optional = while_optional and optional
            made.insert(0, (name, type_, "None" if while_optional else None))
        return made, results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"


class Override:
    """Classes of the override by the name of what they are of, and the words of the errors' classes."""

    def __init__(self, paths):
        self.classes, self.errors, self.plain = {}, {}, []
        for path in paths:
            if path.endswith("PtoSeedsRemote.py"):  # has classes of its own, of seeds alone
                continue
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read(), path)
            if path.endswith("PtoErrors.py"):
                wanted = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "_name"
                          or isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("_DOCS", "_DEADLOCKS")]
                exec(compile(ast.Module(wanted, []), path, "exec"), self.errors)
            if path.endswith(("PtoDecorators.py", "PtoRemote.py")):  # what has no counterpart in the library
                self.plain += [node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))
                               and not node.name.startswith("_") and (isinstance(node, ast.ClassDef) or node.returns is not None)]
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and node in self.plain:
                    self.classes[node.name] = node
                elif isinstance(node, ast.ClassDef) and (node.name == "Error" or any(
                        ast.unparse(base) == f"Pto.{node.name}" for base in node.bases)):
                    self.classes[node.name] = node


class Interface:
    def __init__(self, gir, override):
        self.gir, self.override, self.lines = gir, override, [PREAMBLE]
        self.known = set(gir.kinds) | IMPORTED | ALIASES | {node.name for node in override.plain} | {"_Call"}

    def make(self):
        for element in self.gir.namespace:
            kind, name = element.tag.removeprefix(CORE), element.get("name")
            if element.get("introspectable") == "0":
                continue
            if kind == "constant":
                self.lines.append(f"{name}: {self.gir.type_of(element, False)}")
            elif kind == "function":  # also what is a type's, too: PyGObject has it in both places
                self.lines += self.function(element, "", {}, None)
        for element in self.in_order():
            self.class_(element)
        for node in self.override.plain:
            if isinstance(node, ast.ClassDef):
                own = self.own(node.name)
                body = [line for name, made in own.items() for line in self.own_function(node.name, made, name, {})]
                self.close(node.name, None, ["__name__: str", *body], set(own), node)
            else:
                self.lines += self.own_function("", node, node.name, {})
        self.lines += ["", "seeds: ModuleType"]
        return "\n".join(self.lines) + "\n"

    def in_order(self):
        """Bases first."""
        done, order = set(), []

        def visit(element):
            if element.get("name") in done:
                return
            done.add(element.get("name"))
            if element.get("parent") in self.gir.kinds:
                visit(self.gir.kinds[element.get("parent")])
            order.append(element)
        for element in self.gir.kinds.values():
            visit(element)
        return order

    def class_(self, element):
        name, kind = element.get("name"), element.tag.removeprefix(CORE)
        if name == "Error":
            return self.errors(element)
        base = {"enumeration": "_Enum", "bitfield": "_Flags"}.get(kind)
        if kind == "class":
            base = element.get("parent") if element.get("parent") in self.gir.kinds else "_Object"
        elif kind == "record":
            base = "_Boxed" if element.get(GLIB + "get-type") else None
        body = []
        for member in element.findall(CORE + "member"):
            body.append(f"{member.get('name').upper()}: ClassVar[{name}]")
        functions = {f.get("name"): f for tag in ("constructor", "method", "function") for f in element.findall(CORE + tag)
                     if f.get("introspectable") != "0" and not f.get("moved-to")}
        own = self.own(name)
        node = self.override.classes.get(name)
        taken = TAKEN.get(base, set())
        names = set(functions) | set(own)
        for method, function in functions.items():
            if method not in own:
                body += self.function(function, name, names, function.tag.removeprefix(CORE))
        for method, made in own.items():
            body += self.own_function(name, made, method, functions)
        body += self.attributes(element, functions, own, names | taken)
        if kind == "class" and "__init__" not in own:
            body.append(f"def __init__(self, {self.properties(element)}) -> None: ..." if element.get("abstract") != "1"
                        else "def __init__(self, **properties: Any) -> None: ...")
        elif base == "_Boxed" and "new" in functions and "__init__" not in own:
            given = self.parameters(functions["new"])
            body.append(f"def __init__(self{', ' if given else ''}{given}) -> None: ...")
        self.close(name, base, body, names | {line.split(":")[0] for line in body}, node)

    def close(self, name, base, body, names, node=None):
        """Inside of a class that has something called bytes, that is what bytes means."""
        hiding = {n for n in names if hasattr(builtins, n)} | {line.split("(")[0].removeprefix("def ") for line in body
                                                               if hasattr(builtins, line.split("(")[0].removeprefix("def "))}
        doc = ast.get_docstring(node) if node is not None else None
        self.lines += ["", f"class {name}{f'({base})' if base else ''}:"]
        if doc:
            self.lines.append(f"    {doc!r}" if '"' in doc else f'    """{doc}"""'.replace("\n", "\n    "))
        for line in body or ["..."]:
            for hidden in hiding:
                if line.startswith(("def ", f"{hidden}:")):
                    line = rename(line, hidden)
            self.lines.append("    " + line.replace("\n", "\n    "))

    def own(self, name):
        """What the override defines in a class: functions, and other names of them."""
        node, made = self.override.classes.get(name), {}
        for item in node.body if node is not None else ():
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if not item.name.startswith("_") or (item.name.startswith("__") and item.name != "__repr__"):
                    made[item.name] = item
            elif isinstance(item, ast.Assign):
                targets, value = item.targets, item.value
                pairs = [(t, value) for t in targets]
                if isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
                    pairs = list(zip(targets[0].elts, value.elts))
                for target, what in pairs:
                    if target.id.startswith("_"):
                        continue  # also what is said not to be there, __iter__ = None
                    if not isinstance(what, ast.Name) or what.id not in made:
                        fail(f"{name}.{target.id}: give it a type, as a function that is annotated or another name of one")
                    made[target.id] = made[what.id]
        return made

    def own_function(self, class_, node, name, functions):
        """As it is annotated, or as the introspection data has the parameter of that name."""
        known = functions.get(name)
        decorators = {ast.unparse(d).split(".")[-1] for d in node.decorator_list} & {"property", "staticmethod", "classmethod", "setter"}
        arguments, where = node.args, f"Pto.{class_}.{name}"
        inherited = dict((n, t) for n, t, _ in self.gir.signature(known)[0]) if known is not None else {}
        positional = arguments.posonlyargs + arguments.args
        first = 0 if "staticmethod" in decorators or not class_ else 1
        defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
        words = []

        def word(argument, default, star=""):
            type_ = self.annotation(argument.annotation, where) if argument.annotation is not None else inherited.get(argument.arg)
            if type_ is None:
                fail(f"{where}: of which type is {argument.arg}? It has no annotation")
            if type_ == "_Properties":
                return self.properties(self.gir.kinds[class_], skip={a.arg for a in positional}, more=WORKER)
            if type_ == "_Choices":
                return ", ".join(f"{m[4:]}: {self.gir.signature(f)[0][0][1]} = ..." for m, f in functions.items()
                                 if m.startswith("set_") and len(self.gir.signature(f)[0]) == 1)
            text = "" if default is None else f" = {ast.unparse(default)}" if isinstance(default, ast.Constant) else " = ..."
            return f"{star}{argument.arg}: {type_}{text}"

        for i, argument in enumerate(positional):
            if i < first and argument.annotation is not None:
                words.append(f"{argument.arg}: {self.annotation(argument.annotation, where)}")
            else:
                words.append(argument.arg if i < first else word(argument, defaults[i]))
        if arguments.vararg is not None:
            words.append(word(arguments.vararg, None, "*"))
        elif arguments.kwonlyargs:
            words.append("*")
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
            words.append(word(argument, default))
        if arguments.kwarg is not None:
            last = word(arguments.kwarg, None, "**")
            if not last.startswith("**") and arguments.vararg is None and not arguments.kwonlyargs:
                words.append("*")
            words.append(last)
        returns = self.annotation(node.returns, where) if node.returns is not None else (
            self.gir.signature(known)[1] if known is not None else fail(f"{where}: what does it give? It has no annotation"))
        lines = ["@" + ("property" if d == "property" else f"{name}.setter" if d == "setter" else d) for d in sorted(decorators)]
        doc = ast.get_docstring(node)
        end = f"\n    {doc!r}\n    ..." if doc else " ..."
        if returns.startswith("_Async["):  # awaited, or with a callback
            result = "Coroutine[Any, Any, " + returns.removeprefix("_Async[")
            awaited = [w for w in words if not w.startswith("callback:")]
            called = [w.split(" = ")[0] if w.startswith("callback:") else w for w in words if not w.startswith("callback:")]
            star = [] if any(w.startswith("*") for w in called) else ["*"]
            i = next((i for i, w in enumerate(called) if w.startswith("**")), len(called))
            called = called[:i] + star + ["callback: _Callback"] + called[i:]
            return ["@overload", *lines, f"def {name}({', '.join(awaited)}) -> {result}:{end}",
                    "@overload", *lines, f"def {name}({', '.join(called)}) -> None: ..."]
        if " | _Call[" in returns:  # a decorator, with or without arguments
            made, call = returns.split(" | ", 1)
            before = words[0].partition(" | None")[0]
            return ["@overload", f"def {name}({', '.join([before, *words[1:]])}) -> {made}:{end}",
                    "@overload", f"def {name}({', '.join(words[1:])}) -> {call}: ..."]
        if any("| KernelFunction" in word for word in words):  # which says itself what is done with the arguments
            plain_ = [w.replace(" | KernelFunction", "") for w in words]
            stands = [re.sub(r": .* \| KernelFunction", ": KernelFunction", w) for w in words]
            stands = ["*args: Any" if w.startswith("*args:") else w for w in stands]
            return ["@overload", f"def {name}({', '.join(plain_)}) -> {returns}:{end}", "@overload",
                    f"def {name}({', '.join(stands)}) -> {returns}: ..."]
        return [*lines, f"def {name}({', '.join(words)}) -> {returns}:{end}"]

    def annotation(self, node, where):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
        for part in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(part, ast.Name) and part.id not in self.known | {"_Async", "_Properties", "_Choices"} and not hasattr(builtins, part.id):
                fail(f"{where}: there is no type {part.id}")
        return text

    def parameters(self, function):
        given, _ = self.gir.signature(function)
        return ", ".join(f"{n}: {t}{'' if d is None else ' = ...'}" for n, t, d in given)

    def function(self, function, class_, names, kind):
        given, returns = self.parameters(function), self.gir.signature(function)[1]
        name = function.get("shadows") or function.get("name")
        if function.get("shadowed-by"):
            return []
        if kind == "constructor":
            returns = class_
        decorator = ["@staticmethod"] if kind in ("function", "constructor") and class_ else []
        self_ = "" if decorator or not class_ else "self" + (", " if given else "")
        doc = summary(function)
        end = f"\n    {doc!r}\n    ..." if doc else " ..."
        return [*decorator, f"def {name}({self_}{given}) -> {returns}:{end}"]

    def attributes(self, element, functions, own, taken):
        """As PtoChecks.complete() makes them."""
        body, inherited = [], set()
        base = self.gir.kinds.get(element.get("parent"))
        while base is not None:
            inherited |= {f.get("name") for f in base.findall(CORE + "method")}
            inherited |= {f.get("name")[4:] for f in base.findall(CORE + "method")}
            base = self.gir.kinds.get(base.get("parent"))
        for method, function in functions.items():
            field = method[4:]
            if not method.startswith(("get_", "dup_", "ref_")) or function.tag != CORE + "method":
                continue
            given, returns = self.gir.signature(function)
            if given or field in taken | inherited or any(line.startswith(f"def {field}(") for line in body):
                continue
            body += ["@property", f"def {field}(self) -> {returns}: ..."]
            if "set_" + field in functions:
                setter = self.gir.signature(functions["set_" + field])[0]
                type_ = setter[0][1] if len(setter) == 1 else None
                if "set_" + field in own:
                    type_ = self.annotation(own["set_" + field].args.args[1].annotation, field)
                if type_ is not None:
                    body += [f"@{field}.setter", f"def {field}(self, value: {type_}) -> None: ..."]
        return body

    def properties(self, element, skip=(), more=()):
        """What a constructor is given by name."""
        words = []
        while element is not None:
            for property_ in element.findall(CORE + "property"):
                name = property_.get("name").replace("-", "_")
                if name not in skip and (property_.get("writable") == "1" or property_.get("construct-only") == "1"):
                    type_ = self.gir.type_of(property_, True)
                    type_ = f"{type_} | str" if type_ in self.gir.kinds else type_  # choices by their names, too
                    words.append(f"{name}: {dict(more).get(name) or type_} | None = ...")
            element = self.gir.kinds.get(element.get("parent"))
        words += [f"{name}: {type_} = ..." for name, type_ in more if not any(w.startswith(name + ":") for w in words)]
        return ("*, " if not skip and words else "") + ", ".join(words) if words else "**properties: Any"

    def errors(self, element):
        body = [f"{member.get('name').upper()}: ClassVar[_ErrorCode]" for member in element.findall(CORE + "member")]
        own = self.own("Error")
        body += ["CODE: ClassVar[_ErrorCode]", "__enum_values__: ClassVar[dict[int, _ErrorCode]]", "@staticmethod", "def quark() -> int: ..."]
        for name, node in own.items():
            if name != "__new__":
                body += self.own_function("Error", node, name, {})
        self.lines += ["", "class _ErrorCode(_Enum): ..."]
        self.close("Error", "_GError", body, set(), self.override.classes["Error"])
        for member in sorted(element.findall(CORE + "member"), key=lambda m: int(m.get("value"))):
            code = member.get("name").upper()
            base = "Deadlock" if code in self.override.errors["_DEADLOCKS"] else "Error"
            self.lines.append(f"class {self.override.errors['_name'](code)}({base}): ...")


# What Worker() takes beside its properties, or instead of what they are.
WORKER = (("device_ids", "Iterable[int]"), ("sub_workers", "int"), ("num_sub_workers", "int"))


def rename(line, hidden):
    """bytes is builtins.bytes, but where something is called so."""
    head, colon, rest = line.partition("\n")
    name, bracket, tail = head.partition("(")
    return name + bracket + re.sub(rf"(?<![\w.\"'])(?<!\*){hidden}\b(?!\s*[:(=])", f"builtins.{hidden}", tail) + colon + rest


def summary(function):
    """The first paragraph of what the manual says."""
    doc = function.find(CORE + "doc")
    text = " ".join(doc.text.split("\n\n")[0].split()) if doc is not None else ""
    return plain(text)


def main():
    gir, output, *parts = sys.argv[1:]
    text = Interface(Gir(gir), Override(parts)).make()
    if "builtins." in text:
        text = text.replace("import ctypes\n", "import builtins\nimport ctypes\n", 1)
    ast.parse(text)
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
