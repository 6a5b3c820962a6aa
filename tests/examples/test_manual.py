# test_manual.py: is everything in the manual that was to be in it, and do its links lead somewhere?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: the manual as it was built, the introspection data, are there pictures of the tutorial.
import ast
import html
import json
import os
import re
import sys
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "gi"))
import tap  # noqa: E402

MANUAL, GIR, HAS_PICTURES = sys.argv[1:]
CORE = "{http://www.gtk.org/introspection/core/1.0}"


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def words(page):
    return html.unescape(re.sub(r"<[^>]*>", "", read(MANUAL, page)))


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.chapters = re.findall(r'^  "([a-z-]+)\.md"', read(ROOT, "doc", "pto.toml.in"), re.MULTILINE)
        cls.found = {symbol.get("href") or symbol.get("ident"): symbol["name"] for symbol in json.loads(read(MANUAL, "index.json"))["symbols"]}
        cls.book = ElementTree.parse(os.path.join(MANUAL, os.path.basename(MANUAL) + ".devhelp2")).getroot()

    def test_chapters(self):
        """Each file of doc is a chapter; the search and devhelp know all of them."""
        made = {"tutorial", "headers", "python-api"}
        self.assertEqual({name[:-3] for name in os.listdir(os.path.join(ROOT, "doc")) if name.endswith(".md")} | made, set(self.chapters))
        listed = re.findall(r'<li><a href="([a-z-]+)\.html" title="', read(MANUAL, "index.html")) or \
            re.findall(r'href="([a-z-]+)\.html"', read(MANUAL, "index.html"))
        self.assertEqual([name for name in listed if name in self.chapters][:len(self.chapters)], self.chapters)
        in_book = [sub.get("link") for sub in self.book.iter("{http://www.devhelp.net/book}sub")]
        for name in self.chapters:
            with self.subTest(chapter=name):
                self.assertIn(name + ".html", self.found)
                self.assertIn(name + ".html", in_book)
                self.assertGreater(len(words(name + ".html")), 1000)

    def test_links(self):
        """Every link to a page of the manual leads to one, and to a place in it."""
        pages = {name: read(MANUAL, name) for name in os.listdir(MANUAL) if name.endswith(".html")}
        places = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in pages.items()}
        lost = set()
        for name, text in pages.items():
            for link in map(html.unescape, re.findall(r'(?:href|src)="([^"]+)"', text)):
                page, _, place = link.partition("#")
                page = page or name
                if re.match(r"[a-z]+:", link):
                    continue
                if not os.path.exists(os.path.join(MANUAL, page)) or place and page in places and place not in places[page]:
                    lost.add((name, link))
        self.assertEqual(lost, set())
        self.assertEqual([name for name, text in pages.items() if re.search(r"\]\([a-z-]+\.(?:md|html)|\[\w+@Pto", words(name))], [])
        for link in self.found:
            if link and ".html#" in link:
                page, _, place = link.partition("#")
                self.assertIn(place, places[page], link)

    def test_headers(self):
        """Every function, type and macro that an orchestration or a kernel sees."""
        names = set(self.found.values())
        keywords = {keyword.get("name") for keyword in self.book.iter("{http://www.devhelp.net/book}keyword")}
        text, api = words("headers.html"), os.path.join(ROOT, "pto", "api")
        for header in sorted(os.listdir(api)):
            if not header.endswith(".h") or header == "pto_access.h":  # which is not for programs
                continue
            with self.subTest(header=header):
                self.assertIn(header, names)
                source = read(api, header)
                functions = set(re.findall(r"^ *static inline [^\n]*\n *(\w+) \(", source, re.MULTILINE))
                types = set(re.findall(r"^ *(?:typedef )?(?:struct|enum|class) (?:class )?(PT\w+|Tensor\w*|pto_\w+)\b", source, re.MULTILINE))
                macros = set(re.findall(r"^#define ((?:PTO2_SCOPE|PTO2_MANUAL_SCOPE|PTO2_KERNEL_\w+|PTO_MAX_\w+|LOG_\w+|T(?:PUSH|POP)))\b", source, re.MULTILINE))
                self.assertGreater(len(functions | types | macros), 0)
                wanted = {name for name in functions | types | macros if not name.endswith("_")}
                self.assertEqual(wanted - names, set())
                self.assertEqual(wanted - keywords, set())
        self.assertIn("in C the block is the body of a loop that goes round once", text)

    def test_python(self):
        """Every public class, method and function of the override that says what it is."""
        names, overrides = set(self.found.values()), os.path.join(ROOT, "pto", "gi", "overrides")
        checked = 0
        for name in sorted(os.listdir(overrides)):
            if not name.endswith(".py") or name.startswith("PtoSeeds"):
                continue
            for node in ast.parse(read(overrides, name)).body:
                if not isinstance(node, ast.ClassDef) or node.name.startswith("_") or \
                        not any(ast.unparse(base) == f"Pto.{node.name}" for base in node.bases):
                    continue
                self.assertIn(f"Pto.{node.name}", names)
                for item in node.body:
                    if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and not item.name.startswith("_"):
                        self.assertIn(f"{node.name}.{item.name}", names)
                        checked += 1
        self.assertGreater(checked, 60)
        self.assertLessEqual({"Pto.kernel", "Pto.sub", "Pto.Error", "KernelFunction()", "Pto.Worker()"}, names)
        self.assertIn("Pto.WorkerLostError", words("python-api.html"))

    def test_errors(self):
        """Each code has a section, under its class in Python; and no section is of one that there is not."""
        namespace = ElementTree.parse(GIR).getroot().find(CORE + "namespace")
        codes = {member.get("name").upper() for e in namespace.findall(CORE + "enumeration") if e.get("name") == "Error"
                 for member in e.findall(CORE + "member")}
        self.assertEqual(set(re.findall(r"^### ([A-Z_]+)$", read(ROOT, "doc", "errors.md"), re.MULTILINE)), codes)
        for section in re.split(r"^### ", read(ROOT, "doc", "errors.md"), flags=re.MULTILINE)[1:]:
            self.assertRegex(section, r"\A[A-Z_]+\n\n`Pto\.\w+`")

    def test_sources(self):
        """What a comment gives as its source can be followed."""
        plain = re.compile(r"Source:[^.]*?seed\s+00\d")
        links = 0
        for name in os.listdir(MANUAL):
            if name.endswith(".html") and name not in ("sources.html", "seeds.html"):
                text = read(MANUAL, name)
                links += text.count('href="sources.html#seed-')
                self.assertNotRegex(re.sub(r"<a [^>]*>.*?</a>", "", text, flags=re.DOTALL), plain, name)
        self.assertGreater(links, 100)

    def test_pictures(self):
        """Those of the tutorial are of this build, and so is the one that README.md has."""
        text = read(MANUAL, "tutorial.html")
        self.assertEqual(read(MANUAL, "attention.svg"), read(ROOT, "doc", "attention.svg"))
        if HAS_PICTURES != "true":
            self.skipTest("the build could not run the tutorial")
        pictures = [f"tutorial-{i}.svg" for i in range(1, 8)]
        self.assertEqual(re.findall(r'src="([^"]+\.svg)"', text), pictures)
        for name in pictures:
            self.assertIn("</svg>", read(MANUAL, name))
        self.assertRegex(words("tutorial.html"), r"as they come [\d.]+ us, the long one first [\d.]+ us")


tap.main()
