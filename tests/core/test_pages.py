#!/usr/bin/env python3
# test_pages.py: do the pages about the inside keep their size, their words, and to what there is?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test_pages.py SOURCE_ROOT: doc/architecture.md has at most 500 lines, a page on one part 250, none longer than 100 columns. Each file that
they name exists. A word that the glossary has retired is in none of them."""
import os
import re
import sys

COLUMNS = 100
FILE = re.compile(r"`([a-z0-9][a-zA-Z0-9_/-]*\.(?:c|h|py|js|sh|map|abi|md|tsv))`")
# Made up in a sentence about any file.
ANY = {"x.c", "x.h", "x-private.h"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def list_files(root, *folders):
    for folder in folders:
        for path, dirs, names in os.walk(os.path.join(root, folder)):
            dirs[:] = [name for name in dirs if name not in ("build", "__pycache__") and not name.startswith(".")]
            yield from (os.path.join(path, name) for name in names)


def split_glossary(text):
    """The page without its table, the terms, and the retired words."""
    begin = text.index("\n## Glossary")
    end = text.index("\n## ", begin + 1)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text[begin:end].splitlines() if line.startswith("| ")][1:]
    retired = [word.strip() for row in rows for word in row[2].split(",") if word.strip()]
    return text[:begin] + text[end:], [row[0] for row in rows], retired


def holds(text, word):
    return re.search(rf"\b{re.escape(word)}s?\b", text) is not None


class Report:
    def __init__(self):
        self.n = 0

    def __call__(self, name, wrong):
        self.n += 1
        for line in wrong:
            print(f"# {line}")
        print("not ok" if wrong else "ok", self.n, f"/pto/pages/{name}")


def main():
    root = sys.argv[1]
    report = Report()
    names = ["architecture.md"] + sorted(name for name in os.listdir(os.path.join(root, "doc")) if name.startswith("inside-"))
    pages = {name: read(os.path.join(root, "doc", name)) for name in names}
    texts = dict(pages)
    texts["architecture.md"], terms, retired = split_glossary(pages["architecture.md"])

    wrong = []
    for name, text in pages.items():
        lines = text.splitlines()
        most = 500 if name == "architecture.md" else 250
        if len(lines) > most:
            wrong.append(f"{name}: {len(lines)} lines, and it may have {most}")
        wrong += [f"{name}:{n}: {len(line)} columns" for n, line in enumerate(lines, 1) if len(line) > COLUMNS]
    report("size", wrong)

    there = [os.path.relpath(path, root) for path in list_files(root, "pto", "sim", "tests", "examples", "doc", "po")]
    report("files", [f"{name}: there is no {file}" for name, text in pages.items() for file in FILE.findall(text)
                     if file not in ANY and not any(path == file or path.endswith("/" + file) for path in there)])

    wrong = [f"{a} stands behind {b}" for a, b in zip(terms[1:], terms) if a.lower() < b.lower()]
    wrong += [f"{word} is a term, and retired" for word in retired if word in terms]
    report("glossary", wrong)

    report("words", [f"{name}: \"{word}\" is retired" for name, text in texts.items() for word in retired if holds(text, word)])
    print(f"1..{report.n}")


if __name__ == "__main__":
    main()
