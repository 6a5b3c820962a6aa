#!/usr/bin/env python3
# again.py: which tests did a sanitizer itself end, and no other failed?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""again.py LOG RESULTS: appends meson's testlog.json lines of LOG to RESULTS, but for those of tests that are to be run again,
and prints the names of these. What the other failures say goes to the standard error. Two sanitizers of gcc 12 die now and then
of themselves, and have found nothing then, neither good nor bad: the leak checker of a thread that ends meanwhile, the thread
sanitizer of a thread's variables that lie 16 bytes behind the begin of a page (it takes what stands before them for their size,
and asks for that). Exit status 0: nothing else has failed."""
import json
import re
import sys

# An address space has 2^47 bytes: 12 digits.
LOST = re.compile(r"LeakSanitizer has encountered a fatal error\.|ThreadSanitizer failed to allocate 0x[0-9a-f]{13}")


def tell(test):
    """Prints where it failed, and the end of what it said."""
    said = re.findall(r"^not ok.*(?:\n#.*)*", test.get("stdout", ""), re.MULTILINE)
    lines = "\n".join(said).splitlines()[:30] or test.get("stdout", "").splitlines()[-10:]
    lines += test.get("stderr", "").strip().splitlines()[-20:]
    title = f"{test['name']}: {test['result']}, exit status {test.get('returncode')}"
    print(title, *(f"  {line}" for line in lines), sep="\n", file=sys.stderr)


def main():
    others = 0
    with open(sys.argv[1], encoding="utf-8") as log, open(sys.argv[2], "a", encoding="utf-8") as results:
        for line in log:
            test = json.loads(line)
            failed = test["result"] not in ("OK", "EXPECTEDFAIL", "SKIP")
            if failed and LOST.search(test.get("stderr", "")) and "\nnot ok" not in "\n" + test.get("stdout", ""):
                print(test["name"].rpartition(" / ")[2])
            else:
                results.write(line)
                others += failed
                if failed:
                    tell(test)
    return 1 if others else 0


sys.exit(main())
