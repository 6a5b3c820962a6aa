# test_abi.py: do programs that were built against a version go on with this one?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Two files in the repository hold what was promised. debian/libpto-1-0.symbols has each name that the libraries export, with the
# version it came with: the packager reads it, too. pto-1.abi has what is behind the names, as bindings and compilers see it:
# parameters, results, values, and how the structs lie in memory that kernels and orchestrations share with the library. What is new
# is missing there until it is written in; what has gone, or is another, breaks programs.
#
# Arguments: source directory, libpto, libpto-seeds, the introspection data. With --write behind them the files are written.
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

CORE, C, GLIB = (f"{{http://www.gtk.org/introspection/{name}/1.0}}" for name in ("core", "c", "glib"))
source, library, seeds_library, gir = (os.path.abspath(path) for path in sys.argv[1:5])
PACKAGE = "libpto-1-0"
SYMBOLS = os.path.join(source, "debian", PACKAGE + ".symbols")
ABI = os.path.join(source, "tests", "install", "pto-1.abi")
HOW = "ninja -C BUILD write-abi writes what there is now into the two files"


def run(*command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    assert result.returncode == 0, f"{' '.join(command)} ends with {result.returncode}:\n{result.stderr}"
    return result.stdout


# What the libraries export.

def soname(path):
    return re.search(r"^\s*SONAME\s+(\S+)", run("objdump", "-p", path), re.M)[1]


def exported(path):
    """Each name with its version, and the versions themselves, as the packager's tool has them."""
    names = (line.split()[-1].replace("@@", "@") for line in run("nm", "-D", "--defined-only", path).splitlines())
    return {name if "@" in name else f"{name}@{name if name.startswith('LIBPTO_') else 'Base'}" for name in names}


def listed():
    """Of each library: the version of the package that each name came with."""
    libraries, names = {}, None
    with open(SYMBOLS, encoding="utf-8") as file:
        for line in file:
            if line.startswith(" "):
                name, version = line.split()
                names[name] = version
            elif not line.startswith("*"):
                names = libraries.setdefault(line.split()[0], {})
    return libraries


# What is behind the names.

def is_set(element, name):
    return element.get(name) == "1"


def type_of(element):
    """As C has it, and what is in it as bindings have it."""
    child = next((child for child in element if child.tag in (CORE + "type", CORE + "array", CORE + "varargs")), None)
    if child is None or child.tag == CORE + "varargs":
        return "..."
    text = child.get(C + "type") or child.get("name") or "array"
    inner = [inner.get("name") for inner in child if inner.tag in (CORE + "type", CORE + "array")]
    if child.tag == CORE + "array":
        text += "".join(f" {word}={child.get(word)}" for word in ("length", "fixed-size", "zero-terminated") if child.get(word))
    elif text != child.get("name") and child.get("name") in ("utf8", "filename"):
        text += f" {child.get('name')}"
    return text + (f" of {', '.join(inner)}" if inner else "")


def value_of(element, name):
    words = [element.get("direction"), type_of(element), name]
    words += [element.get(word) for word in ("transfer-ownership", "scope") if element.get(word) not in (None, "none")]
    words += [word for word in ("nullable", "optional", "caller-allocates") if is_set(element, word)]
    words += [f"{word}={element.get(word)}" for word in ("closure", "destroy") if element.get(word) is not None]
    return " ".join(word for word in words if word)


def signature(element):
    parameters = element.find(CORE + "parameters")
    given = [] if parameters is None else [value_of(p, p.get("name")) for p in parameters if p.tag != CORE + "instance-parameter"]
    own = None if parameters is None else parameters.find(CORE + "instance-parameter")
    if own is not None:
        given.insert(0, value_of(own, "self"))
    result = element.find(CORE + "return-value")
    text = f"({'; '.join(given)})" + ("" if result is None else f" gives {value_of(result, '')}")
    return text + (" or throws" if is_set(element, "throws") else "")


def described(element, path=""):
    """Lines, and for each function the version that it is said to have come with."""
    for child in element:
        kind, name = child.tag.split("}")[1], child.get("name", "")
        symbol = child.get(C + "identifier")
        if kind in ("function", "method", "constructor"):
            how = " not for bindings" if child.get("introspectable") == "0" else ""
            yield f"{kind} {symbol}{how} {signature(child)}", symbol, child.get("version")
        elif kind == "function-macro":
            yield f"macro {symbol} ({', '.join(p.get('name') for p in child.iter(CORE + 'parameter'))})", None, None
        elif kind == "constant" and "VERSION" not in name:
            yield f"constant {child.get(C + 'type')} = {child.get('value')}", None, None
        elif kind == "callback":
            yield f"callback {child.get(C + 'type')} {signature(child)}", None, None
        elif kind in ("enumeration", "bitfield"):
            for member in child.iter(CORE + "member"):
                yield (f"{kind} {child.get(C + 'type')} {member.get(C + 'identifier')} = {member.get('value')} "
                       f"{member.get(GLIB + 'nick')}"), None, None
        elif kind == "property":
            can = [word for word in ("writable", "construct", "construct-only") if is_set(child, word)]
            can += ["not readable"] if child.get("readable") == "0" else []
            yield " ".join([f"property {path}{name}", type_of(child), *can]), None, None
        elif kind == "signal":
            yield f"signal {path}{name} {signature(child)}", None, None
        elif kind == "field":
            yield f"field {path}{name} {type_of(child)}", None, None
        if kind in ("class", "interface", "record"):
            words = [f"{kind} {child.get(C + 'type')}", child.get("parent")]
            words += [word for word in ("abstract", "final", "deprecated", "disguised") if is_set(child, word)]
            yield " ".join(word for word in words if word), None, None
        if child.get(GLIB + "get-type"):
            yield f"type {child.get(GLIB + 'get-type')} {child.get(GLIB + 'type-name')}", child.get(GLIB + "get-type"), child.get("version")
        if kind in ("class", "interface", "record", "enumeration", "bitfield"):
            yield from described(child, f"{child.get(C + 'type')}.")


# What kernels and orchestrations share with the library: structs, enumerations and limits of the headers in pto/api, as C has them.

def headers():
    api = os.path.join(source, "pto", "api")
    for name in sorted(os.listdir(api)):
        if name.endswith(".h"):
            with open(os.path.join(api, name), encoding="utf-8") as file:
                text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
            yield name, re.sub(r"^#ifdef __cplusplus$.*?^#(?:endif|else)$", "", text, flags=re.S | re.M)


def shared():
    """C expressions whose values are looked at, by what each is called."""
    asked = {}
    for _, text in headers():
        for name, body in re.findall(r"^ *(?:typedef )?struct (\w+)\s*\{(.*?)^ *\}", text, re.S | re.M):
            fields = [" ".join(field.split()) for field in re.sub(r"^#.*$|__attribute__ \(\(.*?\)\)\)", "", body, flags=re.M).split(";")]
            fields = [field for field in fields if field]
            # One that says how large it is may grow.
            if fields[0] != "size_t size":
                asked[f"struct {name}, size"] = f"sizeof (struct {name})"
            for field in fields:
                member = (re.search(r"\(\*(\w+)\) \(", field) or re.search(r"(\w+)(?:\[\w*\])?$", field))[1]
                asked[f"struct {name}: {field}, at"] = f"offsetof (struct {name}, {member})"
        for body in re.findall(r"^ *(?:typedef )?enum(?: \w+)?\s*\{(.*?)\}", text, re.S | re.M):
            for name in re.findall(r"\b(P\w+) =", body):
                if not name.endswith("_COUNT"):
                    asked[f"enum {name}"] = name
        for name in re.findall(r"^#define (PTO\w+) \(?(?:-?\d+\w*|PTO_\w+)\)? *$", text, re.M):
            asked[f"define {name}"] = name
    return asked


def laid_out():
    asked = shared()
    with tempfile.TemporaryDirectory(prefix="pto-abi-") as directory:
        program, path = os.path.join(directory, "layout"), os.path.join(directory, "layout.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#include <stdio.h>\n" + "".join(f'#include "{name}"\n' for name, _ in headers()))
            file.write("int\nmain (void)\n{\n" + "".join(f'  printf ("%lld\\n", (long long) ({what}));\n' for what in asked.values())
                       + "  return 0;\n}\n")
        run(*os.environ.get("CC", "cc").split(), "-std=gnu17", "-w", "-I" + os.path.join(source, "pto", "api"), path, "-o", program)
        values = run(program).split()
    return [f"{name} {value}" for name, value in zip(asked, values, strict=True)]


def promised():
    with open(ABI, encoding="utf-8") as file:
        return {line.rstrip("\n") for line in file if not line.startswith("#")}


def there():
    return {line for line, *_ in described(NAMESPACE)} | set(laid_out())


NAMESPACE = ElementTree.parse(gir).getroot().find(CORE + "namespace")


class Abi(unittest.TestCase):
    def compare(self, what, was, now):
        lost, new = sorted(was - now), sorted(now - was)
        said = [f"{what}: gone, or another now, and programs need it: {line}" for line in lost]
        said += [f"{what}: new, and not listed: {line}" for line in new]
        if said:
            self.fail("\n".join([*said, HOW]))

    def test_symbols(self):
        names = listed()
        self.assertEqual(set(names), {soname(library), soname(seeds_library)})
        for path in (library, seeds_library):
            self.compare(os.path.relpath(SYMBOLS, source), set(names[soname(path)]), exported(path))

    def test_thread_locals(self):
        """A program that loads libpto later has a reserve of some 1600 bytes for all such libraries, and kernels take of it."""
        for path in library, seeds_library:
            found = re.search(r"^\s*TLS off.*\n.* memsz (0x[0-9a-f]+)", run("objdump", "-p", path), re.M)
            self.assertLessEqual(int(found[1], 16) if found else 0, 256, path)

    def test_versions(self):
        """The version of a symbol is the one that its comment says, and that its package had."""
        said = {symbol: version for _, symbol, version in described(NAMESPACE) if symbol is not None}
        names = listed()[soname(library)]
        self.assertGreater(len(said), 400)
        for name, package in names.items():
            symbol, version = name.split("@")
            if symbol == version:
                continue
            self.assertEqual(version, f"LIBPTO_{said.get(symbol)}", symbol)
            self.assertEqual(".".join(package.split(".")[:2]), said[symbol], symbol)

    @unittest.skipUnless(sys.maxsize > 2 ** 32, "the list is of machines with 64 bits")
    def test_promises(self):
        now = there()
        # Each kind of thing was found: nothing is well because nothing was looked at.
        for kind, least in (("function", 20), ("method", 300), ("constructor", 20), ("enumeration", 80), ("property", 15), ("class", 10),
                            ("constant", 8), ("callback", 5), ("macro", 10), ("signal", 2), ("struct", 80), ("enum", 30), ("define", 15)):
            self.assertGreaterEqual(sum(line.startswith(kind + " ") for line in now), least, kind)
        self.compare(os.path.relpath(ABI, source), promised(), now)


def write():
    names = listed() if os.path.exists(SYMBOLS) else {}
    with open(os.path.join(source, "meson.build"), encoding="utf-8") as file:
        version = re.search(r"^  version: '(.*)',$", file.read(), re.M)[1]
    lines = []
    for path in (library, seeds_library):
        lines += [f"{soname(path)} {PACKAGE} #MINVER#", "* Build-Depends-Package: libpto-1-dev"]
        known = names.get(soname(path), {})
        lines += [f" {name} {known.get(name, version)}" for name in sorted(exported(path))]
    with open(SYMBOLS, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    now, was = there(), promised() if os.path.exists(ABI) else set()
    with open(ABI, "w", encoding="utf-8") as file:
        file.write("# pto-1.abi: what do programs rely on? A line that goes, or changes, after a release is a new soname.\n"
                   "# SPDX-License-Identifier: LGPL-2.1-or-later\n" + "".join(line + "\n" for line in sorted(now)))
    for line in sorted(was - now):
        print("gone:", line)
    print(f"{len(now - was)} new, {len(was - now)} gone")


if sys.argv[5:] == ["--write"]:
    write()
else:
    tap.main()
