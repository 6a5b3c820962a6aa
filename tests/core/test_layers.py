#!/usr/bin/env python3
# test_layers.py: does every folder include only what it may?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test_layers.py SOURCE_ROOT: follows each #include of a file in quotes to the file that it names. An #include in angle brackets is judged
by its name. The table says which folders, or single files, each folder may include; a folder may always include itself."""
import os
import re
import sys
import tempfile

NO_GLIB = r"(glib|gio|gobject|gmodule|json-glib|girepository|pto/|pto\.h)"
PRIVATE = r"pto/(?!pto\.h$)|sim/"
BELOW = "public api exec core process sim common base "
# The values, and what is made of them.
THINGS = BELOW + "values compile callable graph mpi "

# folder: what it may include; "public" are the headers in pto/ itself, which are installed.
FOLDERS = {
    "exec": "",
    "core": "api exec/pto-exec.h exec/pto-atomic.h exec/heavy-fence.h exec/nearest-word.h exec/translate.h",
    "process": "api exec core",
    "sim": "api exec core",
    "api": "",
    "common": "public api exec",
    "base": "public api exec core common",
    "values": BELOW,
    "compile": BELOW,
    "callable": BELOW + "values compile mpi",
    "graph": THINGS,
    "mpi": BELOW + "values",
    "remote/wire": BELOW + "values",
    "remote/launch": BELOW + "remote/wire",
    "trace/model": BELOW,
    "trace/answer": BELOW + "trace/model",
    "trace/export": BELOW + "trace/model",
    "trace/predict": BELOW + "compile callable trace/model trace/answer",
    # The sides of a worker, each on those before it.
    "machine": THINGS + "trace/model trace/answer trace/predict remote/launch",
    "monitor": BELOW + "machine",
    "remote/parent": THINGS + "trace/model remote/wire remote/launch machine monitor",
    "orchestrator": THINGS + "remote/launch machine",
    "worker": THINGS + "trace/model remote/launch machine monitor remote/parent orchestrator",
    "remote/worker": THINGS + "remote/wire worker monitor",
    "programs/pto": "public api common exec/nearest-word.h exec/needed-calls.h",
    "programs/pto-remote": "public api common",
    "programs/pto-mpi-rank": "api exec core process sim/reduction-operators.h",
    "modules/ucx": "common/fabric-module.h",
    "seeds": "public api",
    "gi": "",
    "pch": "",
    "examples": "api",
}
# What their files may not include from the outside.
REFUSED = dict.fromkeys(("exec", "core", "process", "sim", "api", "programs/pto-mpi-rank"), NO_GLIB)
REFUSED.update(dict.fromkeys(("programs/pto", "programs/pto-remote", "modules/ucx", "seeds", "examples"), PRIVATE))
# The names under which folders were tested first.
TITLES = {"programs/pto": "tools"}
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]*)[>"]')


def find_directory(folder):
    return folder if folder in ("sim", "examples") else os.path.join("pto", folder)


def get_folder(path):
    """Returns the folder of a file, as the table calls it; None if the table has none."""
    directory = os.path.dirname(path)
    if directory == "pto":
        return "public"
    while directory:
        name = directory[4:] if directory.startswith("pto/") else directory
        if name in FOLDERS and find_directory(name) == directory:
            return name
        directory = os.path.dirname(directory)
    return None


def list_files(root, folder):
    """The sources of a folder: those below it that are in no folder of their own."""
    for directory, _, names in os.walk(os.path.join(root, find_directory(folder))):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(directory, name), root)
            if name.endswith((".c", ".h", ".S", ".cpp", ".hpp", ".cc")) and (get_folder(path) == folder or folder == "examples"):
                yield path


def list_includes(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return [match.groups() for match in map(INCLUDE.match, file) if match]


def resolve(root, path, name):
    """The file that is included, from the root. None: the build makes it."""
    for directory in os.path.dirname(path), "pto/programs/pto", "", "pto", "pto/api":
        if directory == "pto/programs/pto" and not path.startswith(directory):
            continue
        found = os.path.normpath(os.path.join(directory, name))
        if os.path.isfile(os.path.join(root, found)):
            return found
    return None


def find_violations(root, folder):
    """'file: included' of each include that a folder must not have."""
    allowed = FOLDERS[folder].split()
    for path in list_files(root, folder):
        for kind, name in list_includes(root, path):
            if kind == "<":
                if re.match(REFUSED.get(folder, "$^"), name):
                    yield f"{path}: <{name}>"
                continue
            found = resolve(root, path, name)
            if found is None:
                if name not in ("config.h", "pto-enums.h", "pto-version.h", "pto-report-resources.h"):
                    yield f"{path}: {name}, which is nowhere"
            elif get_folder(found) not in [folder, *allowed] and found.removeprefix("pto/") not in allowed:
                yield f"{path}: {found}"


def find_circle(edges):
    """Returns a circle, or None. edges: each name, with the names that it includes."""
    state = {}

    def visit(name, way):
        state[name] = "open"
        for other in sorted(edges.get(name, ())):
            if state.get(other) == "open":
                return [*way[way.index(other):], other] if other in way else [name, other]
            if other not in state:
                circle = visit(other, [*way, other])
                if circle:
                    return circle
        state[name] = "over"
        return None

    for name in sorted(edges):
        circle = visit(name, [name]) if name not in state else None
        if circle:
            return circle
    return None


def get_unit(path):
    """x.c, x.h and x-private.h are one."""
    return os.path.splitext(path)[0].removesuffix("-private")


def find_circle_of_files(root, folder):
    edges = {}
    for path in list_files(root, folder):
        for kind, name in list_includes(root, path):
            found = resolve(root, path, name) if kind == '"' else None
            if found and get_folder(found) == folder and get_unit(found) != get_unit(path):
                edges.setdefault(get_unit(path), set()).add(get_unit(found))
    return find_circle(edges)


def find_circle_of_folders(folders):
    edges = {}
    for folder, allowed in folders.items():
        whole = {name for name in (word if word in FOLDERS else get_folder("pto/" + word) for word in allowed.split()) if name in FOLDERS}
        edges[folder] = whole - {folder}
    return find_circle(edges)


def find_folders(root):
    """Finds folders that hold sources and are not in the table."""
    for top in "pto", "sim":
        for directory, _, names in os.walk(os.path.join(root, top)):
            path = os.path.relpath(directory, root)
            if path != "pto" and any(name.endswith((".c", ".h")) for name in names) and not get_folder(os.path.join(path, "x")):
                yield path


def find_plain_errors(root):
    """An error of the objects is UTF-8 because its functions to set one are those of base/error.h. Files that are also built elsewhere
    know paths only and display them."""
    for folder in FOLDERS:
        if folder in REFUSED or folder in ("common", "trace/model", "trace/answer", "trace/export"):
            continue
        for path in list_files(root, folder):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                text = file.read()
            if (path.endswith(".c") and re.search("g_(set|prefix)_error", text) and path != "pto/base/error.c"
                    and not re.match("pto/trace/predict/(what-if|replay)", path) and '#include "base/error.h"' not in text
                    and '#include "error.h"' not in text):
                yield path


def plant(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def plant_all(root):
    """A tree with one wrong include in each folder, beside a right one."""
    for path in "pto/core/engine.h", "pto/exec/exec-private.h", "pto/pto-worker.h", "pto/api/tensor.h", "pto/worker/worker.h", "pto/programs/x.h":
        plant(root, path, "")
    for folder in FOLDERS:
        wrong = "worker/worker.h" if "worker" not in FOLDERS[folder].split() and folder != "worker" else "../programs/x.h"
        plant(root, f"{find_directory(folder)}/a.c", f'#include "a.h"\n # include "{wrong}"\n')
        plant(root, f"{find_directory(folder)}/a.h", "")
    plant(root, "pto/core/b.c", '#include "../exec/exec-private.h"\n')
    plant(root, "sim/b.c", "#include <glib.h>\n")
    plant(root, "pto/programs/pto/run/b.c", '#include <pto/pto.h>\n#include <pto/core/engine.h>\n')
    plant(root, "pto/strange/b.c", "")
    plant(root, "pto/process/c.c", '#include "d-private.h"\n')
    plant(root, "pto/process/d-private.h", '#include "e.h"\n')
    plant(root, "pto/process/d.c", "")
    plant(root, "pto/process/e.h", '#include "c.h"\n')
    plant(root, "pto/process/c.h", "")
    plant(root, "pto/worker/b.c", "g_set_error (")


class Report:
    def __init__(self):
        self.n = 0
        self.failed = 0

    def __call__(self, title, found, expected=()):
        self.n += 1
        if sorted(found) != sorted(expected):
            self.failed += 1
            print(*(f"# {line}" for line in found), sep="\n")
        print("ok" if sorted(found) == sorted(expected) else "not ok", self.n, f"/pto/layers/{title}")


def main():
    root = os.path.abspath(sys.argv[1])
    report = Report()

    for folder in FOLDERS:
        report(TITLES.get(folder, folder), list(find_violations(root, folder)))
    report("every-folder", list(find_folders(root)))
    report("no-circle/folders", find_circle_of_folders(FOLDERS) or [])
    for folder in FOLDERS:
        if folder != "examples":
            report(f"no-circle/{folder}", find_circle_of_files(root, folder) or [])
    report("errors-are-text", list(find_plain_errors(root)))
    # The test itself: it finds what was planted, and nothing else.
    with tempfile.TemporaryDirectory() as tree:
        plant_all(tree)
        more = {"core": ["pto/core/b.c: pto/exec/exec-private.h"], "sim": ["sim/b.c: <glib.h>"],
                "programs/pto": ["pto/programs/pto/run/b.c: <pto/core/engine.h>"]}
        for folder in FOLDERS:
            wrong = "pto/worker/worker.h" if "worker" not in FOLDERS[folder].split() and folder != "worker" else "pto/programs/x.h"
            report(f"finds-a-wrong-one/{TITLES.get(folder, folder)}", list(find_violations(tree, folder)),
                   [f"{find_directory(folder)}/a.c: {wrong}", *more.get(folder, [])])
        report("finds-a-folder", list(find_folders(tree)), ["pto/programs", "pto/strange"])
        report("finds-a-circle", find_circle_of_files(tree, "process") or [],
               ["pto/process/c", "pto/process/d", "pto/process/e", "pto/process/c"])
        report("finds-a-circle-of-folders", find_circle_of_folders({**FOLDERS, "machine": FOLDERS["machine"] + " orchestrator"}) or [],
               ["machine", "orchestrator", "machine"])
        report("finds-an-error-that-is-no-text", list(find_plain_errors(tree)), ["pto/worker/b.c"])
    print(f"1..{report.n}")
    return 1 if report.failed else 0


sys.exit(main())
