# take_example.py: which files does the example of doc/own.md have? (for `pto new`)
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: the page, the source to write. Copies the blocks of C and INI as they are; each begins with the name of its file.
import re
import sys

page, output = sys.argv[1:]
with open(page, encoding="utf-8") as file:
    content = file.read()
files = [(re.match(r"(?:/\*|#) (\S+):", text).group(1), text)
         for text in re.findall(r"(?ms)^```(?:c|ini)\n(.*?)^```$", content)]
names = [name for name, _ in files]
if names != ["scale.c", "twice.c", "sixfold.c", "pto.ini"]:
    sys.exit(f"{page}: the example has other files than pto new knows of: {names}")


def quote(line):
    text = line.replace("\\", "\\\\").replace('"', '\\"')
    assert text.isascii(), text
    return f'    "{text}\\n"'


with open(output, "w", encoding="utf-8") as file:
    print('#include "tool.h"\n\nconst ToolFile tool_new_files[] = {', file=file)
    for name, text in files:
        print(f'  {{ "{name}",', *map(quote, text.splitlines()), "  },", sep="\n", file=file)
    print("  { NULL, NULL },\n};", file=file)
