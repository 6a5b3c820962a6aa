# test_translations.py: is everything marked that a person reads, and is all of it translated?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# usage: test_translations.py PTO SOURCE_ROOT
import ast
import gettext
import json
import os
import pathlib
import re
import shutil
import string
import subprocess
import symtable
import sys
import tempfile
import time
import unicodedata
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gi"))
import tap  # noqa: E402

program, root = sys.argv[1], pathlib.Path(sys.argv[2])
po = root / "po"
tools = [shutil.which(name) for name in ("xgettext", "msgcmp", "msgfmt")]
# As po/meson.build has them, with its preset; msgcmp does not look at places.
keywords = ["_", "N_", "C_:1c,2", "P_:1,2", "g_dngettext:2,3"]
marks = re.compile(r"(?<!\w)(_|N_|C_|P_|g_dngettext) \(")
# Whose text a person reads, and which argument it is.
says = {
    "g_set_error": 3, "g_set_error_literal": 3, "g_error_new": 2, "g_error_new_literal": 2, "g_prefix_error": 1,
    "pto_error_set": 3, "pto_error_prefix": 1, "pto_refuse": 2, "pto_manifest_fail": 3, "pto_report_set": 2, "pto_engine_fail": 2,
    "pto_engine_refuse": 3, "pto_chip_refuse": 1, "pto_chip_refuse_with": 2, "pto_failure_set": 3, "tool_refuse": 1, "tool_fail": 1,
    "pto_worker_refuse_params": 1,
}
# Whose text a person reads on a terminal, whichever argument it is, and where there are such texts.
prints = dict.fromkeys((
    "g_print", "g_printerr", "g_string_append", "g_string_append_printf", "g_string_new", "g_strdup", "g_strdup_printf", "g_strconcat",
    "tool_print_row", "tool_print_row_printf", "tool_print_verdict", "tool_print_error", "terminal_pad", "terminal_show_line",
    "pto_append_padded", "append_name", "append_table", "pto_answer_table_add", "pto_answer_table_begin_row", "add_path_row", "add_overhead_row",
    "append_point", "add", "add_fact"))
told = ["pto/trace/predict/costs.c", "pto/monitor/state-text.c", "pto/trace/model/trace.c", "pto/trace/answer/answers.c",
        "pto/trace/answer/compare-text.c", "pto/trace/answer/counters.c", "pto/trace/answer/scopes.c", "pto/trace/answer/summary.c",
        "pto/trace/answer/topics.c", "pto/trace/predict/what-if.c"]
# Documents, which are in English: the manual page, completions, a picture.
documents = {"pto/programs/pto/help/page.c", "pto/programs/pto/help/completion.c", "pto/programs/pto/bench/chart.c"}
# Of them those that are in English: names and limits, which JSON has as well, a picture's words, what a log shows (to_string).
english = {
    "pto/programs/pto/doctor.c": {"pto-remote %u.%u.%u"},
    "pto/programs/pto/explore/schedules.c": {"-after-", "-last"},
    "pto/programs/pto/explore/search.c": {"%s%srandom-%"},
    "pto/programs/pto/bench/programs.c": {"bench-%s"},
    "pto/programs/pto/run/example.c": {"PTO_%s"},
    "pto/programs/pto/run/manifest.c": {"examples/scripts/run_example.py", ".py"},
    "pto/programs/pto/run/run.c": {"dump.json"},
    "pto/trace/predict/costs.c": {"the times of %u kernel%s"},
    "pto/trace/model/trace.c": {"kernel %u", "a free cluster", "an element", "ring", "%s%s%u task%s, %u edge%s, %", " ns on the %s clock", "virtual", "wall"},
    "pto/trace/answer/counters.c": {"kernel", "core"},
    "pto/trace/predict/what-if.c": {"kernel %s", "task ring %u", "cores", "clusters"},
    "pto/programs/pto/trace/whatif.c": {"as recorded", "never ends: %s is too small", "never ends: too few %s",
                                        "%s: predicted times, and in full colour what bounds them"},
}
# What is the same in all languages: units, names of core types and of programs, settings of a shell, elements of SVG.
same = re.compile(r"\b(us|ns|[KMG]iB|AI[CV]|pto|GLib)\b|export \w+=.*|\bLD_LIBRARY_PATH=.*|<.*|[\w-]+=\\\"[^<>]*>?")
token = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\S""", re.S)


def listed(name):
    lines = (po / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def sources():
    for directory in "pto", "sim":
        for path in sorted((root / directory).rglob("*.c")):
            if not str(path.relative_to(root)).startswith(("pto/modules", "pto/seeds", "pto/programs/pto-")):
                yield path


def plain(word):
    """Placeholders, the option or question that was given, names of groups in files and of functions are no words."""
    return re.sub(r"^\"(--)?[a-z]+: |%[-+ #0-9.*]*(?:ll|[lzth])?[a-zA-Z]|\[[a-z]+\]|\w+\(\)|\\.", " ", word)


def unmarked(text, says=says):
    """The texts for people that are in no macro which marks them."""
    stack = []
    last = ""
    for match in token.finditer(text):
        word = match.group()
        if word.startswith(("/*", "//")):
            continue
        if word in "([{":
            stack.append([last, 0])
        elif word in ")]}" and stack:
            stack.pop()
        elif word == "," and stack:
            stack[-1][1] += 1
        elif word[0] == '"' and stack and says.get(stack[-1][0], -1) in (stack[-1][1], None):
            if re.search(r"[A-Za-z]{2}", plain(word)):
                yield text.count("\n", 0, match.start()) + 1, word
        last = word


def printed(found):
    """found: where the exceptions go that there are."""
    for path in [root / name for name in told] + sorted((root / "pto/programs/pto").rglob("*.c")):
        name = str(path.relative_to(root))
        if name in documents:
            continue
        # Adjacent literals are one.
        text = re.sub(r'"\s*\n\s*"', "", path.read_text(encoding="utf-8"))
        for line, word in unmarked(text, prints):
            if word[1:-1] in english.get(name, ()):
                found.add((name, word[1:-1]))
            elif re.search(r"[A-Za-z]{2}", plain(same.sub(" ", word))):
                yield f"{name}: {word}"


def bindings(kind):
    """All files that Python, or JavaScript, has of its own, but for the one that has the marks."""
    for directory in root / "pto" / "gi" / "overrides", root / "pto" / "seeds" / "python":
        yield from sorted(path for path in directory.rglob("*" + kind) if path.stem != "PtoText")


marking = ("_", "N_", "P_")


def name_of(call):
    return getattr(call.func, "id", getattr(call.func, "attr", "")) if isinstance(call, ast.Call) else ""


def has_words(text):
    return re.search(r"[A-Za-z]{2}", re.sub(r"^[a-z]+: ", "", text)) is not None  # behind whom it is about


def texts_in(node):
    """What is written there outside of marks, and is neither compared nor the name of an attribute or encoding."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    elif isinstance(node, ast.JoinedStr):
        yield node.lineno, "".join(part.value for part in node.values if isinstance(part, ast.Constant))
    elif name_of(node) not in (*marking, "decode", "getattr") and not isinstance(node, ast.Compare):
        for child in ast.iter_child_nodes(node):
            yield from texts_in(child)


def unmarked_in_python(text):
    """The texts of errors that are in no mark, and marks that nothing can be looked up for."""
    for node in ast.walk(ast.parse(text)):
        made = node.exc if isinstance(node, ast.Raise) else node
        if isinstance(node, ast.Raise) or name_of(node).endswith(("Error", "add_note", "warn")):
            if isinstance(made, ast.Call):  # what it is called with by name, as name=, is no text
                yield from ((line, said) for argument in made.args for line, said in texts_in(argument) if has_words(said))
        if name_of(node) in marking and not isinstance(node.args[0], (ast.Constant, ast.Name)):
            yield node.lineno, ast.unparse(node)
        if name_of(node) == "format" and name_of(node.func.value) in ("_", "P_"):
            said = [argument for argument in node.func.value.args if isinstance(argument, ast.Constant)]
            wanted = {field for argument in said for _, field, _, _ in string.Formatter().parse(str(argument.value)) if field is not None}
            if said and wanted != {keyword.arg for keyword in node.keywords}:
                yield node.lineno, ast.unparse(node)


def hidden_in_python(table):
    """Functions that call a mark, and have something else of its name: for _, it in ..."""
    for inner in table.get_children():
        if inner.get_type() == "function":
            yield from ((inner.get_lineno(), name) for name in marking if name in inner.get_identifiers()
                        and inner.lookup(name).is_local() and inner.lookup(name).is_referenced())
        yield from hidden_in_python(inner)


js_token = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|[A-Za-z_$]\w*|\S""", re.S)


def unmarked_in_javascript(text):
    """The same, of JavaScript: in `new TypeError(...)`, and marks of templates."""
    for begin in re.finditer(r"\bnew (?:\w+\.)*\w*Error\(", text):
        stack, last = [], "Error"
        for match in js_token.finditer(text, begin.end() - 1):
            word = match.group()
            if word in "([{":
                stack.append(last)
            elif word in ")]}":
                stack.pop()
            elif word[0] in "\"'`" and last != "=" and not any(name in marking for name in stack) and has_words(re.sub(r"\$\{[^}]*\}|\\.", " ", word)):
                yield text.count("\n", 0, match.start()) + 1, word
            if not stack:
                break
            last = word
    for match in re.finditer(r"(?<![\w.])(?:_|N_)\((?!['\"\w)])", text):
        yield text.count("\n", 0, match.start()) + 1, match.group()


def shown(name):
    """What a chapter shows as it is typed and printed: fenced, or indented behind an empty line."""
    text = (root / name).read_text(encoding="utf-8")
    fenced = re.findall(r"^```.*?^```$", text, re.M | re.S)
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return fenced + re.findall(r"(?<=\n\n)    \S.*(?:\n+    .*)*", plain)


def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@unittest.skipUnless(all(tools), "no xgettext, msgcmp and msgfmt (install gettext)")
class Catalogues(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.template = os.path.join(self.scratch.name, "libpto.pot")

    def tool(self, *args):
        result = subprocess.run(args, cwd=root, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def make_template(self):
        told = self.tool("xgettext", "--from-code=UTF-8", "--keyword", "--output", self.template, "--files-from", po / "POTFILES",
                         *("--keyword=" + keyword for keyword in keywords),
                         *(f"--flag=P_:{n}:pass-c-format" for n in (1, 2)))
        # A text that it can not read to its end, such as one with G_GUINT64_FORMAT in it.
        self.assertEqual(told, "")

    def test_every_message_is_translated(self):
        self.make_template()
        self.assertEqual(listed("LINGUAS"), ["de", "zh_CN"])
        for language in listed("LINGUAS"):
            with self.subTest(language):
                self.tool("msgcmp", po / f"{language}.po", self.template)

    def test_translations_take_the_same_arguments(self):
        for language in listed("LINGUAS"):
            with self.subTest(language):
                self.tool("msgfmt", "--check", "--output-file", os.devnull, po / f"{language}.po")

    def test_translations_take_the_same_names(self):
        """msgfmt compares what a flag in the catalogue names the format of, which this one does not need."""
        self.make_template()
        self.assertIn("python-brace-format", pathlib.Path(self.template).read_text(encoding="utf-8"))
        for language in listed("LINGUAS"):
            binary = os.path.join(self.scratch.name, language)
            self.tool("msgfmt", "--output-file", binary, po / f"{language}.po")
            with open(binary, "rb") as file:
                for text, translation in gettext.GNUTranslations(file)._catalog.items():
                    text = text[0] if isinstance(text, tuple) else text
                    for place in r"\{\w+\}", r"(?<!%)%s":
                        if "%1$" not in translation:
                            self.assertEqual(sorted(re.findall(place, translation)), sorted(re.findall(place, text)), translation)


class Marks(unittest.TestCase):
    def test_files_with_marks_are_listed(self):
        marked = [str(path.relative_to(root)) for path in sources()
                  if marks.search(path.read_text(encoding="utf-8"))]
        marked += [str(path.relative_to(root)) for kind in (".py", ".js") for path in bindings(kind)
                   if re.search(r"(?<![\w.])(_|N_|P_)\(", path.read_text(encoding="utf-8"))]
        self.assertEqual(listed("POTFILES"), sorted(marked))

    def test_errors_are_marked(self):
        found = [f"{path.relative_to(root)}:{line}: {text}" for path in sources()
                 for line, text in unmarked(path.read_text(encoding="utf-8"))]
        self.assertEqual(found, [])

    def test_what_is_printed_is_marked(self):
        found = set()
        self.assertEqual(list(printed(found)), [])
        self.assertEqual(found, {(name, text) for name, texts in english.items() for text in texts})

    def test_errors_of_bindings_are_marked(self):
        found = [f"{path.relative_to(root)}:{line}: {text}" for kind, look in ((".py", unmarked_in_python), (".js", unmarked_in_javascript))
                 for path in bindings(kind) for line, text in look(path.read_text(encoding="utf-8"))]
        self.assertEqual(found, [])

    def test_marks_are_not_hidden(self):
        found = [(path.name, *what) for path in bindings(".py")
                 for what in hidden_in_python(symtable.symtable(path.read_text(encoding="utf-8"), path.name, "exec"))]
        self.assertEqual(found, [])
        wrong = "def f(*_):\n    return _('it is')\ndef g(x, *_):\n    return x\ndef h(x):\n    return _('it is')\n"
        self.assertEqual(list(hidden_in_python(symtable.symtable(wrong, "", "exec"))), [(1, "_")])

    def test_what_bindings_do_not_mark_is_found(self):
        for text, n in (('raise A("it is")', 1), ('raise A(f"it is {x}")', 1), ('raise A(_("it is {x}").format(x=repr(1)))', 0),
                        ('raise A(_("it is {x}").format(y=1))', 1), ('raise A(_("it is {}").format(1))', 1), ('raise A(_(f"it is {x}"))', 1),
                        ('raise A(_("it is {x}".format(x=1)))', 1), ('raise A(f"{x}: {y}", name="x")', 0), ("raise A(x)", 0), ("raise A", 0), ('raise A(f"host: {x}")', 0),
                        ('b = ValueError("it is")', 1), ('raise A(_("it is") if b else "not it")', 1)):
            self.assertEqual(len({line for line, _ in unmarked_in_python(text)}), n, text)
        for text, n in (("throw new A.BError('it is');", 1), ("throw new TypeError(`it is ${x}`);", 1), ("throw new TypeError(`${is}: ${it}`);", 0),
                        ("throw new TypeError(_('it is %s', `a ${x}`));", 0), ("throw new TypeError(x ? _('it is') : 'not it');", 1),
                        ("throw new E.Error({code: 1, message: 'it is'});", 1), ("throw new E.Error({message: _('it (is')}); f('no');", 0),
                        ("x = N_(`it is ${x}`);", 1), ("throw new TypeError(_(\"it's\"));", 0), ("throw error;", 0)):
            self.assertEqual(len(list(unmarked_in_javascript(text))), n, text)

    def test_what_is_not_marked_is_found(self):
        self.assertEqual(list(unmarked('g_set_error (e, D, C, "it is %s", a);')), [(1, '"it is %s"')])
        self.assertEqual(list(unmarked('g_set_error (e, D, C, _ ("it is %s"), a);\nf ("not it");')), [])
        self.assertEqual(list(unmarked('g_print ("%s\\n", ok ? "good" : "bad"); g_print ("%5d %s\\n", 3, f ("name"));', prints)),
                         [(1, '"good"'), (1, '"bad"')])


class Chapters(unittest.TestCase):
    def test_they_show_what_the_english_ones_show(self):
        pages = [(str(path).replace("-zh.md", ".md"), str(path)) for path in sorted((root / "doc").glob("*-zh.md"))]
        self.assertGreater(len(pages), 1)
        for english, chinese in [("README.md", "po/README.zh_CN.md"), *pages]:
            with self.subTest(chinese):
                self.assertEqual(shown(chinese), shown(english))


@unittest.skipUnless(all(tools), "no xgettext, msgcmp and msgfmt (install gettext)")
class Chinese(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        # From glibc 2.41 on LANGUAGE says nothing in C.UTF-8: the same locale by another name.
        shutil.copytree("/usr/lib/locale/C.utf8", os.path.join(cls.scratch.name, "zh_CN.utf8"))
        for language in listed("LINGUAS"):
            place = os.path.join(cls.scratch.name, language, "LC_MESSAGES")
            os.makedirs(place)
            subprocess.run(["msgfmt", "--output-file", os.path.join(place, "libpto.mo"), po / f"{language}.po"], check=True, timeout=60)

    def pto(self, *args, status=0, language="zh_CN", locale="zh_CN.UTF-8"):
        env = dict(os.environ, LC_ALL=locale, LOCPATH=self.scratch.name, LANGUAGE=language, PTO_LOCALE_DIR=self.scratch.name)
        result = subprocess.run([program, *args], env=env, capture_output=True, timeout=120)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout.decode(), result.stderr.decode()

    def test_the_tool_speaks_it(self):
        nowhere = os.path.join(self.scratch.name, "nowhere")
        self.assertEqual(self.pto("run", nowhere, status=3), ("", f"pto: {nowhere}：没有这个目录\n"))
        self.assertEqual(self.pto("run", nowhere, status=3, language="de"), ("", f"pto: {nowhere}: dieses Verzeichnis gibt es nicht\n"))
        self.assertEqual(self.pto("run", nowhere, status=3, locale="C"), ("", f"pto: {nowhere}: no such directory\n"))

    def test_the_engine_speaks_it(self):
        out, err = self.pto("run", str(root / "examples" / "vector"), "--set", "task-window=4", "--backend", "det", status=3)
        self.assertEqual(out, "")
        self.assertIn("任务环 1 死锁：全部 3 个可用槽位（窗口 4，任务 0 到 2）都被在 ", err)
        self.assertIn("请把 task-window 设为 8 或更大（全部已提交的内容在该环中同时至多占用 5 个任务）。\n", err)

    def test_a_run_is_a_table(self):
        out, err = self.pto("run", str(root / "examples" / "vector"), "--backend", "det")
        self.assertEqual(err, "")
        rows = out.splitlines()[1:]
        self.assertIn("PASS  最大误差 0", out)
        for row in rows:
            name = re.match(r"  \S+( \S+)? +", row).group()
            self.assertEqual(width(name), 16, row)

    def record(self, name, *settings):
        """A trace of a run that is the same each time."""
        file = os.path.join(self.scratch.name, name + ".ptotrace")
        if not os.path.exists(file):
            self.pto("run", str(root / "examples" / "batch-paged-attention"), "--case", "seed", "--backend", "det", "--trace", file,
                     *(word for setting in settings for word in ("--set", setting)))
        return file

    def traces(self):
        return [self.record(f"level-{level}", f"trace-level={level}") for level in (1, 2, 4)] + [
            self.record("narrow", "clusters=3", "task-window=64"), self.record("short", "trace-records=300")]

    def says_the_same(self, *args, names=(), drop=None):
        """Line for line with the same numbers, and of the English words none but names. Gives the lines."""
        here, there = (self.pto(*args, language=language)[0].splitlines() for language in ("zh_CN", "C"))
        self.assertEqual(len(here), len(there))
        for chinese, english_line in zip(here, there):
            with self.subTest(args=args, line=english_line):
                chinese, english_line = (re.sub(drop, " ", line) if drop else line for line in (chinese, english_line))
                self.assertEqual(*(sorted(re.findall(r"\d+(?:\.\d+)?", line)) for line in (chinese, english_line)))
                words = {word for word in re.findall(r"[A-Za-z][\w-]*", chinese, re.A) if re.search(r"[A-Za-z]{2}", word)}
                self.assertEqual(words - set(names), set())
        return here

    # What is called the same in all languages: kernels, cores, hazards, a file, parameters, units, and the title of the run.
    names = {"QK", "SF", "PV", "UP", "HUB", "RAW", "WAR", "WAW", "AIC", "AIV", "TensorMap", "batch_paged_attention_orch", "us", "worker",
             "task-window", "dep-pool", "trace-records", "trace-level", "batch-paged-attention"}
    title = r"batch-paged-attention: batch \d+, \d+ requests a task, \d+ blocks"

    def test_answers_of_a_trace_are_in_it(self):
        traces = self.traces()
        for file, other in zip(traces, traces[1:] + traces[:1]):
            tasks = json.loads(self.pto("trace", file, "critical-path", "--json", language="C")[0])["path"]
            some = {f"{int(task['task']) >> 32}:{int(task['task']) & 0xffffffff}" for task in tasks[:2] + tasks[-1:]}
            for question in [["summary"], ["critical-path"], ["overhead"], ["scopes"], ["counters"], *(["why", task] for task in some),
                             ["diff", file], ["diff", other]]:
                self.says_the_same("trace", file, *question, names={*self.names, *(f"AIC{n}" for n in range(24)), *(f"AIV{n}" for n in range(48))},
                                   drop=self.title)

    def test_predictions_are_in_it(self):
        for words in ["--clusters", "1,24", "--task-window", "4,64"], ["--kernel", "QK=0.5x", "--schedulers", "1,3"]:
            self.says_the_same("whatif", self.record("level-4", "trace-level=4"), *words, drop=self.title,
                               names={*self.names, "clusters", "schedulers", "kernel"})

    def test_a_trace_does_not_speak_it_in_documents(self):
        file = self.record("level-4", "trace-level=4")
        self.assertEqual(*(self.pto("trace", file, "deps", language=language) for language in ("zh_CN", "C")))
        for words in ["trace", file, "why", "1:2", "--json"], ["whatif", file, "--kernel", "QK=2x", "--json"], ["calibrate", "-n", file, "--json"], \
                ["doctor", "--json"]:
            with self.subTest(words):
                self.assertEqual(*(self.pto(*words, language=language) for language in ("zh_CN", "C")))
        for ending, words in (".svg", ["trace", file, "export"]), (".html", ["trace", file, "export"]), (".svg", ["whatif", file, "--svg"]):
            texts = []
            for language in "zh_CN", "C":
                path = pathlib.Path(self.scratch.name, "drawn" + ending)
                self.pto(*words, str(path), language=language)
                texts.append(path.read_text(encoding="utf-8"))
            with self.subTest(words=words, ending=ending):
                self.assertEqual(*texts)

    def test_tables_are_in_columns(self):
        file = self.record("level-4", "trace-level=4")
        for language in "zh_CN", "de":
            for question in "overhead", "scopes", "counters":
                tables = []
                for line in self.pto("trace", file, question, language=language)[0].splitlines():
                    if line.startswith("  ") and not re.search(r"\d", line):
                        tables.append([line])
                    elif line.startswith("  "):
                        tables[-1].append(line)
                self.assertGreater(len(tables), 0)
                for table in tables:
                    with self.subTest(language=language, question=question, table=table):
                        self.assertEqual({width(line) for line in table}, {width(table[0])})
            rows = self.pto("whatif", file, "--clusters", "1,24", language=language)[0].splitlines()[1:]
            # The last column goes on to the right.
            self.assertEqual(len({width(re.match(r"(  .*\S)  +\S.*$", row)[1]) for row in rows}), 1, "\n".join(rows))
            for row in self.pto("doctor", language=language)[0].splitlines():
                if row.startswith("  "):
                    state, name = re.match(r"(  \S+ +)(.+? +)(?=\S)", row).groups()
                    self.assertEqual(width(state), 11, row)

    def test_names_of_rows_fit(self):
        names = {name for path in (root / "pto/programs/pto").rglob("*.c")
                 for name in re.findall(r'tool_print_(?:row|row_printf|verdict) \(_ \("([^"]*)"\)', path.read_text(encoding="utf-8"))}
        self.assertGreater(len(names), 20)
        for language in listed("LINGUAS"):
            texts = dict(re.findall(r'^msgid "(.*)"\nmsgstr "(.*)"$', (po / f"{language}.po").read_text(encoding="utf-8"), re.M))
            self.assertEqual({name: texts[name] for name in names if width(texts[name]) > 13}, {})

    def test_what_a_machine_lacks_is_in_it(self):
        code = r"(apt install|export|ulimit|meson) [^，：（）]*|/\S*|\b[A-Z_]+_[A-Z_]+\b|https?:\S*"
        names = {"ok", "Python", "PyGObject", "NumPy", "typelib", "override", "gjs", "JavaScript", "membarrier", "ncurses", "libpto", "pto",
                 "top", "gi", "overrides", "Pto", "py", "PYTHONPATH", "TMPDIR", "Linux", "constant_tsc", "nonstop_tsc", "pidfd_open", "KiB",
                 "MiB", "GiB", "TiB", "heap", "arena", "info", "gjs-1", "CC", "backend", "det", "worker", "python3", "GnuTLS", "TLS", "tls",
                 "pto-remote", "pto-mpi-rank", "mpirun", "MPI", "Open", "UCX", "self", "tcp", "sysv", "posix", "cma", "report"}
        self.says_the_same("doctor", names=names, drop=code)

    def test_what_is_known_is_in_it(self):
        """Of a machine, and of kernels."""
        info = json.loads(self.pto("info", "--json", language="C")[0])
        known = {word for thing in info["parameters"] + info["platforms"] for name, value in thing.items() if name != "description" and value
                 for word in re.findall(r"[\w-]+", str(value), re.A)}
        self.says_the_same("info", drop=r"Linux.*|/\S*|doc/hardware\.md|2 的幂|pto run --set NAME=VALUE|1:3-after-1:7",
                           names={*known, *info["backends"], "pto", "AIC", "AIV", "MHz", "GiB", "MiB", "CPU", "GLib", "worker", "TensorMap", "a2a3",
                                  "access", "chip", "cpu", "virtual", "calibrate", "explore", "isolate"})
        self.says_the_same("calibrate", "-n", self.record("level-4", "trace-level=4"),
                           names={*self.names, "virtual", "constant", "linear", "table", "ns"})

    def test_what_a_process_does_is_in_it(self):
        """Of a run in which two tasks wait for a file, and two for them."""
        there, go = os.path.join(self.scratch.name, "held"), pathlib.Path(self.scratch.name, "go")
        shutil.copytree(root / "examples" / "vector", there)
        source = pathlib.Path(there, "kernels", "add_scalar.c")
        text = source.read_text(encoding="utf-8")
        self.assertEqual((text.count("#include <string.h>"), text.count("  float value;")), (1, 1))
        text = text.replace("#include <string.h>", "#include <string.h>\n#include <time.h>\n#include <unistd.h>")
        source.write_text(text.replace("  float value;", f"""  float value;
  while (access ("{go}", F_OK) != 0)
    nanosleep (&(struct timespec){{ .tv_nsec = 1000000 }}, NULL);"""), encoding="utf-8")
        run = subprocess.Popen([program, "run", there, "--set", "timeout=120000", "--set", "carriers=2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            until = time.monotonic() + 60
            while True:
                result = subprocess.run([program, "top", str(run.pid), "--json"], capture_output=True, text=True, timeout=60)
                workers = json.loads(result.stdout)["workers"] if result.returncode == 0 else []
                if workers and (workers[0].get("run") or {}).get("running") == 2:
                    break
                self.assertIsNone(run.poll())
                self.assertLess(time.monotonic(), until, result.stderr)
                time.sleep(0.05)
            lines = self.says_the_same("top", str(run.pid), "--once", drop=r"vector: five tasks.*= \d+|\b\d+(?:\.\d+)? (?:us|ms|s)\b|0x[0-9a-f]+",
                                       names={"pto", "libpto", "L2", "a2a3sim", "par", "mul", "add", "add_scalar", "KiB", "GiB", "float32",
                                              *(f"scheduler{n}" for n in range(3)), *(f"AIC{n}" for n in range(24)), *(f"AIV{n}" for n in range(48))})
            self.assertIn("  任务        已提交 5，已完成 1，运行中 2，就绪 0，阻塞 2", lines)
            self.assertIn("  等待        任务 4（环 1，add）等待：任务 3（环 1，mul）（等待其生产者）", lines)
        finally:
            go.touch()
            run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0)

    def test_what_orders_tasks_is_in_it(self):
        """Lines of the library are found again, in its words."""
        there = os.path.join(self.scratch.name, "vector")
        shutil.copytree(root / "examples" / "vector", there)
        source = pathlib.Path(there, "orchestration", "vector_orch.c")
        text = source.read_text(encoding="utf-8")
        self.assertEqual(text.count("params[0] = make_input_param (x);"), 1)
        source.write_text(text.replace("params[0] = make_input_param (x);", "params[0] = make_no_dep_param (x);"), encoding="utf-8")
        out, err = self.pto("explore", there, "--budget", "20", status=1)
        self.assertIn("  没有次序      任务 0（环 1，add），提交于 vector_orch.c:34\n", out)
        self.assertRegex(out, r"\n  访问          任务 0（环 1，add），提交于 .*，和任务 1（环 1，add_scalar），")
        words = "explore", there, "--budget", "20", "--json"
        self.assertEqual(*(json.loads(self.pto(*words, status=1, language=language)[0])["changed"] for language in ("zh_CN", "C")))

    def test_what_programs_read_is_not_translated(self):
        args = "run", str(root / "examples" / "vector"), "--backend", "det", "--json"
        here, there = (json.loads(self.pto(*args, language=language)[0]) for language in ("zh_CN", "C"))
        self.assertEqual(here.keys(), there.keys())
        for name in ("result", "backend", "platform"):
            if name in there:
                self.assertEqual(here[name], there[name])
        here, there = (json.loads(self.pto("info", "--json", language=language)[0]) for language in ("zh_CN", "C"))
        self.assertEqual(here["parameters"], there["parameters"])

    def test_pages_are_those_of_the_build(self):
        for kind in "man", "bash", "zsh":
            with self.subTest(kind):
                self.assertEqual(self.pto("--print-page", kind), self.pto("--print-page", kind, language="C"))

    def test_help_names_the_same_values(self):
        for command in "run", "explore", "trace", "whatif", "top", "bench", "calibrate", "new":
            with self.subTest(command):
                here, there = (sorted(re.findall(r"^ +(?:-\w, )?--[a-z-]+=\S+", self.pto("help", command, language=language)[0], re.M))
                               for language in ("zh_CN", "C"))
                self.assertEqual(here, there)


if __name__ == "__main__":
    del sys.argv[1:]
    tap.main()
