#!/usr/bin/env python3
# again.py: which tests did the leak checker itself end, and no other failed?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""again.py LOG RESULTS: appends meson's testlog.json lines of LOG to RESULTS, but for those of tests that are to be run again,
and prints the names of these. The leak checker of gcc 12 dies now and then of a thread that ends meanwhile: it has found
nothing then, neither good nor bad. Exit status 0: nothing else has failed."""
import json
import sys

LOST = "LeakSanitizer has encountered a fatal error."


def main():
    others = 0
    with open(sys.argv[1], encoding="utf-8") as log, open(sys.argv[2], "a", encoding="utf-8") as results:
        for line in log:
            test = json.loads(line)
            failed = test["result"] not in ("OK", "EXPECTEDFAIL", "SKIP")
            if failed and LOST in test.get("stderr", "") and "\nnot ok" not in "\n" + test.get("stdout", ""):
                print(test["name"].rpartition(" / ")[2])
            else:
                results.write(line)
                others += failed
    return 1 if others else 0


sys.exit(main())
