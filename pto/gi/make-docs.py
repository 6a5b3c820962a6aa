# make-docs.py: what does help() in Python say of what the library has?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# make-docs.py GIR OUTPUT: the module PtoDocs, whose TEXTS are what the manual says, by symbols of C and by names of types.
import sys
import textwrap
import xml.etree.ElementTree as ElementTree

from gir_text import plain

CORE, C = "{http://www.gtk.org/introspection/core/1.0}", "{http://www.gtk.org/introspection/c/1.0}"
FUNCTIONS = {CORE + tag for tag in ("function", "method", "constructor")}
TYPES = {CORE + tag for tag in ("class", "record", "enumeration", "bitfield")}


def described(element):
    doc = element.find(CORE + "doc")
    return plain(doc.text.strip()) if doc is not None else ""


def of_function(function):
    parts, given = [described(function)], []
    for parameter in function.findall(f"{CORE}parameters/{CORE}parameter"):
        if parameter.get("name") != "error" and described(parameter):
            given.append(textwrap.fill(f"{parameter.get('name')}: {described(parameter)}", 100, subsequent_indent="    "))
    result = function.find(CORE + "return-value")
    if result is not None and described(result):
        given.append(textwrap.fill(f"Returns: {described(result)}", 100, subsequent_indent="    "))
    return "\n\n".join(part for part in (parts[0], "\n".join(given)) if part)


def texts(gir):
    for element in ElementTree.parse(gir).getroot().iter():
        if element.tag in FUNCTIONS and element.get("introspectable") != "0":
            yield element.get(C + "identifier"), of_function(element)
        elif element.tag in TYPES:
            yield element.get("name"), described(element)


def main():
    gir, output = sys.argv[1:]
    with open(output, "w", encoding="utf-8") as file:
        file.write("# PtoDocs.py: what does the manual say of what the library has? Made by make-docs.py.\nTEXTS = {\n")
        file.writelines(f"    {name!r}: {text!r},\n" for name, text in sorted(texts(gir)) if text)
        file.write("}\n")


main()
