#!/usr/bin/env python3
# count.py: how many tests passed, failed and were skipped in these logs of `meson test`?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""count.py RESULTS COUNTS: meson's testlog.json lines, and 'passed N failed N skipped N' lines. Prints each reason for which a
test was skipped, and closes with the counts."""
import collections
import json
import re
import sys


def count_log(path, reasons):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            lines = re.findall(r"^(ok|not ok)\b(.*)$", test.get("stdout", ""), re.MULTILINE)
            good = test["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
            for result, rest in lines:
                skip = re.search(r"#\s*skip\S*\s*(.*)", rest, re.IGNORECASE)
                if skip:
                    counts["skipped"] += 1
                    reasons[skip[1]] += 1
                elif result == "ok":
                    counts["passed"] += 1
                else:
                    counts["failed"] += 1
            if not lines:
                counts["skipped" if test["result"] == "SKIP" else "passed" if good else "failed"] += 1
            elif not good and not any(result == "not ok" for result, _ in lines):
                counts["failed"] += 1  # crashed or timed out after its last line
    return counts


def main():
    reasons = collections.Counter()
    total = count_log(sys.argv[1], reasons)
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            for name, number in re.findall(r"(\w+) (\d+)", file.read()):
                total[name] += int(number)
    for reason, count in sorted(reasons.items()):
        print(f"skipped {count}: {reason}")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")


main()
