#!/usr/bin/env python3
# test_pto_pages.py: do help, the manual page and the completions say what the pto program takes?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table is read from the sources: an option that any of the four has not, or has too much, is found."""
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

import pto_test
from pto_test import DEADLINE, EXAMPLES, HERE, PROGRAM, PtoTest

TOOLS = os.path.join(HERE, "..", "..", "pto", "programs", "pto")
ENTRY = re.compile(r'\{ "([a-z-]+)",\s+(?:\'(.)\'|0),\s+(0|G_OPTION_FLAG_HIDDEN),\s+G_OPTION_ARG_\w+,\s+&\w+,'
                   r'\s+(?:N_ \(((?:\s*"(?:[^"\\]|\\.)*")+)\)),\s+(?:NULL|N_ \("([^"]*)"\)) \}')


def read_table():
    """Of each command (None: before all of them): its options, (long, short, metavariable); and those that all have."""
    tables = {}
    for path in sorted(glob.glob(os.path.join(TOOLS, "**", "*.c"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert len(ENTRY.findall(text)) == len(re.findall(r"G_OPTION_ARG_\w+,\s+&", text)), path
        command = re.search(r'const ToolCommand tool_(\w+)_command = \{\n  \.name = "([^"]+)"', text)
        for array in re.finditer(r"GOptionEntry (\w+)\[\]\s*= \{(.*?)G_OPTION_ENTRY_NULL", text, re.S):
            key = array.group(1) if array.group(1) != "entries" else command.group(2)
            tables[key] = {(long, short or None, metavariable or None)
                           for long, short, flags, _, metavariable in ENTRY.findall(array.group(2)) if flags == "0"}
        if command is not None:
            tables.setdefault(command.group(2), set())
    common = tables.pop("tool_common_options")
    first = tables.pop("tool_first_options")
    return {None: first | common, **{command: options | common for command, options in tables.items()}}, common


TABLE, COMMON = read_table()
COMMANDS = sorted(command for command in TABLE if command is not None)


class Pages(PtoTest):
    def page(self, kind):
        return self.passes("--print-page", kind)

    def test_table(self):
        """What was read is what there is."""
        self.assertIn(("case", "c", "CASE"), TABLE["run"])
        self.assertIn(("help", "h", None), TABLE["info"])
        self.assertIn(("version", None, None), TABLE[None])
        listed = re.findall(r"(?m)^  ([a-z]+) +\S", self.passes("help").split("Commands:\n")[1].split("\n\n")[0])
        self.assertEqual(sorted(listed), COMMANDS)

    def test_taken(self):
        """Each is taken: a value that is missing is missed."""
        for command in COMMANDS:
            for long, short, metavariable in sorted(TABLE[command], key=str):
                if metavariable is not None:
                    self.fails(2, ["Missing argument for --" + long], command, "--" + long)
                if metavariable is not None and short is not None:
                    self.fails(2, ["Missing argument for -" + short], command, "-" + short)

    def test_help(self):
        line = re.compile(r"(?m)^  (?:-(\w), )?--([a-z-]+)(?:=(\S+))?  +\S")
        for command in TABLE:
            text = self.passes("help", *[command] * (command is not None))
            with self.subTest(command=command):
                self.assertEqual({(long, short or None, metavariable or None)
                                  for short, long, metavariable in line.findall(text)}, TABLE[command])
                for words in ([command, "--help"], [command, "-h"], ["--help", command]) if command is not None else (["--help"], ["-h"]):
                    self.assertEqual(self.passes(*words), text)

    def test_man(self):
        page = self.page("man")
        sections = dict(re.findall(r"(?ms)^\.SS pto (\S+).*?\n(.*?)(?=^\.S[SH] )", page))
        self.assertEqual(sorted(sections), COMMANDS)
        sections[None] = re.search(r"(?ms)^\.SH OPTIONS\n(.*?)(?=^\.SH )", page).group(1)
        item = re.compile(r"(?m)^\.TP\n(?:\\fB\\-(\w)\\fR, )?\\fB\\-\\-(\S+?)\\fR(?:=\\fI(\S+)\\fR)?$")
        for command, text in sections.items():
            with self.subTest(command=command):
                self.assertEqual({(long.replace("\\-", "-"), short or None, (metavariable or "").replace("\\-", "-") or None)
                                  for short, long, metavariable in item.findall(text)},
                                 TABLE[command] - (COMMON if command is not None else set()))
        for parameter in json.loads(self.passes("info", "--json"))["parameters"]:
            if parameter["variable"] is not None:
                self.assertIn(f"\n\\fB{parameter['variable']}\\fR\n", page)

    def test_man_words(self):
        """What stands behind words that help lists is there, too."""
        for command, word in (("trace", "critical\\-path"), ("trace", "why"), ("bench", "W6"), ("bench", "parent_killed")):
            self.assertRegex(self.page("man"), rf"(?s)\.SS pto {command} .*\n\.TP\n\\fB{re.escape(word)}\\fR")

    def check_page(self, program, *words):
        if shutil.which(program) is None:
            self.skipTest(f"no {program} here")
        self.write("pto.1", self.page("man"))
        result = subprocess.run([program, *words, "pto.1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                encoding="utf-8", cwd=self.directory, timeout=DEADLINE,
                                env=dict(self.environment, LC_ALL="C.UTF-8", MANWIDTH="80"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_groff(self):
        text = self.check_page("groff", "-ww", "-man", "-Tascii", "-P-c")
        # Nothing is read as a request, and nothing of ours is too wide for a page.
        self.assertIn("pto - run task graphs", text)
        self.assertLessEqual(max(len(re.sub(r".\x08", "", line)) for line in text.splitlines()), 80)

    def test_man_warnings(self):
        if shutil.which("groff") is None:
            self.skipTest("no groff here")
        self.assertIn("EXAMPLES", re.sub(r".\x08", "", self.check_page("man", "--warnings=w", "-l")))

    def test_kind(self):
        self.fails(2, ["--print-page pdf", "man, bash or zsh"], "--print-page", "pdf")
        self.assertNotIn("print-page", self.passes("help"))


class Completions(PtoTest):
    """In a directory with an example, a file of each kind, and a directory."""

    def setUp(self):
        super().setUp()
        shutil.copytree(os.path.join(EXAMPLES, "vector"), os.path.join(self.directory, "example"))
        os.mkdir(os.path.join(self.directory, "empty dir"))
        for name in ("old.ptotrace", "other.ptotrace", "old.svg", "old.json", "table.csv", "plain"):
            self.write(name, "")

    def parameters(self):
        return [parameter["name"] + "=" for parameter in json.loads(self.passes("info", "--json"))["parameters"]]

    def platforms(self):
        return [platform["name"] for platform in json.loads(self.passes("info", "--json"))["platforms"]]


class Bash(Completions):
    def setUp(self):
        super().setUp()
        if shutil.which("bash") is None:
            self.skipTest("no bash here")
        self.write("pto.bash", self.passes("--print-page", "bash"))

    def run_bash(self, script, *words):
        result = subprocess.run(["bash", "--norc", "-c", "set -u; source ./pto.bash || exit 9\n" + script, "bash", *words],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                cwd=self.directory, timeout=DEADLINE, env=self.environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def offers(self, *words):
        """What is offered for the last word."""
        return sorted(self.run_bash('COMP_WORDS=(pto "$@") COMP_CWORD=$#; _pto\n'
                                    '((${#COMPREPLY[@]} == 0)) || printf "%s\\n" "${COMPREPLY[@]}"', *words).splitlines())

    def test_registered(self):
        self.assertEqual(self.run_bash("complete -p pto"), "complete -F _pto pto\n")

    def test_commands(self):
        self.assertEqual(self.offers(""), COMMANDS)
        self.assertEqual(self.offers("wh"), ["whatif"])
        self.assertEqual(self.offers("help", ""), COMMANDS)
        self.assertEqual(self.offers("-"), sorted("--" + long for long, _, _ in TABLE[None]))

    def test_options(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                self.assertEqual(self.offers(command, "-"), sorted("--" + long for long, _, _ in TABLE[command]))

    def test_values(self):
        """An option has a value here when it has one in the table: what follows is that, and no operand."""
        for command in COMMANDS:
            keys = [f"{command} {dashes}{name}" for long, short, metavariable in TABLE[command]
                    for dashes, name in (("--", long), ("-", short)) if name is not None and metavariable is not None]
            flags = [f"{command} --{long}" for long, _, metavariable in TABLE[command] if metavariable is None]
            said = self.run_bash('for key; do _pto_look_up "$key" && echo "$key"; done; true', *keys, *flags)
            self.assertEqual(sorted(said.splitlines()), sorted(keys))

    def test_words(self):
        self.assertEqual(self.offers("run", "--backend", ""), ["det", "par", "threads"])
        self.assertEqual(self.offers("run", "example", "-b", "d"), ["det"])
        self.assertEqual(self.offers("run", "--costs", "c"), ["chip", "cpu"])
        self.assertEqual(self.offers("run", "--seed", ""), [])
        self.assertEqual(self.offers("explore", "--platform", "a"), self.platforms())
        self.assertEqual(self.offers("run", "--set", ""), sorted(self.parameters()))
        self.assertEqual(self.offers("bench", "--only", "W"), [f"W{i}" for i in range(1, 7)])
        self.assertIn("critical-path", self.offers("trace", "old.ptotrace", ""))
        self.assertEqual(self.offers("trace", "--json", "old.ptotrace", "di"), ["diff"])

    def test_equals(self):
        """With "=" as readline takes words apart, and without."""
        self.assertEqual(self.offers("run", "--backend", "=", "d"), ["det"])
        self.assertEqual(self.offers("run", "--backend", "="), ["det", "par", "threads"])
        self.assertEqual(self.offers("run", "--backend=d"), ["--backend=det"])
        self.assertEqual(self.offers("run", "--set", "task-window", "=", "16", "exa"), ["example"])
        self.assertEqual(self.offers("run", "--set", "task-window=16", "exa"), ["example"])
        self.assertEqual(self.offers("run", "--set", "task-window", "=", "1"), [])
        self.assertEqual(self.offers("run", "--set", "=", "task-w"), ["task-window="])
        self.assertEqual(self.offers("run", "--schedule", "1", ":", "0-after-1", ":", "3", "exa"), ["example"])

    def test_files(self):
        directories = ["empty dir", "example"]
        self.assertEqual(self.offers("run", ""), directories)
        self.assertEqual(self.offers("run", "--", "ex"), ["example"])
        self.assertEqual(self.offers("run", "empty"), ["empty dir"])
        self.assertEqual(self.offers("run", "--svg", ""), sorted([*directories, "old.svg"]))
        self.assertEqual(self.offers("run", "--svg", "=", "o"), ["old.svg"])
        self.assertEqual(self.offers("run", "--trace", "o"), ["old.json", "old.ptotrace", "other.ptotrace"])
        self.assertEqual(self.offers("run", "--metrics", "pl"), ["plain"])
        self.assertEqual(self.offers("calibrate", "t"), ["table.csv"])
        self.assertEqual(self.offers("calibrate", "table.csv", "o"), ["old.json", "old.ptotrace", "other.ptotrace"])
        self.assertEqual(self.offers("trace", "o"), ["old.ptotrace", "other.ptotrace"])
        self.assertEqual(self.offers("trace", "old.ptotrace", "diff", "ot"), ["other.ptotrace"])
        self.assertEqual(self.offers("trace", "old.ptotrace", "export", "pl"), ["plain"])
        self.assertEqual(self.offers("trace", "old.ptotrace", "why", ""), [])

    def test_cases(self):
        self.assertEqual(self.offers("run", "example", "--case", ""), ["five", "four"])
        self.assertEqual(self.offers("run", "example", "--case", "=", "fi"), ["five"])
        self.assertEqual(self.offers("run", "--case", ""), [])

    def test_processes(self):
        """One that answers, and not this one."""
        with subprocess.Popen([PROGRAM, "run", "example", "--no-isolate", "--set", "timeout=600000"], cwd=self.directory,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(self.environment, CC=self.waiting_compiler())) as process:
            try:
                end = time.monotonic() + DEADLINE
                while not os.path.exists(os.path.join(self.directory, "flag")) and time.monotonic() < end:
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                offers = self.offers("top", "")
                self.assertIn(str(process.pid), offers)
                self.assertNotIn(str(os.getpid()), offers)
                self.assertEqual(self.offers("top", f"{process.pid}"), [str(process.pid)])
            finally:
                process.send_signal(signal.SIGINT)

    def waiting_compiler(self):
        """A run that lasts until it is ended."""
        self.write("slow-cc", "#!/bin/sh\ntouch flag\nexec sleep 1000\n")
        os.chmod(os.path.join(self.directory, "slow-cc"), 0o700)
        return os.path.join(self.directory, "slow-cc")


class Zsh(Completions):
    def setUp(self):
        super().setUp()
        self.text = self.passes("--print-page", "zsh")
        self.write("_pto", self.text)

    def test_options(self):
        """As text: no zsh is needed for this."""
        arms = dict(re.findall(r"(?ms)^    ([a-z]+)\)\n      _arguments -C -s(.*?) ;;$", self.text))
        self.assertEqual(sorted(arms), COMMANDS)
        arms[None] = re.search(r"(?s)\n  _arguments -C(.*?)&& return", self.text).group(1)
        spec = re.compile(r"(?m)^ +'[^'\[]*?(?:'\{-(\w),)?--([a-z-]+)(=?)\}?'?\[(?:[^\]\\]|\\.)*\](?::((?:[^:\\]|\\.)*):[^']*)?'")
        for command, text in arms.items():
            found = {(long, short or None, metavariable or None) for short, long, _, metavariable in spec.findall(text)}
            with self.subTest(command=command):
                self.assertEqual({(long, short, (metavariable or "").replace("\\", "") or None) for long, short, metavariable in found},
                                 TABLE[command])
                for _, _, sign, metavariable in spec.findall(text):
                    self.assertEqual(sign == "=", metavariable != "")

    def test_syntax(self):
        if shutil.which("zsh") is None:
            self.skipTest("no zsh here")
        result = subprocess.run(["zsh", "-n", "_pto"], cwd=self.directory, stderr=subprocess.PIPE, encoding="utf-8", check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def complete(self, *lines):
        """What becomes of each line when Tab is pressed at its end."""
        setup = f"""
PROMPT= RPROMPT= ; unsetopt zle_bracketed_paste beep list_beep 2> /dev/null
fpath=({self.directory} $fpath)
autoload -Uz compinit; compinit -u -D
one () {{ zle complete-word; print -r -- "<<$BUFFER>>" >> $PWD/said; BUFFER=; zle reset-prompt; : > $PWD/done }}
zle -N one; bindkey '^I' one
: > $PWD/done
"""
        self.write(".zshrc", setup)
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.directory)
            os.execvpe("zsh", ["zsh", "-i", "-d"], dict(self.environment, ZDOTDIR=self.directory, HOME=self.directory, TERM="dumb"))
        try:
            for line in (None, *lines):
                if line is not None:
                    os.write(terminal, line.encode() + b"\t")
                self.wait_for("done", terminal)
            with open(os.path.join(self.directory, "said"), encoding="utf-8") as file:
                return re.findall(r"<<(.*)>>", file.read())
        finally:
            os.kill(pid, signal.SIGKILL)
            os.close(terminal)
            os.waitpid(pid, 0)

    def wait_for(self, name, terminal):
        """And takes what is printed meanwhile."""
        path = os.path.join(self.directory, name)
        end = time.monotonic() + DEADLINE
        said = b""
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), end, said)
            if select.select([terminal], [], [], 0.02)[0]:
                said += os.read(terminal, 65536)
        os.unlink(path)

    def test_completes(self):
        if shutil.which("zsh") is None:
            self.skipTest("no zsh here")
        expected = {
            "pto wha": "pto whatif ",
            "pto --ver": "pto --version ",
            "pto run --back": "pto run --backend=",
            "pto run --backend=d": "pto run --backend=det ",
            "pto run -b th": "pto run -b threads ",
            "pto run --set task-w": "pto run --set task-window=",
            "pto run exam": "pto run example/",
            "pto run example --case fi": "pto run example --case five ",
            "pto run --svg=ol": "pto run --svg=old.svg ",
            "pto trace oth": "pto trace other.ptotrace ",
            "pto trace old.ptotrace crit": "pto trace old.ptotrace critical-path ",
            "pto trace old.ptotrace diff ot": "pto trace old.ptotrace diff other.ptotrace ",
            "pto calibrate table.csv ot": "pto calibrate table.csv other.ptotrace ",
            "pto bench --only=parent": "pto bench --only=parent_killed ",
            "pto help expl": "pto help explore ",
            "pto whatif --clus": "pto whatif --clusters=",
        }
        self.assertEqual(dict(zip(expected, self.complete(*expected))), expected)



pto_test.tap.main()
