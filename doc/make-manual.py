# make-manual.py: what does gi-docgen make the manual of?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Puts all pages and pictures into one directory, and runs gi-docgen on that: the chapters of doc, with the languages of their
# snippets only; pages of the headers in pto/api, of the Python layer, and of the tutorial; and the introspection data, in which what
# a comment gives as its source is a link. What gi-docgen may call a mistake ends the build.
import argparse
import ast
import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap

sys.dont_write_bytecode = True  # nothing of the build goes into the sources
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# What a program, an orchestration, a kernel or a reference includes.
HEADERS = ["pto_orchestration_api.h", "tensor.h", "pto_block.h", "pto_build_graph.h", "pto_reference.h", "pto_limits.h"]
FENCE = re.compile(r"^(```+)(\S*)(.*)$")
LANGUAGES = {"": "text", "output": "text", "console": "text", "sh": "bash"}


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def write(text, *path):
    with open(os.path.join(*path), "w", encoding="utf-8") as file:
        file.write(text)


def source_links(text):
    """"seed 003 section 4" is a link to what is said of it."""
    def link(match):
        number, first = match[1], match[2]
        anchor = f"seed-{number}" + (f"-section-{re.match('[0-9]+[bc]?', first)[0]}" if first else "")
        return f"[{' '.join(match[0].split())}](sources.html#{anchor})"
    return re.sub(r"seed\s+(00[0-4])(?:\s+sections?\s+([0-9]+(?:\.[0-9]+)?b?c?(?:\s+and\s+[0-9.]*[0-9])?))?", link, text)


def gir(text):
    """Links in what comments say of their sources; the sentence ends before the next one begins."""
    def sentence(match):
        return match[1] + source_links(match[2])
    return re.sub(r"(Source:)(.*?)(?=\.\s|\.?</doc>|Thread safety:)", sentence, text, flags=re.DOTALL)


def page(text):
    """A chapter as gi-docgen takes it: a title, languages that it knows, links to pages and not to their sources."""
    lines, inside = [], False
    for line in re.sub(r"<!--.*?-->\n*", "", text, flags=re.DOTALL).splitlines():
        fence = FENCE.match(line)
        if fence:
            inside = not inside
            line = fence[1] + LANGUAGES.get(fence[2], fence[2]) if inside else fence[1]
        elif not inside:
            line = re.sub(r"\]\(([a-z-]+)\.md(#[^)]*)?\)", r"](\1.html\2)", line)
        lines.append(line)
    text = "\n".join(lines) + "\n"
    if not text.startswith("Title:"):
        text = f"Title: {re.search('^# (.*)', text, re.MULTILINE)[1]}\n\n" + text
    return text


# The headers.

COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
FUNCTION = re.compile(r"static inline ([^\n;{]+)\n(\w+) \(([^{;]*?)\)\n\{", re.DOTALL)
DEFINE = re.compile(r"#define (\w+)((?:\([^)]*\))?)((?:[^\n]*\\\n)*[^\n]*)")
TYPE = re.compile(r"((?:typedef )?(?:enum|struct|class)\b[^;{(]*\{)", re.DOTALL)


def plain(comment):
    """The words of a comment: paragraphs, and lines that are set in as they are."""
    lines = [re.sub(r"^\s*\*? ?", "", line, count=1) if i else line.strip() for i, line in enumerate(comment.strip("*").splitlines())]
    return textwrap.dedent("\n".join(line.rstrip() for line in lines)).strip()


def marked(text):
    """What looks like a function or a constant in a comment is set as one."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        if all(line.startswith("  ") for line in lines):
            paragraphs.append("```text\n" + textwrap.dedent(paragraph) + "\n```")
            continue
        paragraph = re.sub(r"(?<![`\w])((?:\w+::)?[a-zA-Z_]\w*\(\)|PTO2?_[A-Z_0-9]+\b|\w+\.h\b)(?!`)", r"`\1`", paragraph)
        paragraph = re.sub(r"`(PTO2_(?:MANUAL_)?SCOPE)` (\(rt\)(?: \{ \.\.\. \})?)", r"`\1 \2`", paragraph)
        paragraphs.append(source_links(paragraph))
    return "\n\n".join(paragraphs)


def body(text, start):
    """To the brace that closes the first one, and what follows it up to the semicolon."""
    depth, i = 0, text.index("{", start)
    while True:
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        i += 1
        if depth == 0:
            return text[start:text.index(";", i) + 1]


def header(name):
    """Everything that is public in a header, in its order: (kind, name, declaration, comment)."""
    text = read(ROOT, "pto", "api", name)
    text = "\n".join(line[2:] if line.startswith("  ") and inside else line
                     for line, inside in zip(text.splitlines(), within_extern(text))) + "\n"
    items, seen, position = [], set(), 0
    intro = plain(COMMENT.match(text)[1])
    position = COMMENT.match(text).end()
    comment = ""
    while position < len(text):
        rest = text[position:]
        step = re.match(r"\s+|//[^\n]*", rest)
        if step:
            if step[0].count("\n") > 1:
                comment = ""
            position += step.end()
            continue
        step = COMMENT.match(rest)
        if step:
            comment = plain(step[1])
            position += step.end()
            continue
        step = FUNCTION.match(rest)
        if step:
            if not step[2].endswith("_"):
                items.append(("function", step[2], f"{step[1].strip()}\n{step[2]} ({step[3]});", comment))
            position += len(body_of_function(rest, step.end() - 1))
            comment = ""
            continue
        step = DEFINE.match(rest)
        if step:
            is_own_place = "pto2_rt_at (" in step[3] or re.search(r"_at \(\(rt\), __FILE__", step[3])
            if not step[1].endswith("_") and step[1] not in ("PTO_LIMITS_H", "__gm__", "__aicore__") and not is_own_place:
                value = re.sub(r"\s*/\*.*?\*/", "", step[3], flags=re.DOTALL)
                aside = COMMENT.search(step[3])
                hidden = "_ (" in value or "_at (" in value or "_begin," in value
                items.append(("macro", step[1], f"#define {step[1]}{step[2]}{'' if hidden else value}".rstrip(),
                              comment or (plain(aside[1]) if aside else "")))
            position += step.end()
            if not re.match(r"\n#define", text[position:]):
                comment = ""
            continue
        step = TYPE.match(rest)
        if step:
            whole = body(rest, 0)
            known = re.match(r"(?:typedef )?(?:enum|struct|class)\s+(?:class )?(\w+)", whole)
            called = re.search(r"\}\s*(\w+);$", whole)
            title = called[1] if called else known[1] if known else re.search(r"\b(\w+)\b", whole.split("{", 1)[1].split("*/")[-1] if
                                                                              "=" not in whole else re.search(r"(\w+) =", whole)[0])[1]
            prose = comment
            if title not in seen:
                items.append(("type", title, clean(whole), prose))
            seen.add(title)
            position += len(whole)
            comment = ""
            continue
        step = re.match(r"typedef [^;{]*?(\w+);", rest, re.DOTALL)
        if step:
            items.append(("type", step[1], step[0], comment))
            position += step.end()
            comment = ""
            continue
        position += rest.index("\n") + 1 if "\n" in rest else len(rest)
        if not rest.startswith(("#if", "#endif", "#else")):
            comment = ""
    whole = [symbol for kind, symbol, declaration, _ in items if kind == "type" and "{" in declaration]
    joined = {}
    for kind, symbol, declaration, comment in items:
        if kind == "type" and "{" not in declaration and symbol in whole:
            continue  # told before it is said what it is
        if symbol in joined:  # once for C++, once for C
            known = joined[symbol]
            joined[symbol] = (*known[:2], known[2] if declaration == known[2] else f"/* C++ */\n{known[2]}\n/* C */\n{declaration}",
                              known[3] if comment in known[3] else f"{known[3]}\n\n{comment}")
        else:
            joined[symbol] = (kind, symbol, declaration, comment)
    return intro, list(joined.values())


def within_extern(text):
    """For each line: is it set in by the braces of extern "C"?"""
    inside, found = [], False
    for line in text.splitlines():
        if line.startswith('extern "C"'):
            found = True
        elif line.startswith(("} /* extern", "}\n")) or (line == "}" and found and inside and not inside[-1]):
            found = False
        inside.append(found and line.startswith("  "))
    return inside


def body_of_function(text, brace):
    depth, i = 0, brace
    while True:
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        i += 1
        if depth == 0:
            return text[:i]


def clean(declaration):
    """Without what only compilers read."""
    declaration = re.sub(r"\n#if defined\(__GNUC__\)\n.*?#endif\n\s*;", ";", declaration, flags=re.DOTALL)
    if declaration.startswith(("class", "struct Aicpu")):  # functions in it are told, not shown
        declaration = re.sub(r"\n\nprivate:.*?\n\};", "\n};", declaration, flags=re.DOTALL)
        declaration = re.sub(r"(?:\s*: rt_? \(\w+\))?\s*\{[^{}]*\}", ";", declaration[:-2].replace("\n{", "\n\x01")).replace("\x01", "{") + "};"
        declaration = re.sub(r"\};\Z", "};", declaration)
    return declaration.strip()


def headers_page():
    out = ["Title: Headers for kernels and orchestrations", "", "# Headers for kernels and orchestrations", "",
           "What kernels, orchestrations and references in C and C++ see. The headers are in the directory that `pkg-config "
           "--variable=apidir pto-1` prints; every compilation by libpto finds them. They depend on the C library only, and are valid C17 "
           "and C++17. [Tasks, tensors, scopes](tasks.html) shows them at work, [Get started](start.html) a whole example. This page is made of "
           "the comments in the headers.", ""]
    for name in HEADERS:
        intro, items = header(name)
        title, _, rest = intro.partition("\n")
        question = title.split(": ", 1)[1]
        paragraphs = [p for p in rest.strip().split("\n\n") if not p.startswith("SPDX")]
        out += [f"## {name}", "", f"*{question[0].upper()}{question[1:]}*", "", *(marked(p) + "\n" for p in paragraphs)]
        # Those that no comment explains go with the one above them.
        for kind, symbol, declaration, comment in items:
            if comment.startswith("*") or re.match(rf"\*?\s*{symbol}:", comment):  # as GObject's comments are
                comment = re.sub(r"\n+Since: .*", "", re.sub(r"^\*?\s*\w+:\s*", "", comment))
            out += [f"### {symbol}", "", "```c", declaration, "```", ""]
            if comment:
                out += [marked(comment), ""]
    return "\n".join(out)


# The Python layer.

def load(path, name):
    sys.path.insert(0, os.path.dirname(path))  # for what it has beside it
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def signature(node):
    text = ast.unparse(ast.FunctionDef(node.name, node.args, [ast.Expr(ast.Constant(...))], [], node.returns, None, lineno=0))
    return re.sub(r":\s*\.\.\.$", "", text)


def declared(class_, node):
    """A function as one writes it: lines, one for each way to call it."""
    decorators = {ast.unparse(d) for d in node.decorator_list}
    if "property" in decorators:
        return f"{node.name}: {ast.unparse(node.returns)}"
    word = signature(node)
    if class_ and "staticmethod" not in decorators:
        word = re.sub(r"\(self(?:: \w+)?(?:, )?", "(", word, count=1)
    word = word.replace("def ", "", 1)
    if class_ and decorators & {"staticmethod", "classmethod"}:
        word = f"Pto.{class_}.{word}"
    return "\n".join(textwrap.wrap(word, 76, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False))


def python_page(gir_path, pyi_path, overrides):
    """What the override defines, with the types of Pto.pyi."""
    make_pyi = load(os.path.join(ROOT, "pto", "gi", "make-pyi.py"), "make_pyi")
    own = make_pyi.Override(overrides)
    maker = make_pyi.Interface(make_pyi.Gir(gir_path), own)
    tree = ast.parse(read(pyi_path))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    out = ["Title: Python, name by name", "", "# Python, name by name", "",
           "What Python has beyond the [reference](index.html), whose classes, methods and properties are all there: `worker.trace` is "
           "`worker.get_trace()`, and what is optional at the end of a call can be left out. [Python](python.html) tells how it is "
           "used. This page is made of the override and of `Pto.pyi`, which has all names; types that begin with `_` are explained at its end.", ""]
    plain_functions = [node.name for node in own.plain if isinstance(node, ast.FunctionDef)]
    for name in sorted(plain_functions):
        out += [f"## Pto.{name}", "", "```python", declared("", functions[name]).replace(name, "Pto." + name, 1), "```", "",
                prose(ast.get_docstring(functions[name])), ""]
    for name in sorted(own.classes):
        node = classes.get(name)
        if node is None:
            continue
        made = maker.own(name)
        ways = {}
        for item in node.body:
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and item.name in made:
                ways.setdefault(item.name, []).append(item)
        ways = {n: w for n, w in ways.items() if not n.startswith("__") or n == "__init__" or any(ast.get_docstring(i) for i in w)}
        doc = ast.get_docstring(own.classes[name])
        if not ways and not doc:
            continue
        out += [f"## Pto.{name}", ""]
        if doc:
            out += [prose(doc), ""]
        for method, items in ways.items():
            lines = []
            for item in items:
                line = declared(name, item)
                if method == "__init__":
                    line = line.replace("__init__", f"Pto.{name}", 1).replace(" -> None", "")
                if line not in lines:
                    lines.append(line)
            called = {"__init__": f"Pto.{name}()", "__call__": f"{name}()"}.get(method, f"{name}.{method}")
            out += [f"### {called}", "", "```python", *lines, "```", ""]
            doc = next((ast.get_docstring(item) for item in items if ast.get_docstring(item)), None)
            if doc is None and made[method].name != method:
                doc = f"The same as `{made[method].name}`."
            if doc:
                out += [prose(doc), ""]
    errors = [(n, ast.get_docstring(c)) for n, c in classes.items() if n == "Deadlock" or n.endswith("Error") and n != "Error" and not n.startswith("_")]
    if errors:
        out += ["## Classes of errors", "", "One for each code ([Errors](errors.html)), below `Pto.Error`, which is below `GLib.Error`.", "", "| class | |", "|---|---|"]
        out += [f"| `Pto.{n}` | {prose(d or '').splitlines()[0] if d else ''} |" for n, d in sorted(errors)]
        out += [""]
    aliases = re.findall(r'^(_\w+): TypeAlias = (.*?)(?:  # (.*))?$', read(pyi_path), re.MULTILINE)
    out += ["## Names of types", "", "| | |", "|---|---|"]
    for name, what, aside in aliases:
        shown = " ".join(what.strip('"').split()).replace("|", "\\|")
        out.append(f"| `{name}` | `{shown}`{' ' + aside if aside else ''} |")
    return "\n".join(out) + "\n"


def prose(doc):
    """A docstring as Markdown: calls, names below Pto and arguments with a value are set as code."""
    code = r'@?\b[A-Za-z_][\w.]*(?<!\.)\((?:[^()\n]|\([^()\n]*\))*\)|@?\bPto\.\w[\w.]*\w|\b\w+=(?:"[^"]*"|\[[^\]]*\]+|\w+(?:\.\w+)*)'
    return source_links(re.sub(rf"(?<![`\w])({code})(?!`)", r"`\1`", (doc or "").strip()))


# What gi-docgen has made.

def finish(directory, chapters):
    """Headings of chapters, the headers' functions and Python's names are found, too: by the search of the pages, and by devhelp."""
    with open(os.path.join(directory, "index.json"), encoding="utf-8") as file:
        index = json.load(file)
    keywords = []
    for name, title in chapters:
        href = name.replace(".md", ".html")
        for anchor, heading in re.findall(r'<h[23] id="([^"]+)">(.*?)<a class="md-anchor"', read(directory, href)):
            words = html.unescape(re.sub(r"<[^>]*>", "", heading))
            is_name = name in ("headers.md", "python-api.md") or name == "errors.md" and words.isupper()
            index["symbols"].append({"type": "content", "name": words if is_name else f"{words} ({title})", "href": f"{href}#{anchor}", "summary": title})
            if is_name:
                keywords.append(f'<keyword type="function" name="{html.escape(words)}" link="{href}#{anchor}" />')
    write(json.dumps(index), directory, "index.json")
    book = os.path.join(directory, os.path.basename(directory) + ".devhelp2")
    write(read(book).replace("</functions>", "".join(keywords) + "</functions>"), book)
    # Rows for what this library has none of.
    write(re.sub(r'\s*<tr><td><em>(?:Website|Source)</em></td><td><a href="" class="external"></a></td></tr>', "", read(directory, "index.html")),
          directory, "index.html")


def turning(chapters, i):
    """The way on, below a chapter."""
    def link(k, form):
        return form % f"[{chapters[k][1]}]({chapters[k][0].replace('.md', '.html')})" if 0 <= k < len(chapters) else ""
    return "\n\n---\n\n" + " · ".join(filter(None, (link(i - 1, "← %s"), "[all chapters](index.html#extra)", link(i + 1, "%s →")))) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gi-docgen", required=True)
    parser.add_argument("--config", required=True)
    parser.add_argument("--gir", required=True)
    parser.add_argument("--pyi", required=True)
    parser.add_argument("--pto", help="the program, where it can be run here: it draws the pictures")
    parser.add_argument("--python", help="the Python that has gi and numpy, where there is one: it runs the tutorial")
    parser.add_argument("--build-root", required=True)
    parser.add_argument("--work", required=True, help="where everything is put that gi-docgen reads")
    parser.add_argument("output")
    options = parser.parse_args()
    overrides = sorted(os.path.join(ROOT, "pto", "gi", "overrides", name)
                       for name in os.listdir(os.path.join(ROOT, "pto", "gi", "overrides")) if name.endswith(".py"))
    for directory in options.work, options.output:
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
    for name in os.listdir(HERE):
        if name.endswith(".md"):
            write(page(read(HERE, name)), options.work, name)
        elif name.endswith(".svg"):
            shutil.copy(os.path.join(HERE, name), options.work)
    write(headers_page(), options.work, "headers.md")
    write(python_page(options.gir, options.pyi, overrides), options.work, "python-api.md")
    environment = {**os.environ, "PTO_API_DIR": os.path.join(ROOT, "pto", "api"),
                   "XDG_CACHE_HOME": os.path.join(options.build_root, "doc", "cache"), "LC_ALL": "C.UTF-8"}
    if options.pto:
        done = subprocess.run([options.pto, "run", os.path.join(ROOT, "examples", "batch-paged-attention"), "--case", "seed",
                               "--backend", "det", "--svg", os.path.join(options.work, "attention.svg")], env=environment,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"make-manual.py: the picture of batch-paged-attention can not be drawn: {done.stderr}")
    for variable, path in (("GI_TYPELIB_PATH", "pto"), ("LD_LIBRARY_PATH", "pto")):
        environment[variable] = os.pathsep.join(filter(None, [os.path.join(options.build_root, path), environment.get(variable)]))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.join(ROOT, "pto"), environment.get("PYTHONPATH")]))
    tutorial = [options.python or sys.executable, os.path.join(HERE, "make-tutorial.py"), os.path.join(HERE, "tutorial.py"), options.work]
    done = subprocess.run(tutorial + ([] if options.python else ["--no-run"]), env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"make-manual.py: the tutorial fails: {done.stderr}")
    config = read(options.config)
    chapters = [(name, re.match("Title: (.*)", read(options.work, name))[1])
                for name in re.findall(r'"([a-z-]+\.md)"', config[config.index("content_files"):])]
    for i, (name, _) in enumerate(chapters):
        write(read(options.work, name) + turning(chapters, i), options.work, name)
    pictures = sorted(name for name in os.listdir(options.work) if name.endswith((".svg", ".png")))
    write(config.replace("content_images = []", f"content_images = {pictures!r}".replace("'", '"')), options.work, "pto.toml")
    write(gir(read(options.gir)), options.work, "Pto-1.gir")
    done = subprocess.run([options.gi_docgen, "generate", "--quiet", "--fatal-warnings", "--config=" + os.path.join(options.work, "pto.toml"),
                           "--output-dir=" + options.output, "--no-namespace-dir", "--content-dir=" + options.work,
                           os.path.join(options.work, "Pto-1.gir")], check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    finish(options.output, chapters)


main()
