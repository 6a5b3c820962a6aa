# take_example.py: which files does the README's example have? (for `pto new`)
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: the README, the source to write. The blocks of C and of INI below "Write your own", each of which begins with its
# file's name, as they stand there.
import re
import sys

readme, output = sys.argv[1:]
with open(readme, encoding="utf-8") as file:
    section = file.read().split("\n## Write your own\n")[1].split("\n## ")[0]
files = [(re.match(r"(?:/\*|#) (\S+):", text).group(1), text)
         for text in re.findall(r"(?ms)^```(?:c|ini)\n(.*?)^```$", section)]
names = [name for name, _ in files]
if names != ["scale.c", "twice.c", "sixfold.c", "pto.ini"]:
    sys.exit(f"{readme}: the example has other files than pto new knows of: {names}")


def quote(line):
    text = line.replace("\\", "\\\\").replace('"', '\\"')
    assert text.isascii(), text
    return f'    "{text}\\n"'


with open(output, "w", encoding="utf-8") as file:
    print('#include "new.h"\n\nconst NewFile new_files[] = {', file=file)
    for name, text in files:
        print(f'  {{ "{name}",', *map(quote, text.splitlines()), "  },", sep="\n", file=file)
    print("  { NULL, NULL },\n};", file=file)
