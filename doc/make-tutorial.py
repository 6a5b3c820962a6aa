# make-tutorial.py: what does a script in the percent format print and draw, cell by cell?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: the script, and a directory. Writes NAME.md there, with what each cell prints below it, and NAME-1.svg, ... of what its last
# line is, if that draws itself (_repr_svg_), as a notebook does. With --no-run only the words and the code.
import ast
import contextlib
import io
import os
import re
import sys
import tempfile


def cells(text):
    """(is it text, its lines)."""
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        head, _, rest = part.partition("\n")
        if "[markdown]" in head:
            yield True, "\n".join(re.sub(r"^# ?", "", line) for line in rest.strip().splitlines())
        else:
            yield False, rest.strip()


def run(code, names, path):
    """What it prints, and the value of its last line, if that is an expression."""
    tree = ast.parse(code, path)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, path, "exec"), names)
        value = eval(compile(last, path, "eval"), names) if last is not None else None
    return out.getvalue(), value


def main():
    script, directory = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    name = os.path.splitext(os.path.basename(script))[0]
    with open(script, encoding="utf-8") as file:
        text = file.read()
    names, out, pictures = {"__name__": "__main__"}, [], 0
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for is_text, lines in cells(text):
            if is_text:
                out += [re.sub(r"\]\(([a-z-]+)\.md(#[^)]*)?\)", r"](\1.html\2)", lines), ""]
                continue
            out += ["```python", re.sub(r"  # noqa: \w+", "", lines), "```", ""]
            if "--no-run" in sys.argv:
                continue
            printed, value = run(lines, names, script)
            if value is not None and hasattr(value, "_repr_svg_"):
                pictures += 1
                with open(os.path.join(directory, f"{name}-{pictures}.svg"), "w", encoding="utf-8") as file:
                    file.write(value._repr_svg_())
                picture = [f"![What the cores did]({name}-{pictures}.svg)", ""]
            else:
                printed += f"{value!r}\n" if value is not None else ""
                picture = []
            if printed:
                out += ["```text", printed.rstrip("\n"), "```", ""]
            out += picture
        os.chdir(directory)
    page = "\n".join(out)
    with open(f"{name}.md", "w", encoding="utf-8") as file:
        file.write(f"Title: {re.search('^# (.*)', page, re.MULTILINE)[1]}\n\n{page}")


main()
