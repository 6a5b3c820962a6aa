# test_interface.py: is the same interface in the library, in its introspection data and in its headers?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: library, GIR, source directory of the library, build directory. The scanner drops what it can not parse and
# says so on standard error only, with status 0.
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import tap

library, gir, source, build = sys.argv[1:5]


CORE = "{http://www.gtk.org/introspection/core/1.0}"
GLIB = "{http://www.gtk.org/introspection/glib/1.0}"
C = "{http://www.gtk.org/introspection/c/1.0}"
SYMBOLS = {CORE + name for name in ("alias", "bitfield", "callback", "class", "constant", "constructor", "enumeration", "function",
                                    "function-macro", "interface", "method", "property", "record", "union", "virtual-method")}


def public_headers():
    for name in sorted(os.listdir(source)):
        if re.fullmatch(r"pto-[a-z-]+\.h", name) and not name.endswith("-private.h"):
            with open(os.path.join(source, name), encoding="utf-8") as file:
                yield name, file.read()


def symbols(element, path=""):
    """Whatever of the introspection data has a name that a program can use, but for fields and members of enumerations."""
    for child in element:
        name = path + child.get("name", "")
        if child.tag in SYMBOLS or child.tag == GLIB + "signal":
            if child.get(GLIB + "is-gtype-struct-for") is None:
                yield name, child
        if child.tag in (CORE + "class", CORE + "record", CORE + "enumeration", CORE + "interface", CORE + "bitfield"):
            yield from symbols(child, name + ".")


class Interface(unittest.TestCase):
    def test_symbols_are_described(self):
        output = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
        exported = {line.split()[-1].split("@")[0] for line in output.splitlines() if line.split()[-2] != "A"}  # versions
        with open(gir, encoding="utf-8") as file:
            text = file.read()
        functions = re.findall(r"<(?:function|method|constructor)\s[^>]*?c:identifier=\"(\w+)\"", text)
        types = re.findall(r"glib:get-type=\"(\w+)\"", text)
        self.assertEqual(exported, set(functions) | set(types))
        self.assertGreater(len(exported), 100)

    def test_choices(self):
        """JavaScript's override has to know each argument that is a choice, or a list of them, to refuse what is none."""
        root = ElementTree.parse(gir).getroot()
        kinds = {kind.get("name") for tag in ("enumeration", "bitfield") for kind in root.iter(CORE + tag)}
        wanted, wanted_lists = set(), set()
        for name, symbol in symbols(root.find(CORE + "namespace")):
            given = [p for p in symbol.findall(f"{CORE}parameters/{CORE}parameter") if p.get("direction") != "out"]
            if symbol.get("introspectable") == "0" or symbol.get("moved-to") or symbol.tag == CORE + "callback":
                continue
            sizes = {array.get("length") for p in given for array in p.findall(CORE + "array")}
            given = [p for i, p in enumerate(given) if str(i) not in sizes]
            wanted |= {(name, str(i), kind.get("name")) for i, p in enumerate(given) for kind in p.iter(CORE + "type")
                       if kind.get("name") in kinds}
            wanted_lists |= {(name, str(i), p.get("name")) for i, p in enumerate(given)
                             if p.find(f"{CORE}array/{CORE}type[@name='guint64']") is not None}
        with open(os.path.join(source, "gi", "overrides", "Pto.js"), encoding="utf-8") as file:
            text = file.read()
        for table, these, n in ("choices", wanted, 20), ("lists", wanted_lists, 10):
            table = re.search(rf"^const {table} = {{$(.*?)^}};$", text, re.M | re.S)[1]
            known = {(line[1], *pair) for line in re.finditer(r"^    '(\w+\.\w+)': (\[.*\]),$", table, re.M)
                     for pair in re.findall(r"\[(\d), '(\w+)'\]", line[2])}
            self.assertEqual(these, known)
            self.assertGreater(len(known), n)

    def test_verbs_say_who_owns(self):
        """What a get gives belongs to what it is asked of; what a dup, a ref or a list gives belongs to the caller."""
        root = ElementTree.parse(gir).getroot()
        asked = {"none": 0, "full": 0}
        for method in root.iter(CORE + "method"):
            verb, result = method.get("name").split("_")[0], method.find(CORE + "return-value")
            wanted = {"get": "none", "dup": "full", "ref": "full", "list": "full"}.get(verb)
            if wanted is not None and method.get("name") != "ref":
                asked[wanted] += 1
                self.assertEqual(result.get("transfer-ownership"), wanted, method.get(C + "identifier"))
                for out in method.findall(f"{CORE}parameters/{CORE}parameter[@direction='out']"):
                    if out.get("caller-allocates") != "1":
                        self.assertEqual(out.get("transfer-ownership"), "full" if out.find(CORE + "type") is not None else wanted,
                                         method.get(C + "identifier"))
        self.assertGreater(asked["none"], 50)
        self.assertGreater(asked["full"], 10)

    def test_objects_say_what_they_are(self):
        root = ElementTree.parse(gir).getroot()
        classes = {kind.get("name"): kind for tag in ("class", "record") for kind in root.iter(CORE + tag)
                   if kind.get(GLIB + "get-type") is not None}
        for name, kind in classes.items():
            line = kind
            while line is not None and line.find(f"{CORE}method[@name='to_string']") is None:
                line = classes.get(line.get("parent"))
            self.assertIsNotNone(line, name)

    def test_types_are_described(self):
        with open(gir, encoding="utf-8") as file:
            text = file.read()
        described = set(re.findall(r"c:type=\"(Pto\w+)\"", text))
        for name, header in public_headers():
            declared = re.findall(r"^} (Pto\w+);", header, re.M) + re.findall(r"^typedef struct \w+ (Pto\w+);", header, re.M)
            for type_name in declared:
                self.assertIn(type_name, described, name)

    def test_enumerations_are_of_their_type_in_c(self):
        """What the introspection data calls an enumeration is no plain integer in the header."""
        namespace = ElementTree.parse(gir).getroot().find(CORE + "namespace")
        enumerations = {element.get("name") for tag in ("enumeration", "bitfield") for element in namespace.findall(CORE + tag)}
        used = [(element.get("name"), type_.get(C + "type") or "") for element in namespace.iter()
                for type_ in element.findall(CORE + "type") if type_.get("name") in enumerations]
        self.assertGreater(len(used), 30)
        self.assertEqual([use for use in used if use[1] and "Pto" not in use[1]], [])

    def test_symbols_say_since_when(self):
        namespace = ElementTree.parse(gir).getroot().find(CORE + "namespace")
        since = {name: element.get("version") for name, element in symbols(namespace)}
        self.assertGreater(len(since), 200)
        self.assertEqual([name for name, version in since.items() if not re.fullmatch(r"\d+\.\d+", version or "")], [])

    def test_declarations_say_since_when(self):
        for name, header in public_headers():
            if name == "pto-macros.h":
                continue
            self.assertNotIn("PTO_AVAILABLE_IN_ALL", header, name)
            code = re.sub(r"/\*.*?\*/|^ *#([^\n]*\\\n)*[^\n]*\n", "", header, flags=re.M | re.S)
            for declaration in re.findall(r"[^;{}]*?\b(?:pto_\w+ \(|G_DECLARE_)[^;]*", code):
                # What is inline is not the library's, but of the program that has the header.
                if not re.search(r"typedef|static inline", declaration) and not declaration.lstrip().startswith("G_DEFINE_"):
                    self.assertRegex(declaration, r"^\s*(?:G_BEGIN_DECLS\s+|\)\s*)?PTO_(?:AVAILABLE|DEPRECATED)_IN_\d+_\d+\b",
                                     name)

    def test_newer_symbols_warn(self):
        """A program that must build with an older version is told what came later, and what is too old for it."""
        commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "pto/Pto-1.gir"], check=True,
                                  capture_output=True, text=True).stdout
        includes = re.findall(r"-I\S+", [line for line in commands.splitlines() if "g-ir-scanner" in line][-1])
        code = "#include <pto/pto.h>\nint main (void) { return (int) pto_get_major_version (); }\n"
        for allowed, text in (("PTO_VERSION_0_1", None), ("G_ENCODE_VERSION (0, 0)", "Not available before 0.1")):
            result = subprocess.run(
                ["cc", *includes, f"-DPTO_VERSION_MIN_REQUIRED={allowed}", f"-DPTO_VERSION_MAX_ALLOWED={allowed}", "-Werror",
                 "-fsyntax-only", "-x", "c", "-"], input=code, cwd=build, capture_output=True, text=True)
            self.assertEqual(result.returncode == 0, text is None, result.stderr)
            self.assertIn(text or "", result.stderr)

    def test_scanner_is_silent(self):
        commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "pto/Pto-1.gir"], check=True,
                                  capture_output=True, text=True).stdout
        command = [line for line in commands.splitlines() if "g-ir-scanner" in line][-1]
        with tempfile.TemporaryDirectory() as directory:
            command = command.replace("--output pto/Pto-1.gir", "--output " + os.path.join(directory, "Pto-1.gir"))
            self.assertIn(directory, command)
            result = subprocess.run(command, shell=True, cwd=build, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0)
        self.assertNotIn("syntax error", result.stderr)
        self.assertNotIn("Warning", result.stderr)

    def test_scanners_constant_stands_alone(self):
        """The scanner of gobject-introspection 1.84 ends at a condition with __GI_SCANNER__ that is not a simple #ifdef or #ifndef."""
        simple = re.compile(r"\s*#\s*ifn?def\s+__GI_SCANNER__\s*(/\*.*\*/\s*)?")
        conditions = [(name, line) for name, header in public_headers()
                      for line in re.findall(r"^[ \t]*#[ \t]*(?:el)?if(?:[^\n]*\\\n)*[^\n]*", header, flags=re.M) if "__GI_SCANNER__" in line]
        self.assertGreater(len(conditions), 0)
        self.assertEqual([condition for condition in conditions if not simple.fullmatch(condition[1])], [])


tap.main()
