#!/usr/bin/env python3
# count.py: how many tests passed, failed and were skipped in these logs of `meson test`?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""count.py RESULTS COUNTS: meson's testlog.json lines of all builds, and 'passed N failed N skipped N' lines. Prints each reason for
which a test was skipped by every build that has it, and closes with the counts. What one build skips and another runs was not
skipped: a sanitizer, for one, cannot run kernels that crash on purpose."""
import collections
import json
import re
import sys


def key(program, name):
    """What two programs call by the same path of GLib is the same test, as is a test of unittest and its sub-test."""
    name = re.sub(r" [\[(].*", "", name.strip())
    return name if name.startswith("/") else (program, name)


def count_log(path, total):
    ran, skipped = set(), {}
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            program = test["name"].rpartition(" / ")[2]
            lines = re.findall(r"^(ok|not ok)\b[ \d-]*([^#\n]*)(.*)$", test.get("stdout", ""), re.MULTILINE)
            good = test["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
            for result, name, rest in lines:
                skip = re.search(r"#\s*skip\S*\s*(.*)", rest, re.IGNORECASE)
                if skip:
                    skipped[key(program, name)] = skip[1]
                else:
                    ran.add(key(program, name))
                    total["passed" if result == "ok" else "failed"] += 1
            if not lines:
                total["skipped" if test["result"] == "SKIP" else "passed" if good else "failed"] += 1
            elif not good and not any(result == "not ok" for result, _, _ in lines):
                total["failed"] += 1  # crashed or timed out after its last line
    return [reason for name, reason in skipped.items() if name not in ran]


def main():
    total = {"passed": 0, "failed": 0, "skipped": 0}
    reasons = collections.Counter(count_log(sys.argv[1], total))
    total["skipped"] += reasons.total()
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            for name, number in re.findall(r"(\w+) (\d+)", file.read()):
                total[name] += int(number)
    for reason, count in sorted(reasons.items()):
        print(f"skipped {count}: {reason}")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")


main()
